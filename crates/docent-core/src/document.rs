//! A page of the book, as every parser hands it on: sections under headings, blocks under sections.
//!
//! A document is what a reader sees on the published page, with the markup gone and the
//! structure kept. Text is light Markdown: inline code keeps its backticks, code blocks
//! their fences, lists their markers and tables their bars; emphasis, links and tags are
//! reduced to their words.
//!
//! Invariant: every heading carries the anchor the published site gives it, or none when
//! the site gives none. Nothing downstream computes an anchor again.

use serde::{Deserialize, Serialize};

/// One source file or URL, parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Names the page across ingests: the path inside its source, or the id in a corpus.
    pub id: String,
    /// Where readers find the page, without an anchor.
    pub url: String,
    /// The page's title.
    pub title: String,
    /// The part of the book the page belongs to.
    pub module: String,
    /// The page's text in reading order; a flat list of the heading tree.
    pub sections: Vec<Section>,
}

/// The text from one heading to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The heading that opens the section; none for text before the first heading.
    pub heading: Option<Heading>,
    /// The headings above this one and itself, outermost first, the page's title left out.
    pub hierarchy: Vec<String>,
    /// What stands under the heading, up to the next one.
    pub blocks: Vec<Block>,
}

/// A heading as published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Its words.
    pub text: String,
    /// The id the site gives it, without `#`.
    pub anchor: Option<String>,
}

/// A run of text that belongs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// What it is, which decides how it may be cut.
    pub kind: BlockKind,
    /// Its text; never empty, no blank lines at either end.
    pub text: String,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockKind {
    /// A paragraph or a list.
    Text,
    /// A fenced code block, fences included.
    Code,
    /// A table, one row a line.
    Table,
    /// A paragraph inside a note, tip or warning; the first one names it.
    Admonition,
}

impl BlockKind {
    /// Cutting through the middle would make both halves useless.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::Code | Self::Table)
    }
}

/// Something a parser did not understand or had to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The file or URL it is about.
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

/// What a parser returns: what it understood, and what it did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The title found in the text, if any.
    pub title: Option<String>,
    /// The sections found.
    pub sections: Vec<Section>,
    /// What was left out, without paths: the caller knows the file.
    pub warnings: Vec<String>,
}

/// Collects blocks under headings and keeps the heading path.
///
/// The same builder serves every format, so that all agree on what a section is.
#[derive(Debug, Default)]
pub struct SectionBuilder {
    done: Vec<Section>,
    current: Section,
    open: Vec<(u8, String)>,
}

impl SectionBuilder {
    /// Starts a new section. A heading of level 1 is the page's title and leaves the
    /// hierarchy empty.
    pub fn heading(&mut self, level: u8, text: &str, anchor: Option<String>) {
        self.close();
        self.open.retain(|(above, _)| *above < level);
        if level > 1 {
            self.open.push((level, text.to_owned()));
        }
        self.current = Section {
            heading: Some(Heading { level, text: text.to_owned(), anchor }),
            hierarchy: self.open.iter().map(|(_, text)| text.clone()).collect(),
            blocks: Vec::new(),
        };
    }

    /// Adds a block to the section under way; blank text is ignored.
    pub fn block(&mut self, kind: BlockKind, text: &str) {
        let text = text.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.current.blocks.push(Block { kind, text: text.to_owned() });
        }
    }

    /// The sections collected, headings without text included.
    pub fn finish(mut self) -> Vec<Section> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        let section = std::mem::take(&mut self.current);
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
    fn blank_blocks_are_dropped() {
        let mut builder = SectionBuilder::default();
        builder.block(BlockKind::Text, " \n ");
        assert!(builder.finish().is_empty());
    }
}
