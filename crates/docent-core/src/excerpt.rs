//! Cut passages to the parts that matter for a question, before they are sent to a model.
//!
//! A part matters if one of its statements may answer the question, or is the most likely one of its passage. The statements
//! directly before and after are kept too, because they often say what it is about.
//!
//! Invariant: an excerpt consists of whole statements of its passage, in their order; a mark shows where others were left out.

use std::borrow::Cow;
use std::ops::Range;

use crate::read::Read;
use crate::retrieve::Hit;

/// A statement is kept if it is at least this likely to answer, relative to the most likely statement of all passages.
/// With this value no answer was lost on questions about eight books, and a quarter of the words was (`docs/quality.md`).
const LEAST_SHARE: f32 = 0.05;

/// Passages with at most this many words are kept whole.
const SHORT: usize = 40;

/// Stands for statements that were left out.
const LEFT_OUT: &str = "[…]";

/// A passage as it is sent to a model.
pub struct Excerpt<'a> {
    /// The passage.
    pub hit: &'a Hit,
    /// The part of its text that is sent.
    pub text: Cow<'a, str>,
}

impl<'a> Excerpt<'a> {
    /// The whole passage.
    pub fn whole(hit: &'a Hit) -> Self {
        Self { hit, text: Cow::Borrowed(&hit.chunk.content) }
    }
}

/// Cuts the hits of a search; `read` are their statements. Hits without statements are kept whole.
pub fn excerpts<'a>(hits: &'a [Hit], read: &[Read]) -> Vec<Excerpt<'a>> {
    let best = |part: usize| chances(read.iter().filter(|read| read.part == part));
    let cut = |(passage, hit): (usize, &'a Hit)| {
        let mut own: Vec<&Read> = read.iter().filter(|read| read.passage == passage).collect();
        own.sort_by_key(|read| read.span.start);
        let content = &hit.chunk.content;
        if own.is_empty() || content.split_whitespace().count() <= SHORT {
            return Excerpt::whole(hit);
        }
        let most = chances(own.iter().copied());
        let matters: Vec<bool> = own
            .iter()
            .map(|read| read.chance >= most || read.chance >= LEAST_SHARE * best(read.part))
            .collect();
        let spans = own.iter().enumerate().filter(|(at, _)| {
            let around = at.saturating_sub(1)..(at + 2).min(matters.len());
            matters[around].contains(&true)
        });
        Excerpt { hit, text: joined(content, spans.map(|(_, read)| read.span.clone())) }
    };
    hits.iter().enumerate().map(cut).collect()
}

/// The highest probability of these statements.
fn chances<'a>(read: impl Iterator<Item = &'a Read>) -> f32 {
    read.map(|read| read.chance).fold(0.0, f32::max)
}

/// These spans of a text with marks for what is between them.
fn joined(content: &str, spans: impl Iterator<Item = Range<usize>>) -> Cow<'_, str> {
    let is_gap = |gap: &str| !gap.trim().is_empty();
    let mut text = String::new();
    let mut at = 0;
    for span in spans {
        // Statements of a list may share their lead-in.
        let start = span.start.max(at);
        let between = &content[at..start];
        if is_gap(between) {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(LEFT_OUT);
            text.push('\n');
        } else {
            text.push_str(between);
        }
        text.push_str(&content[start..span.end.max(start)]);
        at = at.max(span.end);
    }
    if !is_gap(&content[at..]) && !text.contains(LEFT_OUT) {
        return Cow::Borrowed(content);
    }
    if is_gap(&content[at..]) {
        text.push('\n');
        text.push_str(LEFT_OUT);
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fuse::Fused;
    use crate::language::Language;
    use crate::read::read;
    use crate::terms::Analyzer;
    use crate::testing::chunk;

    const LONG: &str = "Pasta is boiled in salted water until it is soft. Sauces are made of tomatoes, cream or cheese, \
        and are served hot. Wine goes well with both of them. A node is a participant in the graph. It has a name. \
        Bread is baked in the oven for half an hour, and cools on a rack. Cakes need sugar and eggs, and an oven as well. \
        Tea is brewed in a pot for a few minutes.";

    fn excerpts_of(question: &str, contents: &[&str]) -> Vec<String> {
        let analyzer = Analyzer::new(Language::default());
        let chunks =
            contents.iter().zip(0..).map(|(content, number)| Arc::new(chunk("page", number, content)));
        let fused: Vec<Fused> =
            chunks.map(|chunk| Fused { chunk, score: 1.0, lexical: 1.0, dense: 1.0, page: 1.0 }).collect();
        let terms: Vec<_> = analyzer.distinct(question).into_iter().map(|term| (term, 1.0)).collect();
        let read = read(question, &terms, &fused, &analyzer);
        let hits: Vec<Hit> = fused
            .into_iter()
            .map(|fused| Hit { chunk: fused.chunk, score: 1.0, rerank_score: None })
            .collect();
        excerpts(&hits, &read).into_iter().map(|excerpt| excerpt.text.into_owned()).collect()
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        assert_eq!(
            excerpts_of("What is a node?", &[LONG]),
            [
                "[…]\nWine goes well with both of them. A node is a participant in the graph. It has a name.\n[…]"
            ]
        );
    }

    #[test]
    fn short_passages_are_whole() {
        let short = "A node is a participant. Pasta is boiled.";
        assert_eq!(excerpts_of("What is a node?", &[short]), [short]);
    }

    #[test]
    fn something_of_every_passage_is_kept() {
        let texts = excerpts_of("What is a node?", &["A node is a participant in the graph.", LONG, LONG]);
        assert!(texts.iter().all(|text| text.contains("A node is a participant")), "{texts:?}");
    }

    #[test]
    fn hits_without_statements_are_whole() {
        let hit = Hit { chunk: Arc::new(chunk("page", 0, LONG)), score: 1.0, rerank_score: None };
        assert_eq!(excerpts(&[hit], &[])[0].text, LONG);
    }

    #[test]
    fn spans_may_overlap_and_touch() {
        let content = "Lead-in: one, two. Three.";
        assert_eq!(joined(content, [0..12, 0..18, 19..25].into_iter()), content);
        assert_eq!(joined(content, std::iter::once(19..25)), "[…]\nThree.");
    }
}
