//! Cut a parsed document into the passages that are embedded and cited.
//!
//! A chunk is the unit of everything downstream: one vector, one search hit, one citation. It never crosses a
//! heading, and it knows its anchor.
//!
//! Invariant: cutting is a pure function of the document. The same page gives the same chunk ids, so
//! re-ingesting an unchanged page reuses its vectors.

pub mod pack;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::edition::Edition;
use crate::section_kind::{SectionKind, section_kind};
use docent_parse::document::{Document, Figure, Section};

/// A passage of the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// Stays the same as long as page, section and text stay the same.
    pub id: Uuid,
    /// Id of the page.
    pub document_id: String,
    /// Position of the chunk on the page, from 0.
    pub index: u32,
    /// Position of its section on the page, from 0.
    pub section: u32,
    /// URL of the page with the anchor of the section.
    pub url: String,
    /// Title of the page; may be empty.
    pub page_title: String,
    /// The closest heading; none above the first heading.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub heading_hierarchy: Vec<String>,
    /// Name of the book; empty if the index has only one. Set when several sources are combined.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// Name of the module.
    pub module_name: String,
    /// Version and locale.
    #[serde(default, skip_serializing_if = "Edition::is_plain")]
    pub edition: Edition,
    /// The text of the passage. Quotes are taken from it.
    pub content: String,
    /// Number of tokens for the embedder, including the title line.
    pub token_count: u32,
    /// The kind of section the passage is from.
    #[serde(default, skip_serializing_if = "SectionKind::is_body")]
    pub section_kind: SectionKind,
    /// Whether the passage begins in the middle of a block that was too long for one passage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Whether the passage ends in the middle of such a block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breaks_off: bool,
    /// The images whose captions are in the passage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// The file name of the book's own copy of the PDF that the page is; none for other formats, and without a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdf: Option<String>,
}

impl Chunk {
    /// Whether this passage is directly before or after another one in the same section.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.section == other.section
            && self.index.abs_diff(other.index) == 1
            && self.document_id == other.document_id
    }

    /// A passage at the beginning of a page, without headings.
    pub fn new(id: Uuid, document_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            id,
            document_id: document_id.into(),
            index: 0,
            section: 0,
            url: String::new(),
            page_title: String::new(),
            heading: None,
            heading_hierarchy: Vec::new(),
            book_name: String::new(),
            module_name: String::new(),
            edition: Edition::default(),
            content: content.into(),
            token_count: 0,
            section_kind: SectionKind::default(),
            continues: false,
            breaks_off: false,
            figures: Vec::new(),
            pdf: None,
        }
    }

    /// The text to embed: the title line, then the passage.
    pub fn embedded_text(&self) -> String {
        format!("{}\n{}", title_line(&self.page_title, &self.heading_hierarchy), self.content)
    }

    /// `Title > Heading > Heading`.
    pub fn breadcrumb(&self) -> String {
        title_line(self.title(), &self.heading_hierarchy)
    }

    /// The title of the page, or its id if it has none.
    pub fn title(&self) -> &str {
        if self.page_title.trim().is_empty() { &self.document_id } else { &self.page_title }
    }
}

/// Counts tokens as the embedder does, without the special tokens it adds.
pub type TokenCounter<'a> = &'a (dyn Fn(&str) -> usize + Sync);

/// Special tokens the embedder adds around every text.
const MARKS: usize = 2;

/// A title line counts for at most 1/`TITLE_SHARE` of a chunk, however long it is.
const TITLE_SHARE: usize = 4;

/// Cuts `document` into chunks of at most `limit` tokens, title line included.
pub fn chunk(document: &Document, limit: usize, count: TokenCounter<'_>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (number, section) in document.sections.iter().enumerate() {
        let title = title_line(&document.title, &section.hierarchy);
        let title_tokens = count(&title).min(limit / TITLE_SHARE);
        let room = limit.saturating_sub(title_tokens + MARKS).max(16);
        let kind = section_kind(&document.title, section);
        let mut figures: Vec<&Figure> = section.figures.iter().collect();
        for (ordinal, packed) in pack::pack(&section.blocks, room, count).into_iter().enumerate() {
            let content = packed.text;
            // A caption belongs to the first passage that has it; one that was cut in two belongs to none.
            let (own, later): (Vec<_>, Vec<_>) =
                figures.into_iter().partition(|figure| content.contains(&figure.caption));
            figures = later;
            let tokens = packed.tokens.unwrap_or_else(|| count(&content)) + title_tokens + MARKS;
            chunks.push(Chunk {
                id: id(document, section, ordinal, &content),
                document_id: document.id.clone(),
                index: chunks.len() as u32,
                section: number as u32,
                url: url(document, section),
                page_title: document.title.clone(),
                heading: section.hierarchy.last().cloned(),
                heading_hierarchy: section.hierarchy.clone(),
                book_name: String::new(),
                module_name: document.module.clone(),
                edition: Edition {
                    version: document.version.clone(),
                    locale: document.locale.clone(),
                    ..Edition::default()
                },
                content,
                token_count: tokens as u32,
                section_kind: kind,
                continues: packed.continues,
                breaks_off: packed.breaks_off,
                figures: own.into_iter().cloned().collect(),
                pdf: document.pdf.clone(),
            });
        }
    }
    chunks
}

fn title_line(title: &str, hierarchy: &[String]) -> String {
    let mut line = title.to_owned();
    // The first heading of a page often repeats its title.
    let is_repeated = hierarchy.first().is_some_and(|heading| heading == title);
    for heading in &hierarchy[usize::from(is_repeated)..] {
        line.push_str(" > ");
        line.push_str(heading);
    }
    line
}

fn url(document: &Document, section: &Section) -> String {
    match section.heading.as_ref().and_then(|heading| heading.anchor.as_deref()) {
        Some(anchor) => format!("{}#{}", document.url, docent_parse::layout::encode_fragment(anchor)),
        None => document.url.clone(),
    }
}

fn id(document: &Document, section: &Section, ordinal: usize, content: &str) -> Uuid {
    let anchor = section.heading.as_ref().and_then(|heading| heading.anchor.as_deref()).unwrap_or_default();
    let name =
        [document.id.as_str(), &section.hierarchy.join("\u{1f}"), anchor, &ordinal.to_string(), content];
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.join("\u{1e}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_parse::document::{BlockKind, SectionBuilder};
    use proptest::prelude::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn page(build: impl FnOnce(&mut SectionBuilder)) -> Document {
        let mut builder = SectionBuilder::default();
        build(&mut builder);
        Document::new("a.md", "https://x.org/a", "Page").with_module("m").with_sections(builder.finish())
    }

    fn check(document: &Document, limit: usize, expected: &[&str]) {
        let shown: Vec<_> = chunk(document, limit, &words)
            .iter()
            .map(|chunk| format!("{}: {}", chunk.url.trim_start_matches("https://x.org/a"), chunk.content))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_heading_that_repeats_the_title_is_named_once() {
        let hierarchy =
            |headings: &[&str]| headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
        assert_eq!(title_line("Page", &hierarchy(&["Page", "Part"])), "Page > Part");
        assert_eq!(title_line("Page", &hierarchy(&["Part", "Page"])), "Page > Part > Page");
        assert_eq!(title_line("Page", &[]), "Page");
    }

    #[test]
    fn a_chunk_stops_at_the_next_heading() {
        let page = page(|builder| {
            builder.heading(2, "Install", Some("install".into()));
            builder.block(BlockKind::Text, "Run it.");
            builder.heading(2, "Use", Some("use".into()));
            builder.block(BlockKind::Text, "Ask it.");
        });
        check(&page, 100, &["#install: Run it.", "#use: Ask it."]);
    }

    #[test]
    fn paragraphs_share_a_chunk_until_it_is_full() {
        let page = page(|builder| {
            for word in ["a", "b", "c"] {
                builder.block(BlockKind::Text, &format!("{word} ").repeat(8));
            }
        });
        let contents: Vec<_> = chunk(&page, 20, &words).into_iter().map(|c| words(&c.content)).collect();
        assert_eq!(contents, [16, 8]);
    }

    #[test]
    fn code_is_kept_whole_when_it_fits() {
        let page = page(|builder| {
            builder.block(BlockKind::Text, &"word ".repeat(12));
            builder.block(BlockKind::Code, "```sh\none two three\nfour five\n```");
        });
        let chunks = chunk(&page, 20, &words);
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[1].content, "```sh\none two three\nfour five\n```");
    }

    #[test]
    fn long_code_is_cut_at_lines_and_fenced_again() {
        let lines = "a b c d e f g h\n".repeat(4);
        let page = page(|builder| builder.block(BlockKind::Code, &format!("```sh\n{lines}```")));
        for chunk in chunk(&page, 22, &words) {
            assert!(
                chunk.content.starts_with("```sh\na b") && chunk.content.ends_with("h\n```"),
                "{}",
                chunk.content
            );
        }
    }

    #[test]
    fn a_long_table_repeats_its_header() {
        let rows = "| x | y |\n".repeat(12);
        let page =
            page(|builder| builder.block(BlockKind::Table, &format!("| a | b |\n| --- | --- |\n{rows}")));
        let chunks = chunk(&page, 40, &words);
        assert!(chunks.len() > 1);
        for chunk in chunks {
            assert!(chunk.content.starts_with("| a | b |\n| --- | --- |\n| x"), "{}", chunk.content);
        }
    }

    #[test]
    fn fences_too_long_for_a_chunk_are_dropped() {
        let fence = "`".repeat(400);
        let page =
            page(|builder| builder.block(BlockKind::Code, &format!("{fence}\n{}\n{fence}", &fence[1..])));
        let by_length = |text: &str| text.len();
        let chunks = chunk(&page, 100, &by_length);
        assert_eq!(chunks.iter().map(|chunk| chunk.content.len()).sum::<usize>(), 399);
        assert!(chunks.iter().all(|chunk| chunk.token_count <= 100), "{chunks:?}");
    }

    #[test]
    fn a_figure_belongs_to_the_passage_with_its_caption() {
        let page = page(|builder| {
            builder.block(BlockKind::Text, &"word ".repeat(12));
            builder.figure("The graph of nodes", "graph.png");
            builder.block(BlockKind::Text, &format!("The graph of nodes\n{}", "more ".repeat(10)));
        });
        let figures: Vec<_> = chunk(&page, 20, &words).into_iter().map(|chunk| chunk.figures.len()).collect();
        assert_eq!(figures, [0, 1]);
    }

    #[test]
    fn ids_depend_on_page_section_and_text() {
        let make = |text: &str| {
            let page = page(|builder| {
                builder.heading(2, "A", Some("a".into()));
                builder.block(BlockKind::Text, text);
            });
            chunk(&page, 50, &words)[0].id
        };
        assert_eq!(make("one"), make("one"));
        assert_ne!(make("one"), make("two"));
    }

    fn any_block() -> impl Strategy<Value = (BlockKind, String)> {
        let kind = prop_oneof![Just(BlockKind::Text), Just(BlockKind::Code), Just(BlockKind::Table)];
        (kind, "[a-z]{1,9}([ .\n][a-zA-Z|é]{1,9}){0,120}").prop_map(|(kind, text)| match kind {
            BlockKind::Code => (kind, format!("```\n{text}\n```")),
            kind => (kind, text),
        })
    }

    proptest! {
        #[test]
        fn no_chunk_is_too_long_and_no_word_is_lost(blocks in prop::collection::vec(any_block(), 1..6), limit in 40usize..120) {
            let page = page(|builder| {
                for (number, (kind, text)) in blocks.iter().enumerate() {
                    if number % 3 == 2 {
                        builder.heading(2, "Part", None);
                    }
                    builder.block(*kind, text);
                }
            });
            let chunks = chunk(&page, limit, &words);
            let all: String = chunks.iter().map(|chunk| format!(" {} ", chunk.content)).collect();
            let kept: std::collections::HashSet<_> = all.split_whitespace().collect();
            for section in &page.sections {
                for word in section.blocks.iter().flat_map(|block| block.text.split_whitespace()) {
                    prop_assert!(kept.contains(word), "lost {word}");
                }
            }
            for (place, chunk) in chunks.iter().enumerate() {
                let length = words(&chunk.content);
                prop_assert!(length < limit, "{length} words in {:?}", chunk.content);
                prop_assert!(!chunk.content.trim().is_empty());
                prop_assert!(chunk.token_count as usize > length);
                prop_assert_eq!(chunk.index as usize, place);
            }
        }

        #[test]
        fn cutting_twice_gives_the_same_ids(blocks in prop::collection::vec(any_block(), 1..4)) {
            let page = page(|builder| for (kind, text) in &blocks { builder.block(*kind, text) });
            prop_assert_eq!(chunk(&page, 60, &words), chunk(&page, 60, &words));
        }
    }
}
