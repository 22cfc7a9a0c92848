//! The book's own copy of its images and PDFs, so that they can be shown without asking another server.
//!
//! An ingest copies the images that have a caption or description, and the PDFs, into the folder `figures` of the index.
//! A file is named after its content, so that generations share it.
//!
//! Invariant: only files of known types and limited size are copied, and a file name says its type. A PDF is never sent,
//! only drawn.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use docent_core::chunk::Chunk;
use docent_parse::document::Figure;
use xxhash_rust::xxh3::xxh3_128;

/// The folder of the copies, below the folder of the index; also the beginning of [`Figure::image`] for an image
/// that was copied.
pub const FOLDER: &str = "figures";

/// Maximum size of an image, in bytes.
const LARGEST: u64 = 4 << 20;

/// Maximum size of a PDF, in bytes. The pages of a larger one are shown as text.
const LARGEST_PDF: u64 = 32 << 20;

/// Maximum size of the files that one ingest reads, in bytes.
const LARGEST_TOTAL: u64 = 512 << 20;

/// The types of images: the extension of a copy, and what browsers call it.
const TYPES: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("svg", "image/svg+xml"),
];

/// Copies images and PDFs while a book is read.
#[derive(Debug)]
pub struct Figures {
    folder: PathBuf,
    /// Bytes read so far.
    read: AtomicU64,
    /// Files written so far.
    written: AtomicU64,
}

impl Figures {
    /// Copies files into the folder of this index.
    pub fn new(index: &Path) -> Self {
        Self { folder: index.join(FOLDER), read: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    /// Copies an image; returns the name of the copy, `figures/NAME`. `None` if the file is not an image or too
    /// large. That it cannot be copied is not an error: the text is complete without it.
    pub fn keep(&self, file: &Path) -> Option<String> {
        Some(format!("{FOLDER}/{}", self.copy(file, LARGEST, extension)?))
    }

    /// Copies a PDF that was parsed; returns the file name of the copy. `None` if it is too large or cannot be copied.
    pub fn keep_pdf(&self, file: &Path) -> Option<String> {
        self.copy(file, LARGEST_PDF, |_| Some("pdf"))
    }

    fn copy(
        &self,
        file: &Path,
        largest: u64,
        extension: impl Fn(&[u8]) -> Option<&'static str>,
    ) -> Option<String> {
        let size = fs::metadata(file).ok().filter(fs::Metadata::is_file)?.len();
        if size > largest || self.read.fetch_add(size, Ordering::Relaxed) + size > LARGEST_TOTAL {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let name = format!("{:032x}.{}", xxh3_128(&bytes), extension(&bytes)?);
        match self.write(&name, &bytes) {
            Ok(()) => Some(name),
            Err(error) => {
                tracing::warn!(%error, "cannot copy {}", file.display());
                None
            }
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        if path.is_file() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        // Two pages may have the same image, and pages are read at the same time.
        let part = self.folder.join(format!("{name}.{}", self.written.fetch_add(1, Ordering::Relaxed)));
        fs::write(&part, bytes)?;
        fs::rename(part, path)
    }
}

/// Removes the copies that none of these passages refers to.
pub fn forget_others(index: &Path, chunks: &[Chunk]) -> io::Result<()> {
    let folder = index.join(FOLDER);
    let images = chunks.iter().flat_map(|chunk| &chunk.figures).filter_map(copy);
    let pdfs = chunks.iter().filter_map(|chunk| chunk.pdf.as_deref());
    let own: HashSet<&str> = images.chain(pdfs).collect();
    let files = match fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for file in files {
        let file = file?;
        if !own.contains(&*file.file_name().to_string_lossy()) {
            fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

/// The file name of the copy of an image; `None` if there is no copy.
pub fn copy(figure: &Figure) -> Option<&str> {
    figure.image.strip_prefix(FOLDER)?.strip_prefix('/').filter(|name| kind(name).is_some())
}

/// Reads a copy: its type and its content. `name` may be anything that a client sends.
pub fn open(index: &Path, name: &str) -> Option<(&'static str, Vec<u8>)> {
    let kind = kind(name)?;
    Some((kind, fs::read(index.join(FOLDER).join(name)).ok()?))
}

/// The copy of a PDF; `None` if there is none. `name` may be anything that a client sends.
pub fn pdf(index: &Path, name: &str) -> Option<PathBuf> {
    let extension = extension_of(name)?;
    Some(index.join(FOLDER).join(name)).filter(|path| extension == "pdf" && path.is_file())
}

/// The type of the copy of an image by its name; `None` if no image has such a name.
fn kind(name: &str) -> Option<&'static str> {
    let extension = extension_of(name)?;
    let (_, kind) = TYPES.into_iter().find(|(known, _)| *known == extension)?;
    Some(kind)
}

/// The extension of the name of a copy; `None` if no copy has such a name.
fn extension_of(name: &str) -> Option<&str> {
    let (stem, extension) = name.split_once('.')?;
    let is_hash = stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(extension)
}

/// Whether an image can be shown: it was copied, or is published.
pub fn is_known(figure: &Figure) -> bool {
    copy(figure).is_some() || ["https://", "http://"].iter().any(|scheme| figure.image.starts_with(scheme))
}

/// What browsers call the type of an image; `None` if it is not an image that they show.
pub fn type_of(bytes: &[u8]) -> Option<&'static str> {
    let own = extension(bytes)?;
    TYPES.into_iter().find(|(extension, _)| *extension == own).map(|(_, kind)| kind)
}

/// The extension for the content of a file; `None` if it is not an image that browsers show.
fn extension(bytes: &[u8]) -> Option<&'static str> {
    let is_at = |place: usize, mark: &[u8]| bytes.get(place..).is_some_and(|rest| rest.starts_with(mark));
    Some(match bytes {
        _ if is_at(0, b"\x89PNG\r\n\x1a\n") => "png",
        _ if is_at(0, b"\xff\xd8\xff") => "jpg",
        _ if is_at(0, b"GIF87a") || is_at(0, b"GIF89a") => "gif",
        _ if is_at(0, b"RIFF") && is_at(8, b"WEBP") => "webp",
        _ if is_at(4, b"ftypavif") => "avif",
        _ if is_svg(bytes) => "svg",
        _ => return None,
    })
}

/// Whether the first element is `<svg>`, after a declaration and comments.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(after) = [("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">")]
        .into_iter()
        .find_map(|(open, close)| rest.strip_prefix(open)?.split_once(close))
    {
        rest = after.1.trim_start();
    }
    rest.starts_with("<svg")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more";

    #[test]
    fn images_are_copied_once_and_removed_when_no_passage_has_them() {
        let (index, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let figures = Figures::new(index.path());
        let file = |name: &str, bytes: &[u8]| {
            let path = source.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let kept = figures.keep(&file("a.png", PNG)).unwrap();
        assert_eq!(figures.keep(&file("b.jpeg", PNG)), Some(kept.clone()), "the content decides");
        let svg = figures.keep(&file("c.svg", b"<?xml version='1.0'?>\n<!-- x -->\n<svg/>")).unwrap();
        for (name, bytes) in
            [("page.png", &b"<html><script>1</script></html>"[..]), ("x.svg", b"svg"), ("e.png", b"")]
        {
            assert_eq!(figures.keep(&file(name, bytes)), None, "{name}");
        }
        assert_eq!(figures.keep(&file("big.png", &[PNG, &vec![0; LARGEST as usize]].concat())), None);
        assert_eq!(figures.keep(source.path()), None, "a folder");

        let mut chunk = Chunk::new(Default::default(), "page", "words");
        chunk.figures = vec![Figure::new("A", kept.clone()), Figure::new("B", "https://x.org/b.png")];
        forget_others(index.path(), &[chunk]).unwrap();
        let name = |image: &str| image.strip_prefix("figures/").unwrap().to_owned();
        assert_eq!(open(index.path(), &name(&kept)), Some(("image/png", PNG.to_vec())));
        assert_eq!(open(index.path(), &name(&svg)), None);
    }

    #[test]
    fn pdfs_are_copied_but_never_sent_as_they_are() {
        let (index, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = source.path().join("book.pdf");
        fs::write(&path, "%PDF-1.7").unwrap();
        let figures = Figures::new(index.path());
        let name = figures.keep_pdf(&path).unwrap();
        let copied = pdf(index.path(), &name).unwrap();
        assert_eq!(fs::read(&copied).unwrap(), b"%PDF-1.7");
        assert_eq!(open(index.path(), &name), None);
        fs::File::create(&path).unwrap().set_len(LARGEST_PDF + 1).unwrap();
        assert_eq!(figures.keep_pdf(&path), None, "too large");

        let mut chunk = Chunk::new(Default::default(), "page", "words");
        chunk.pdf = Some(name.clone());
        forget_others(index.path(), &[chunk]).unwrap();
        assert!(copied.exists());
        forget_others(index.path(), &[]).unwrap();
        assert_eq!(pdf(index.path(), &name), None);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let index = tempfile::tempdir().unwrap();
        fs::write(index.path().join("CURRENT"), "x").unwrap();
        for name in ["", ".png", "../CURRENT", "..%2fCURRENT.png", &format!("{}.png", "../".repeat(11))] {
            assert_eq!(open(index.path(), name), None, "{name}");
            assert_eq!(pdf(index.path(), &name.replace(".png", ".pdf")), None, "{name}");
        }
    }
}
