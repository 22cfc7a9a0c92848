//! The cache of a site's pages, so that unchanged pages are not transferred again.
//!
//! There is one file per page: its headers and a checksum on the first line, then its compressed bytes.
//!
//! Invariant: an incomplete or damaged file is treated as missing.

use std::collections::HashSet;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::fetch::{Fetched, Validators};
use crate::failpoint;

/// The name of the cache folder inside the index folder.
const FOLDER: &str = "site-cache";

/// The cached pages of one site.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    packer: Mutex<ZlibEncoder<Vec<u8>>>,
}

/// A cached page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its metadata.
    pub about: About,
    /// Its uncompressed bytes.
    pub body: Vec<u8>,
}

/// The metadata of a cached page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its address, after redirects.
    pub url: String,
    /// The headers for a conditional request.
    #[serde(flatten)]
    pub validators: Validators,
    /// `Content-Type`
    pub content_type: String,
    /// `X-Robots-Tag`
    pub robots_tag: String,
    packing: Packing,
    sum: String,
}

/// How the bytes of a page are compressed. A file that does not say so is from an earlier version, and treated as missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Packing {
    Zlib,
}

impl Cache {
    /// The cache of the site at `start`, below `folder`.
    pub fn open(folder: &Path, start: &str) -> io::Result<Self> {
        let folder = folder.join(FOLDER).join(site_name(start));
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, packer: Mutex::new(ZlibEncoder::new(Vec::new(), Compression::fast())) })
    }

    /// A cached page; `None` if it is missing or damaged.
    pub fn load(&self, url: &Url) -> Option<Stored> {
        let (about, packed) = self.packed(url)?;
        let mut body = Vec::new();
        ZlibDecoder::new(packed.as_slice()).read_to_end(&mut body).ok()?;
        Some(Stored { about, body })
    }

    /// The metadata of a page, if it can be loaded; does not decompress it.
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

    /// Stores a page for the next ingest. `otherwise` is its last modification, used if the server sent
    /// neither `ETag` nor `Last-Modified`.
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
            packing: Packing::Zlib,
            sum: sum(&packed),
        };
        let mut bytes = serde_json::to_vec(&about)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&packed);
        let path = self.path(&page.url);
        let new = path.with_extension("new");
        failpoint::reach("site.cache.write")?;
        std::fs::write(&new, bytes)?;
        failpoint::reach("site.cache.rename")?;
        std::fs::rename(new, path)
    }

    /// Compresses a page. The state of a compressor is many times the size of a page, so one is reused: allocating
    /// one per page would fragment memory.
    fn packed_body(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut packer = self.packer.lock().unwrap_or_else(PoisonError::into_inner);
        packer.write_all(body)?;
        packer.reset(Vec::new())
    }

    /// Removes all pages except these.
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

/// Removes the caches of all sites except these.
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
    fn pages_are_stored_and_removed_and_incomplete_files_are_ignored() {
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
        let file = std::fs::read(cache.path(&url)).unwrap();
        let earlier = file.iter().position(|byte| *byte == b'\n').unwrap();
        let about = String::from_utf8(file[..earlier].to_vec()).unwrap().replace("\"packing\":\"zlib\",", "");
        std::fs::write(cache.path(&url), [about.as_bytes(), &file[earlier..]].concat()).unwrap();
        assert_eq!(cache.about(&url), None, "a file of an earlier version is fetched again");

        cache.keep_only(&HashSet::new()).unwrap();
        assert!(!cache.path(&url).exists());
    }
}
