//! Cut a parsed document into the passages that are embedded and cited.
//!
//! A chunk is the unit of everything downstream: one vector, one search hit, one
//! citation. It never crosses a heading, and it knows its anchor.
//!
//! Invariant: cutting is a pure function of the document. The same page gives the
//! same chunk ids, so re-indexing an unchanged site writes nothing.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::document::{Block, BlockKind, Document, Section};
use crate::sentence::sentences;

/// A passage of the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Stable while the page, the section and the words stay the same.
    pub id: Uuid,
    /// The page it is from.
    pub document_id: String,
    /// Its place on the page, from 0.
    pub index: u32,
    /// The section of the page it is from, from 0.
    pub section: u32,
    /// Where to read it: the page with the section's anchor.
    pub url: String,
    /// The page's title.
    pub page_title: String,
    /// The nearest heading; none above the first one.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub heading_hierarchy: Vec<String>,
    /// The book it is from, when an index has several; set by whoever puts them together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// The part of the book.
    pub module_name: String,
    /// The passage itself, which quotes are taken from.
    pub content: String,
    /// How many tokens the embedder reads, title line included.
    pub token_count: u32,
}

impl Chunk {
    /// What is embedded: where the passage stands, then the passage.
    pub fn embedded_text(&self) -> String {
        format!("{}\n{}", title_line(&self.page_title, &self.heading_hierarchy), self.content)
    }

    /// `Title > Heading > Heading`.
    pub fn breadcrumb(&self) -> String {
        title_line(self.title(), &self.heading_hierarchy)
    }

    /// The page's title, or its name when it has none.
    pub fn title(&self) -> &str {
        if self.page_title.trim().is_empty() { &self.document_id } else { &self.page_title }
    }
}

/// Counts tokens as an embedder does, without its marks at both ends.
pub type TokenCounter<'a> = &'a (dyn Fn(&str) -> usize + Sync);

/// Tokens the embedder adds around every text.
const MARKS: usize = 2;

/// A title line may take this share of a chunk; what is longer is the author's poetry.
const TITLE_SHARE: usize = 4;

/// Cuts `document` into chunks of at most `limit` tokens, title line included.
pub fn chunk(document: &Document, limit: usize, count: TokenCounter<'_>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (number, section) in document.sections.iter().enumerate() {
        let title = title_line(&document.title, &section.hierarchy);
        let title_tokens = count(&title).min(limit / TITLE_SHARE);
        let room = limit.saturating_sub(title_tokens + MARKS).max(16);
        for (ordinal, (content, counted)) in pack(&section.blocks, room, count).into_iter().enumerate() {
            let tokens = counted.unwrap_or_else(|| count(&content)) + title_tokens + MARKS;
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
                content,
                token_count: tokens as u32,
            });
        }
    }
    chunks
}

fn title_line(title: &str, hierarchy: &[String]) -> String {
    let mut line = title.to_owned();
    for heading in hierarchy {
        line.push_str(" > ");
        line.push_str(heading);
    }
    line
}

fn url(document: &Document, section: &Section) -> String {
    match section.heading.as_ref().and_then(|heading| heading.anchor.as_deref()) {
        Some(anchor) => format!("{}#{}", document.url, crate::layout::encode_fragment(anchor)),
        None => document.url.clone(),
    }
}

fn id(document: &Document, section: &Section, ordinal: usize, content: &str) -> Uuid {
    let anchor = section.heading.as_ref().and_then(|heading| heading.anchor.as_deref()).unwrap_or_default();
    let name =
        [document.id.as_str(), &section.hierarchy.join("\u{1f}"), anchor, &ordinal.to_string(), content];
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.join("\u{1e}").as_bytes())
}

/// Fills chunks with whole blocks in order; a block is cut only when it alone is too long. A chunk
/// that is one block was counted already, and counting is most of the work.
fn pack(blocks: &[Block], room: usize, count: TokenCounter<'_>) -> Vec<(String, Option<usize>)> {
    let mut chunks: Vec<(String, Option<usize>)> = Vec::new();
    let mut used = 0;
    let mut add = |text: String, tokens: usize, is_block: bool| match chunks.last_mut() {
        Some((open, counted)) if used + tokens <= room => {
            open.push_str("\n\n");
            open.push_str(&text);
            *counted = None;
            used += tokens;
        }
        _ => {
            chunks.push((text, is_block.then_some(tokens)));
            used = tokens;
        }
    };
    for block in blocks {
        let tokens = count(&block.text);
        if tokens <= room {
            add(block.text.clone(), tokens, true);
        } else {
            cut(block, room, count).into_iter().for_each(|(text, tokens)| add(text, tokens, false));
        }
    }
    chunks
}

/// Cuts one block that is too long: code and tables at lines, text at sentences.
fn cut(block: &Block, room: usize, count: TokenCounter<'_>) -> Vec<(String, usize)> {
    match block.kind {
        BlockKind::Code => {
            let (open, close) = fences(&block.text);
            let (open, close) = (format!("{open}\n"), format!("\n{close}"));
            // Fences as long as the code, around a run of backticks, leave no room for it.
            let fits = count(&open) + count(&close) <= room / 2;
            let (open, close) = if fits { (open.as_str(), close.as_str()) } else { ("", "") };
            let body: Vec<_> =
                block.text.lines().skip(1).take(block.text.lines().count().saturating_sub(2)).collect();
            group(&body, "\n", room, open, close, count)
        }
        BlockKind::Table => {
            let lines: Vec<_> = block.text.lines().collect();
            let header = lines.iter().take(2).copied().collect::<Vec<_>>().join("\n");
            let header = if count(&header) * 2 < room { format!("{header}\n") } else { String::new() };
            let skipped = if header.is_empty() { 0 } else { 2 };
            group(&lines[skipped.min(lines.len())..], "\n", room, &header, "", count)
        }
        BlockKind::Text | BlockKind::Admonition => {
            let spans = sentences(&block.text);
            // A sentence is joined to the next as it was: by a space or a line break.
            let parts: Vec<_> = spans
                .iter()
                .enumerate()
                .map(|(number, span)| {
                    let from = if number == 0 { span.start } else { spans[number - 1].end };
                    &block.text[from..span.end]
                })
                .collect();
            group(&parts, "", room, "", "", count)
        }
    }
}

fn fences(code: &str) -> (&str, &str) {
    (code.lines().next().unwrap_or("```"), code.lines().last().unwrap_or("```"))
}

/// Joins parts up to `room` tokens; a part that alone is too long is cut between words.
fn group(
    parts: &[&str],
    separator: &str,
    room: usize,
    before: &str,
    after: &str,
    count: TokenCounter<'_>,
) -> Vec<(String, usize)> {
    let wrapping = count(before) + count(after);
    let room = room.saturating_sub(wrapping).max(8);
    let mut groups: Vec<(String, usize)> = Vec::new();
    for part in parts {
        for (part, tokens) in fitting(part, room, count) {
            match groups.last_mut() {
                Some((open, used)) if *used + tokens <= room => {
                    open.push_str(separator);
                    open.push_str(part);
                    *used += tokens;
                }
                _ => groups.push((part.trim_start_matches([' ', '\n']).to_owned(), tokens)),
            }
        }
    }
    groups.retain(|(text, _)| !text.trim().is_empty());
    groups
        .into_iter()
        .map(|(text, tokens)| (format!("{before}{}{after}", text.trim_end()), tokens + wrapping))
        .collect()
}

/// Halves a text until its parts fit, at a space if there is one.
fn fitting<'a>(text: &'a str, room: usize, count: TokenCounter<'_>) -> Vec<(&'a str, usize)> {
    // More characters than this cannot be one readable unit: do not even count them whole.
    let tokens = if text.len() > room * 64 { usize::MAX } else { count(text) };
    if tokens <= room || text.chars().nth(1).is_none() {
        return vec![(text, tokens)];
    }
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let at = text[..middle].rfind(char::is_whitespace).filter(|at| *at > 0);
    let at = at.or_else(|| text[middle..].find(char::is_whitespace).map(|at| middle + at)).unwrap_or(middle);
    let (left, right) = text.split_at(at.min(text.len()));
    if left.is_empty() || right.is_empty() {
        return vec![(text, tokens)];
    }
    let mut parts = fitting(left, room, count);
    parts.extend(fitting(right, room, count));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::SectionBuilder;
    use proptest::prelude::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn page(build: impl FnOnce(&mut SectionBuilder)) -> Document {
        let mut builder = SectionBuilder::default();
        build(&mut builder);
        Document {
            id: "a.md".into(),
            url: "https://x.org/a".into(),
            title: "Page".into(),
            module: "m".into(),
            sections: builder.finish(),
        }
    }

    fn check(document: &Document, limit: usize, expected: &[&str]) {
        let shown: Vec<_> = chunk(document, limit, &words)
            .iter()
            .map(|chunk| format!("{}: {}", chunk.url.trim_start_matches("https://x.org/a"), chunk.content))
            .collect();
        assert_eq!(shown, expected);
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
    fn code_too_long_is_cut_at_lines_and_fenced_again() {
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
    fn fences_that_leave_no_room_for_code_are_left_out() {
        let fence = "`".repeat(400);
        let page =
            page(|builder| builder.block(BlockKind::Code, &format!("{fence}\n{}\n{fence}", &fence[1..])));
        let by_length = |text: &str| text.len();
        let chunks = chunk(&page, 100, &by_length);
        assert_eq!(chunks.iter().map(|chunk| chunk.content.len()).sum::<usize>(), 399);
        assert!(chunks.iter().all(|chunk| chunk.token_count <= 100), "{chunks:?}");
    }

    #[test]
    fn ids_depend_on_page_section_and_words_only() {
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
