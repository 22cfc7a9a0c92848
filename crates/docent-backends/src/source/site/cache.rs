//! The pages of a site as they were last fetched, so that a page that did not change is not sent again.
//!
//! One file a page: what the server said about it on the first line, a sum, then its bytes, packed.
//!
//! Invariant: a file that is torn or damaged is as good as none.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::fetch::{Fetched, Validators};

/// Below the folder of the index.
const FOLDER: &str = "site-cache";

/// Packed by deflate; no name, no date, no system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The pages of one site.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    packer: Mutex<Compress>,
}

/// A page as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What the server said about it.
    pub about: About,
    /// Its bytes, unpacked.
    pub body: Vec<u8>,
}

/// What a server said about a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Where it was found.
    pub url: String,
    /// To ask whether it changed.
    #[serde(flatten)]
    pub validators: Validators,
    /// `Content-Type`
    pub content_type: String,
    /// `X-Robots-Tag`
    pub robots_tag: String,
    sum: String,
}

impl Cache {
    /// The cache of the site at `start`, below `folder`.
    pub fn open(folder: &Path, start: &str) -> io::Result<Self> {
        let folder = folder.join(FOLDER).join(site_name(start));
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, packer: Mutex::new(Compress::new(Compression::fast(), false)) })
    }

    /// A page as it was the last time; none when it never was or is damaged.
    pub fn load(&self, url: &Url) -> Option<Stored> {
        let (about, packed) = self.packed(url)?;
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut body).ok()?;
        Some(Stored { about, body })
    }

    /// What the server said about a page, if it can be loaded; it is not unpacked for that.
    pub fn about(&self, url: &Url) -> Option<About> {
        self.packed(url).map(|(about, _)| about)
    }

    fn packed(&self, url: &Url) -> Option<(About, Vec<u8>)> {
        let mut bytes = std::fs::read(self.path(url)).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let about: About = serde_json::from_slice(&bytes[..end]).ok()?;
        bytes.drain(..=end);
        (about.url == url.as_str() && about.sum == sum(&bytes)).then_some((about, bytes))
    }

    /// Keeps a page for the next time. `otherwise` is asked with when the server gave nothing to ask with.
    pub fn store(&self, page: &Fetched, body: &[u8], otherwise: Option<String>) -> io::Result<()> {
        let packed = self.packed_body(body)?;
        let mut validators = page.validators.clone();
        if validators == Validators::default() {
            validators.last_modified = otherwise;
        }
        let about = About {
            url: page.url.to_string(),
            validators,
            content_type: page.content_type.clone(),
            robots_tag: page.robots_tag.clone(),
            sum: sum(&packed),
        };
        let mut bytes = serde_json::to_vec(&about)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&packed);
        let path = self.path(&page.url);
        let new = path.with_extension("new");
        std::fs::write(&new, bytes)?;
        std::fs::rename(new, path)
    }

    /// The bytes as gzip has them. The state of a packer is many times a page: one that came and went
    /// with each page would tear holes into memory that nothing else fits in.
    fn packed_body(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut packer = self.packer.lock().unwrap_or_else(PoisonError::into_inner);
        packer.reset();
        let mut packed = Vec::with_capacity(body.len() / 2 + 64);
        packed.extend_from_slice(&GZIP_HEADER);
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            packed.reserve(body.len() / 4 + 64);
            let done = usize::try_from(packer.total_in()).unwrap_or(usize::MAX).min(body.len());
            status = packer.compress_vec(&body[done..], &mut packed, FlushCompress::Finish)?;
        }
        let mut sum = Crc::new();
        sum.update(body);
        packed.extend_from_slice(&sum.sum().to_le_bytes());
        packed.extend_from_slice(&sum.amount().to_le_bytes());
        Ok(packed)
    }

    /// Removes the pages that are no longer among these.
    pub fn keep_only(&self, pages: &HashSet<String>) -> io::Result<()> {
        let names: HashSet<String> = pages.iter().map(|url| name(url)).collect();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !names.contains(&*entry.file_name().to_string_lossy()) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn path(&self, url: &Url) -> PathBuf {
        self.folder.join(name(url.as_str()))
    }
}

/// Removes what is kept of other sites than these.
pub fn forget_others<'a>(folder: &Path, starts: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let folder = folder.join(FOLDER);
    if !folder.is_dir() {
        return Ok(());
    }
    let names: HashSet<String> = starts.map(site_name).collect();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !names.contains(&*entry.file_name().to_string_lossy()) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn site_name(start: &str) -> String {
    format!("{:016x}", xxh3_64(start.as_bytes()))
}

fn name(url: &str) -> String {
    format!("{:032x}", xxh3_128(url.as_bytes()))
}

fn sum(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_until_they_are_gone_and_torn_ones_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), "https://x.org/").unwrap();
        let url = Url::parse("https://x.org/a").unwrap();
        let page = Fetched {
            url: url.clone(),
            body: None,
            cut: false,
            validators: Validators { etag: Some("\"1\"".into()), last_modified: None },
            content_type: "text/html".into(),
            robots_tag: String::new(),
        };
        assert_eq!(cache.load(&url), None);
        cache.store(&page, b"text", Some("never".into())).unwrap();
        let stored = cache.load(&url).unwrap();
        assert_eq!((stored.body.as_slice(), &stored.about.validators), (&b"text"[..], &page.validators));

        assert_eq!(cache.about(&url), Some(stored.about));

        cache.keep_only(&HashSet::from([url.to_string()])).unwrap();
        let whole = std::fs::read(cache.path(&url)).unwrap();
        for length in 0..whole.len() {
            std::fs::write(cache.path(&url), &whole[..length]).unwrap();
            assert_eq!((cache.load(&url), cache.about(&url)), (None, None), "{length} bytes");
        }
        for length in [0, 1, 100, 100_000, 1 << 20] {
            let noise: Vec<u8> =
                (0..length).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            cache.store(&page, &noise, None).unwrap();
            assert_eq!(cache.load(&url).map(|stored| stored.body), Some(noise));
        }
        cache.keep_only(&HashSet::new()).unwrap();
        assert!(!cache.path(&url).exists());
    }
}
