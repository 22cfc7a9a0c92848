//! A parsed page: sections under headings, blocks under sections.
//!
//! A document contains what the published page shows, without markup but with its structure. Text is light
//! Markdown: inline code keeps its backticks, code blocks their fences, lists their markers and tables their
//! bars; emphasis, links and tags are reduced to their text.
//!
//! Invariant: every heading has the anchor that the published site gives it, or none if the site gives none.
//! Nothing downstream computes anchors.

use serde::{Deserialize, Serialize};

/// A parsed page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// Identifies the page across ingests: the path inside its source, or the id in a dataset.
    pub id: String,
    /// URL of the published page, without an anchor.
    pub url: String,
    /// Title of the page.
    pub title: String,
    /// Name of the module the page belongs to.
    pub module: String,
    /// The version of the book that the page is about, if the book has versions.
    pub version: Option<String>,
    /// The code of the locale the page is written in, if the book has several.
    pub locale: Option<String>,
    /// The work that the version and the locale are of; each work in a book has its own. Empty for the book itself.
    pub work: String,
    /// The sections in reading order, as a flat list.
    pub sections: Vec<Section>,
    /// The file name of the book's own copy of the PDF that the page is; none for other formats, and without a copy.
    pub pdf: Option<String>,
}

impl Document {
    /// A page without text that belongs to no module.
    pub fn new(id: impl Into<String>, url: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            url: url.into(),
            title: title.into(),
            module: String::new(),
            version: None,
            locale: None,
            work: String::new(),
            sections: Vec::new(),
            pdf: None,
        }
    }

    /// The same page in this module.
    pub fn with_module(self, module: impl Into<String>) -> Self {
        Self { module: module.into(), ..self }
    }

    /// The same page with these sections.
    pub fn with_sections(self, sections: Vec<Section>) -> Self {
        Self { sections, ..self }
    }
}

/// The text under one heading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Section {
    /// The heading of the section; none for text before the first heading.
    pub heading: Option<Heading>,
    /// The headings from the outermost to this one, without the title of the page.
    pub hierarchy: Vec<String>,
    /// The text between this heading and the next.
    pub blocks: Vec<Block>,
    /// The images in the text that have words of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

/// An image, and the words that the text has in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Figure {
    /// Its caption or description, exactly as it is in a block of the section.
    pub caption: String,
    /// Where the image is: as the page refers to it.
    pub image: String,
}

impl Figure {
    /// An image with this caption.
    pub fn new(caption: impl Into<String>, image: impl Into<String>) -> Self {
        Self { caption: caption.into(), image: image.into() }
    }
}

/// A heading as it appears on the published page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Heading {
    /// Level of the heading, 1–6.
    pub level: u8,
    /// Text of the heading.
    pub text: String,
    /// The id of the heading on the published page, without `#`.
    pub anchor: Option<String>,
}

/// A paragraph, list, table, code block or note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Block {
    /// The kind of block, which decides how it may be cut.
    pub kind: BlockKind,
    /// The text; never empty, without blank lines at the start or end.
    pub text: String,
}

impl Block {
    /// A block of this kind.
    pub fn new(kind: BlockKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockKind {
    /// A paragraph or a list.
    Text,
    /// A code block, including its fences.
    Code,
    /// A table, one row per line.
    Table,
    /// A paragraph inside a note, tip or warning; the first one begins with its name.
    Admonition,
}

impl BlockKind {
    /// Whether the block should not be cut, because both halves would be useless.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::Code | Self::Table)
    }
}

/// Something that a parser did not understand or skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// The file or URL the warning is about.
    pub path: String,
    /// What happened, in a few words.
    pub message: String,
}

impl Warning {
    /// A warning about `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// The result of parsing: what was understood, and warnings about the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parsed {
    /// The title found in the text, if any.
    pub title: Option<String>,
    /// The sections found.
    pub sections: Vec<Section>,
    /// Warnings without paths, since the caller knows the file.
    pub warnings: Vec<String>,
}

/// Collects blocks under headings and tracks the heading hierarchy.
///
/// All formats use this builder, so that sections are the same in all of them.
#[derive(Debug, Default)]
pub struct SectionBuilder {
    done: Vec<Section>,
    current: Section,
    open: Vec<(u8, String)>,
}

impl SectionBuilder {
    /// Starts a new section. A heading of level 1 is the title of the page and is not part of the hierarchy.
    pub fn heading(&mut self, level: u8, text: &str, anchor: Option<String>) {
        self.close();
        self.open.retain(|(above, _)| *above < level);
        if level > 1 {
            self.open.push((level, text.to_owned()));
        }
        self.current = Section {
            heading: Some(Heading { level, text: text.to_owned(), anchor }),
            hierarchy: self.open.iter().map(|(_, text)| text.clone()).collect(),
            ..Section::default()
        };
    }

    /// Adds an image whose caption or description is, or will be, in a block of the current section. Images without
    /// words, and images that are part of the page itself, are ignored. If
    /// the last image is added again, its caption replaces its description.
    pub fn figure(&mut self, caption: &str, image: &str) {
        let caption = caption.split_whitespace().collect::<Vec<_>>().join(" ");
        if caption.is_empty() || image.is_empty() || image.starts_with("data:") {
            return;
        }
        match self.current.figures.last_mut() {
            Some(last) if last.image == image => last.caption = caption,
            _ => self.current.figures.push(Figure { caption, image: image.to_owned() }),
        }
    }

    /// Adds a block to the current section; blank text is ignored.
    pub fn block(&mut self, kind: BlockKind, text: &str) {
        let text = text.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.current.blocks.push(Block { kind, text: text.to_owned() });
        }
    }

    /// Returns the sections, including headings without text.
    pub fn finish(mut self) -> Vec<Section> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        let mut section = std::mem::take(&mut self.current);
        let blocks = &section.blocks;
        section.figures.retain(|figure| blocks.iter().any(|block| block.text.contains(&figure.caption)));
        if section.heading.is_some() || !section.blocks.is_empty() {
            self.done.push(section);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_follows_the_levels() {
        let mut builder = SectionBuilder::default();
        builder.block(BlockKind::Text, "before");
        builder.heading(1, "Title", None);
        builder.heading(2, "A", Some("a".into()));
        builder.heading(3, "B", Some("b".into()));
        builder.heading(2, "C", Some("c".into()));
        let paths: Vec<_> = builder.finish().into_iter().map(|s| s.hierarchy.join(" > ")).collect();
        assert_eq!(paths, ["", "", "A", "A > B", "C"]);
    }

    #[test]
    fn a_figure_is_kept_if_the_section_has_its_words() {
        let mut builder = SectionBuilder::default();
        builder.figure("The  wheel", "wheel.png");
        builder.figure("", "blank.png");
        builder.figure("Not shown", "hidden.png");
        builder.block(BlockKind::Text, "The wheel");
        assert_eq!(builder.finish()[0].figures, [Figure::new("The wheel", "wheel.png")]);
    }

    #[test]
    fn blank_blocks_are_dropped() {
        let mut builder = SectionBuilder::default();
        builder.block(BlockKind::Text, " \n ");
        assert!(builder.finish().is_empty());
    }
}
