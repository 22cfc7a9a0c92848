//! Looks and wording of the chat page.

use std::path::{Path, PathBuf};

use docent_backends::figures;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};

/// Maximum size of the logo, in bytes.
const LARGEST_LOGO: u64 = 256 * 1024;

/// `[chat]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// An image beside the title: PNG, JPEG, GIF, WebP, AVIF or SVG.
    pub logo: Option<PathBuf>,
    /// The accent color: `#0f6a5b`.
    pub accent: Option<String>,
    /// The heading of a new conversation.
    pub heading: Option<String>,
    /// The text below that heading.
    pub welcome: Option<String>,
    /// The placeholder of the question box.
    pub placeholder: Option<String>,
}

impl Chat {
    /// Makes the path of the logo relative to the folder of the configuration.
    pub(super) fn anchor(&mut self, folder: &Path) {
        self.logo =
            self.logo.take().filter(|logo| !logo.as_os_str().is_empty()).map(|logo| folder.join(logo));
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |what: String, hint: &str| Err(Failure::new(Exit::NotConfigured, what).hint(hint));
        if let Some(accent) = self.accent.as_ref().filter(|accent| !accent.is_empty())
            && self.accent().is_none()
        {
            return wrong(
                format!("chat.accent: invalid color `{accent}`"),
                "use six hex digits, such as #0f6a5b",
            );
        }
        if let Some(logo) = &self.logo
            && self.logo().is_none()
        {
            let what = format!("chat.logo: cannot use {}", logo.display());
            return wrong(what, "use a PNG, JPEG, GIF, WebP, AVIF or SVG file of at most 256 KiB");
        }
        Ok(())
    }

    /// The accent color as red, green and blue.
    pub fn accent(&self) -> Option<[u8; 3]> {
        let mut color = [0; 3];
        hex::decode_to_slice(self.accent.as_ref()?.strip_prefix('#')?, &mut color).ok()?;
        Some(color)
    }

    /// The type and the content of the logo.
    pub fn logo(&self) -> Option<(&'static str, Vec<u8>)> {
        let path = self.logo.as_ref()?;
        let size = std::fs::metadata(path).ok()?.len();
        let bytes = (size <= LARGEST_LOGO).then(|| std::fs::read(path).ok())??;
        Some((figures::type_of(&bytes)?, bytes))
    }
}
