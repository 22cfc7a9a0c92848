//! `docent key`: a key for readers or programs, and what belongs in the configuration.

use sha2::{Digest, Sha256};

use crate::cli::Key;
use crate::exit::Failure;
use crate::output::{FAINT, Output};

/// Runs the command. The key is shown once; only its hash is kept.
pub fn run(arguments: &Key, output: &Output) -> Result<(), Failure> {
    // Two random ids are 244 random bits.
    let key = format!("docent-{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let hash: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let rights = if arguments.admin { "admin" } else { "read" };
    if output.json {
        return output.object(&serde_json::json!({
            "name": arguments.name, "key": key, "sha256": hash, "rights": rights
        }));
    }
    output.line(&key)?;
    output.note(format!(
        "{FAINT}the key is above and is not kept; this belongs in docent.toml:{FAINT:#}\n\n[[serve.keys]]\nname = \"{}\"\nsha256 = \"{hash}\"\nrights = \"{rights}\"",
        arguments.name.replace(['"', '\\'], "")
    ));
    Ok(())
}
