//! PDFs are programs that draw pages; one that does not end is not waited for.
//!
//! Invariant: a file takes no more time and memory than the bounds here before the next one is read.

use std::sync::mpsc;
use std::time::Duration;

use docent_core::document::{Document, Warning};
use docent_core::layout::Site;
use docent_core::parse::parse_page;

/// A book of a thousand pages takes seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// A larger file is a collection of scans.
const LARGEST: usize = 512 << 20;

/// Nested drawings go deep.
const STACK: usize = 32 << 20;

/// Parses a PDF on a thread of its own.
pub(super) fn parse_pdf(page: &str, bytes: Vec<u8>, site: &Site) -> (Option<Document>, Vec<Warning>) {
    let warn = |message: String| (None, vec![Warning::new(page, message)]);
    if bytes.len() > LARGEST {
        return warn(format!("larger than {} MB; left out", LARGEST >> 20));
    }
    let (sender, receiver) = mpsc::channel();
    let (name, own) = (page.to_owned(), site.clone());
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = sender.send(parse_page(&name, &bytes, &own, &mut |_| None));
    });
    match thread.map(|_| receiver.recv_timeout(LONGEST)) {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(mpsc::RecvTimeoutError::Timeout)) => {
            warn(format!("not read within {} s; left out", LONGEST.as_secs()))
        }
        Ok(Err(mpsc::RecvTimeoutError::Disconnected)) => warn("damaged; left out".to_owned()),
        Err(error) => warn(format!("cannot be read: {error}")),
    }
}
