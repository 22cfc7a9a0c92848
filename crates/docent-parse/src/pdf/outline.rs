//! The outline of a PDF: the table of contents that PDF viewers show next to the page.
//!
//! Invariant: reading terminates even if an outline refers to itself.

use std::collections::{HashMap, HashSet};

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Object, ObjectIdentifier, String as PdfString};

/// Limit on entries, far above what real outlines have.
const MOST_ENTRIES: usize = 20_000;

/// Maximum depth of the tree of named destinations.
const DEEPEST_NAMES: usize = 16;

/// An entry of the outline.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) title: String,
    /// Starts at 0.
    pub(super) depth: usize,
    /// Starts at 0.
    pub(super) page: usize,
}

/// The entries in reading order.
pub(super) fn outline(pdf: &Pdf) -> Vec<Entry> {
    let Some(catalog) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return Vec::new() };
    let Some(root) = catalog.get::<Dict<'_>>(b"Outlines") else { return Vec::new() };
    let pages = pdf.pages().iter().enumerate();
    let pages = pages.filter_map(|(number, page)| Some((page.raw().obj_id()?, number))).collect();
    let mut reader = Reader { pages, names: HashMap::new(), seen: HashSet::new(), entries: Vec::new() };
    if let Some(tree) = catalog.get::<Dict<'_>>(b"Names").and_then(|names| names.get::<Dict<'_>>(b"Dests")) {
        reader.collect_names(&tree, 0);
    }
    if let Some(old) = catalog.get::<Dict<'_>>(b"Dests") {
        for name in old.keys() {
            let target = old.get::<Object<'_>>(&*name).and_then(|target| reader.page(&target));
            reader.names.extend(target.map(|page| (name.as_ref().to_vec(), page)));
        }
    }
    reader.siblings(root.get::<Dict<'_>>(b"First"), 0);
    reader.entries
}

struct Reader {
    pages: HashMap<ObjectIdentifier, usize>,
    names: HashMap<Vec<u8>, usize>,
    seen: HashSet<ObjectIdentifier>,
    entries: Vec<Entry>,
}

impl Reader {
    fn siblings(&mut self, first: Option<Dict<'_>>, depth: usize) {
        let mut next = first;
        while let Some(item) = next {
            let is_new = item.obj_id().is_none_or(|id| self.seen.insert(id));
            if !is_new || self.entries.len() >= MOST_ENTRIES {
                return;
            }
            let title =
                item.get::<PdfString<'_>>(b"Title").map(|title| text(title.as_bytes())).unwrap_or_default();
            let target = item
                .get::<Object<'_>>(b"Dest")
                .or_else(|| item.get::<Dict<'_>>(b"A")?.get::<Object<'_>>(b"D"));
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            if let Some(page) = target.and_then(|target| self.page(&target))
                && !title.is_empty()
            {
                self.entries.push(Entry { title, depth, page });
            }
            if depth < 8 {
                self.siblings(item.get::<Dict<'_>>(b"First"), depth + 1);
            }
            next = item.get::<Dict<'_>>(b"Next");
        }
    }

    /// The page a destination leads to.
    fn page(&self, target: &Object<'_>) -> Option<usize> {
        match target {
            Object::Array(place) => self.page_of(place),
            Object::Dict(place) => self.page_of(&place.get::<Array<'_>>(b"D")?),
            Object::String(name) => self.names.get(name.as_bytes()).copied(),
            Object::Name(name) => self.names.get(AsRef::<[u8]>::as_ref(name)).copied(),
            _ => None,
        }
    }

    fn page_of(&self, place: &Array<'_>) -> Option<usize> {
        let first = place.raw_iter().next()?;
        match first.as_obj_ref() {
            Some(reference) => self.pages.get(&reference.into()).copied(),
            None => usize::try_from(place.flex_iter().next::<i32>()?).ok(),
        }
    }

    fn collect_names(&mut self, tree: &Dict<'_>, depth: usize) {
        if depth > DEEPEST_NAMES || self.names.len() > MOST_ENTRIES {
            return;
        }
        if let Some(names) = tree.get::<Array<'_>>(b"Names") {
            let mut pairs = names.iter::<Object<'_>>();
            while let (Some(name), Some(target)) = (pairs.next(), pairs.next()) {
                if let (Object::String(name), Some(page)) = (name, self.page(&target)) {
                    self.names.insert(name.as_bytes().to_vec(), page);
                }
            }
        }
        if let Some(kids) = tree.get::<Array<'_>>(b"Kids") {
            for kid in kids.iter::<Dict<'_>>() {
                self.collect_names(&kid, depth + 1);
            }
        }
    }
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, or bytes that are close to Latin-1.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => {
            let units: Vec<u16> =
                rest.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        bytes => bytes.iter().map(|byte| *byte as char).collect(),
    };
    text.chars().filter(|c| !c.is_control()).collect()
}
