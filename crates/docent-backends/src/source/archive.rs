//! Archives as sources: unpacked into a temporary folder, then read like any folder.
//!
//! Invariant: nothing is written outside that folder, and the number of files and their total size stay
//! within the limits here, whatever the archive's headers say.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek, Write};
use std::path::{Path, PathBuf};

use docent_parse::document::Warning;

use super::{Read, Reading, SourceError, folder};
use crate::index::contents::SourceRecord;

/// Maximum number of entries.
const MOST_ENTRIES: usize = 100_000;

/// Maximum unpacked size in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Maximum compression ratio; text never compresses better.
const HIGHEST_RATIO: u64 = 200;

/// Unpacked size in bytes that is allowed regardless of the ratio.
const ALWAYS_ALLOWED: u64 = 64 << 20;

/// Files that are not pages are only counted, so those above this size are created empty.
const LARGEST_OTHER: u64 = 1 << 20;

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Zip,
    TarGz,
    Tar,
}

impl Packing {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        if name.ends_with(".zip") {
            Some(Self::Zip)
        } else if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
            Some(Self::TarGz)
        } else {
            name.ends_with(".tar").then_some(Self::Tar)
        }
    }
}

/// Whether a file is an archive, by its name.
pub fn is_archive(path: &Path) -> bool {
    Packing::of(path).is_some()
}

/// Unpacks an archive and reads its pages.
pub fn read(path: &Path, source: &SourceRecord, reading: &Reading) -> Result<Read, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
    let place = tempfile::tempdir().map_err(unreadable)?;
    let mut unpacked = Unpacked::new(place.path(), std::fs::metadata(path).map_err(unreadable)?.len());
    let file = File::open(path).map_err(unreadable)?;
    let result = match Packing::of(path) {
        Some(Packing::TarGz) => unpacked.tar(flate2::read::MultiGzDecoder::new(file)),
        Some(Packing::Tar) => unpacked.tar(file),
        Some(Packing::Zip) | None => unpacked.zip(file),
    };
    result.map_err(|error| SourceError::Archive { path: path.to_owned(), message: error.to_string() })?;
    let root = place.path().canonicalize().map_err(unreadable)?;
    let (folder, shown) = match only_folder(&root) {
        Some(name) => (root.join(&name), path.join(&name)),
        None => (root, path.to_owned()),
    };
    let mut read = folder::read_shown_as(&folder, &shown, source, reading)?;
    read.warnings.splice(0..0, unpacked.warnings);
    read.kind = format!("{} in an archive", read.kind);
    Ok(read)
}

/// The name of the folder, if the archive contains a single top-level folder, as most archives do.
fn only_folder(root: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(root).ok()?.filter_map(Result::ok);
    let first = entries.next()?;
    let is_folder = first.file_type().is_ok_and(|kind| kind.is_dir());
    (is_folder && entries.next().is_none()).then(|| PathBuf::from(first.file_name()))
}

/// The folder that an archive is unpacked into.
struct Unpacked<'a> {
    root: &'a Path,
    /// How many bytes may still be unpacked.
    left: u64,
    entries: usize,
    seen: HashSet<PathBuf>,
    warnings: Vec<Warning>,
}

impl<'a> Unpacked<'a> {
    fn new(root: &'a Path, packed: u64) -> Self {
        let left = packed.saturating_mul(HIGHEST_RATIO).clamp(ALWAYS_ALLOWED, MOST_BYTES);
        Self { root, left, entries: 0, seen: HashSet::new(), warnings: Vec::new() }
    }

    fn zip(&mut self, file: impl io::Read + Seek) -> io::Result<()> {
        let mut archive = zip::ZipArchive::new(file).map_err(io::Error::other)?;
        for number in 0..archive.len() {
            self.count()?;
            let mut entry = match archive.by_index(number) {
                Ok(entry) => entry,
                Err(error) => {
                    self.refuse(&format!("entry {}", number + 1), &format!("cannot be unpacked: {error}"));
                    continue;
                }
            };
            let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            if entry.is_dir() {
                continue;
            }
            if entry.unix_mode().is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000)) {
                self.refuse(&name, "link or device, not a regular file; skipped");
                continue;
            }
            let size = entry.size();
            self.write(&name, size, &mut entry)?;
        }
        Ok(())
    }

    fn tar(&mut self, stream: impl io::Read) -> io::Result<()> {
        // Skipped entries are decompressed, too, so the whole stream is limited.
        let mut archive = tar::Archive::new(stream.take(self.left.saturating_mul(2)));
        for entry in archive.entries()? {
            self.count()?;
            let mut entry = entry?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let kind = entry.header().entry_type();
            if kind.is_dir() || matches!(kind, tar::EntryType::XGlobalHeader | tar::EntryType::XHeader) {
                continue;
            }
            if !kind.is_file() {
                self.refuse(&name, "link or device, not a regular file; skipped");
                continue;
            }
            let size = entry.size();
            self.write(&name, size, &mut entry)?;
        }
        Ok(())
    }

    fn count(&mut self) -> io::Result<()> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(io::Error::other(format!("it has more than {MOST_ENTRIES} files")));
        }
        Ok(())
    }

    fn write(&mut self, name: &str, size: u64, content: &mut dyn io::Read) -> io::Result<()> {
        let Some(inside) = safe(name) else {
            self.refuse(name, "unsafe path that points outside the archive; skipped");
            return Ok(());
        };
        if !self.seen.insert(inside.clone()) {
            self.refuse(name, "appears more than once in the archive; only the first copy is read");
            return Ok(());
        }
        let path = self.root.join(&inside);
        if let Some(parent) = path.parent()
            && let Err(error) = std::fs::create_dir_all(parent)
        {
            self.refuse(name, &format!("cannot be unpacked: {error}"));
            return Ok(());
        }
        let mut file = match File::options().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) => {
                self.refuse(name, &format!("cannot be unpacked: {error}"));
                return Ok(());
            }
        };
        if size > LARGEST_OTHER && !folder::has_pages(name) {
            return Ok(());
        }
        let mut room = content.take(self.left + 1);
        match io::copy(&mut room, &mut file).and_then(|written| file.flush().map(|()| written)) {
            Ok(written) if written > self.left => {
                Err(io::Error::other("it exceeds the size limit when unpacked; nothing was read"))
            }
            Ok(written) => {
                self.left -= written;
                Ok(())
            }
            Err(error) => {
                self.refuse(name, &format!("damaged: {error}"));
                Ok(())
            }
        }
    }

    fn refuse(&mut self, name: &str, reason: &str) {
        self.warnings.push(Warning::new(name, reason));
    }
}

/// The relative path of an entry; `None` if it would be outside the folder.
fn safe(name: &str) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    if name.starts_with('/') || name.contains('\0') {
        return None;
    }
    let mut path = PathBuf::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.contains(':') => return None,
            part => path.push(part),
        }
    }
    (path.components().next().is_some()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &Path) -> SourceRecord {
        SourceRecord {
            location: path.to_string_lossy().into_owned(),
            base_url: Some("https://x.org".into()),
            layout: None,
            ..SourceRecord::default()
        }
    }

    fn read_archive(name: &str, bytes: &[u8]) -> Result<Read, SourceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let before = std::fs::read_dir(folder.path()).unwrap().count();
        let read = read(&path, &source(&path), &Reading::default());
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            before,
            "nothing is written next to the archive"
        );
        read
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// A tar entry with an unchecked name, as an attacker would write it.
    fn entry(name: &str, kind: tar::EntryType, link: &str, text: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(text);
        bytes.resize(bytes.len().div_ceil(512) * 512, 0);
        bytes
    }

    fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut tar = entries.concat();
        tar.extend([0; 1024]);
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(&tar).unwrap();
        writer.finish().unwrap()
    }

    fn warnings(read: &Read) -> Vec<String> {
        read.warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect()
    }

    #[test]
    fn a_zip_is_read_like_a_folder() {
        let bytes = zipped(&[
            ("book-1/a.md", b"# A\n\nApples."),
            ("book-1/sub/b.rst", b"B\n=\n\nBananas.\n"),
            ("book-1/c.png", b"x"),
        ]);
        let read = read_archive("book.zip", &bytes).unwrap();
        let urls: Vec<_> = read.documents.iter().map(|page| page.url.as_str()).collect();
        assert_eq!(urls, ["https://x.org/a.md", "https://x.org/sub/b.html"]);
        assert_eq!(read.other_files["png"], 1);
        assert_eq!(warnings(&read), Vec::<String>::new());
    }

    #[test]
    fn without_a_base_url_a_page_has_a_path_inside_its_archive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.zip");
        std::fs::write(&path, zipped(&[("a.md", b"# A\n\nApples.")])).unwrap();
        let source = SourceRecord { base_url: None, ..source(&path) };
        let read = super::super::read(&source, &Reading::default()).unwrap();
        assert!(read.documents[0].url.ends_with("/book.zip/a.md"), "{}", read.documents[0].url);
        assert_eq!(read.documents[0].module, "book");
    }

    #[test]
    fn paths_outside_the_archive_are_skipped() {
        let bytes = zipped(&[
            ("../evil.md", b"x"),
            ("/etc/evil.md", b"x"),
            ("a/../../evil.md", b"x"),
            ("C:\\evil.md", b"x"),
            ("..\\evil.md", b"x"),
            ("good.md", b"Good."),
        ]);
        let read = read_archive("evil.zip", &bytes).unwrap();
        assert_eq!(read.documents.len(), 1);
        assert_eq!(read.warnings.len(), 5, "{:?}", read.warnings);
        assert!(
            warnings(&read).iter().all(|warning| warning.ends_with("points outside the archive; skipped"))
        );
    }

    #[test]
    fn links_and_devices_are_skipped() {
        use tar::EntryType;
        let bytes = packed(&[
            entry("link.md", EntryType::Symlink, "/etc/passwd", b""),
            entry("hard.md", EntryType::Link, "/etc/passwd", b""),
            entry("device.md", EntryType::Char, "", b""),
            entry("pipe.md", EntryType::Fifo, "", b""),
            entry("out", EntryType::Symlink, "..", b""),
            entry("out/evil.md", EntryType::Regular, "", b"Stays inside."),
            entry("../evil.md", EntryType::Regular, "", b"x"),
            entry("good.md", EntryType::Regular, "", b"Good."),
        ]);
        let read = read_archive("evil.tar.gz", &bytes).unwrap();
        let ids: Vec<_> = read.documents.iter().map(|page| page.id.as_str()).collect();
        assert_eq!(ids, ["good.md", "out/evil.md"]);
        assert_eq!(read.warnings.len(), 6, "{:?}", read.warnings);
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let zeros = vec![b' '; (ALWAYS_ALLOWED + 10) as usize];
        let error = read_archive("bomb.zip", &zipped(&[("a.md", &zeros)])).unwrap_err();
        assert!(error.to_string().contains("exceeds the size limit"), "{error}");
        let tar = packed(&[entry("a.md", tar::EntryType::Regular, "", &zeros)]);
        assert!(read_archive("bomb.tgz", &tar).unwrap_err().to_string().contains("exceeds the size limit"));
    }

    #[test]
    fn a_file_that_is_not_an_archive_is_an_error() {
        for name in ["a.zip", "a.tar.gz"] {
            let error = read_archive(name, b"not an archive").unwrap_err();
            assert!(matches!(error, SourceError::Archive { .. }), "{error}");
        }
        let mut cut = zipped(&[("a.md", b"Good."), ("b.md", b"Better.")]);
        cut[35] ^= 0xff;
        let _ = read_archive("damaged.zip", &cut);
    }
}
