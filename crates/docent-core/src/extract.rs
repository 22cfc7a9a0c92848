//! An answer without a model: the pieces of the passages that answer the question.
//!
//! Invariant: every piece is verbatim in its passage, and the answer is in reading order.

use std::collections::HashSet;
use std::ops::Range;

use crate::chunk::Chunk;
use crate::terms::Analyzer;
use crate::units::{Unit, UnitKind, units};

/// A piece chosen for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Extract {
    /// The passage, as an index into those given.
    pub passage: usize,
    /// The piece, in bytes of the passage's content.
    pub span: Range<usize>,
    /// What it is.
    pub kind: UnitKind,
    /// The paragraph of the passage it stands in.
    pub paragraph: usize,
    /// How well it answers; comparable within one answer.
    pub score: f32,
}

/// A passage to extract from, with its score in the ranking.
#[derive(Debug, Clone, Copy)]
pub struct Passage<'a> {
    /// The passage.
    pub chunk: &'a Chunk,
    /// 0–1, as ranked.
    pub score: f32,
}

/// What the question is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sought {
    Definition,
    Number,
    Name,
    Steps,
    Anything,
}

/// The most pieces of an answer.
pub const MOST_PIECES: usize = 3;

/// A piece must score at least this share of the best one.
const LEAST_SHARE: f32 = 0.55;

/// How much a heading above a piece counts for a term that the piece lacks.
const HEADING_SHARE: f32 = 0.5;

/// How much the sentence before counts for a term that the piece lacks.
const NEIGHBOUR_SHARE: f32 = 0.3;

/// Chooses at most `most` pieces that answer a question with these weighted terms.
pub fn extract(
    question: &str,
    terms: &[(String, f32)],
    passages: &[Passage<'_>],
    analyzer: &Analyzer,
    most: usize,
) -> Vec<Extract> {
    let total: f32 = terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
    let sought = sought(question);
    let best_passage = passages.iter().map(|passage| passage.score).fold(1e-6, f32::max);
    let mut candidates: Vec<(Extract, bool)> = Vec::new();
    for (number, passage) in passages.iter().enumerate() {
        let content = &passage.chunk.content;
        let pieces = units(content);
        let heading: HashSet<String> = analyzer.distinct(&passage.chunk.breadcrumb()).into_iter().collect();
        let mut before: HashSet<String> = HashSet::new();
        for (position, unit) in pieces.iter().enumerate() {
            let text = &content[unit.span.clone()];
            let own: HashSet<String> = analyzer.distinct(text).into_iter().collect();
            let covered: f32 = terms
                .iter()
                .map(|(term, weight)| {
                    let share = if own.contains(term) {
                        1.0
                    } else if heading.contains(term) {
                        HEADING_SHARE
                    } else if before.contains(term) {
                        NEIGHBOUR_SHARE
                    } else {
                        0.0
                    };
                    share * weight
                })
                .sum::<f32>()
                / total;
            let fit = fit(sought, text, unit, position, own.len());
            let score = (covered + fit) * (0.5 + 0.5 * passage.score / best_passage);
            let leads = text.ends_with(':')
                && matches!(pieces.get(position + 1), Some(next) if next.kind != UnitKind::Sentence);
            let extract = Extract {
                passage: number,
                span: unit.span.clone(),
                kind: unit.kind,
                paragraph: unit.paragraph,
                score,
            };
            candidates.push((extract, leads));
            before = own;
        }
    }
    choose(candidates, most)
}

/// The best pieces in reading order. A piece that leads into a list or a code block brings it along.
fn choose(candidates: Vec<(Extract, bool)>, most: usize) -> Vec<Extract> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| candidates[*b].0.score.total_cmp(&candidates[*a].0.score).then(a.cmp(b)));
    let Some(best) = order.first().map(|first| candidates[*first].0.score) else { return Vec::new() };
    let mut chosen: Vec<usize> = Vec::new();
    for number in order {
        if chosen.len() >= most || candidates[number].0.score < best * LEAST_SHARE {
            break;
        }
        if chosen.contains(&number) {
            continue;
        }
        chosen.push(number);
        if candidates[number].1 && !chosen.contains(&(number + 1)) {
            chosen.push(number + 1);
        }
    }
    // Passages stay in the order of their best piece; within one, the book's own order holds.
    let rank = |passage: usize| chosen.iter().position(|number| candidates[*number].0.passage == passage);
    let mut extracts: Vec<Extract> = chosen.iter().map(|number| candidates[*number].0.clone()).collect();
    extracts.sort_by_key(|extract| (rank(extract.passage), extract.span.start));
    extracts
}

/// What a piece gains for being the kind of text the question asks for.
fn fit(sought: Sought, text: &str, unit: &Unit, position: usize, terms: usize) -> f32 {
    let has_number = text.chars().any(|c| c.is_ascii_digit());
    let gain = match (sought, unit.kind) {
        (Sought::Definition, UnitKind::Sentence) => {
            let defines = [" is a ", " is an ", " is the ", " are ", " refers to ", " means "]
                .iter()
                .any(|verb| text.contains(verb));
            (if defines { 0.15 } else { 0.0 }) + (if position == 0 { 0.1 } else { 0.0 })
        }
        (Sought::Number, _) if has_number => 0.2,
        (Sought::Name, UnitKind::Sentence) if names(text) > 0 => 0.1,
        (Sought::Steps, UnitKind::Code | UnitKind::List) => 0.15,
        // A table answers what it was made for; elsewhere it is a lot to read.
        (_, UnitKind::Table) => -0.15,
        _ => 0.0,
    };
    // Fragments and questions answer nothing.
    let empty = terms < 2 || text.trim_end().ends_with('?');
    if empty { gain - 0.3 } else { gain }
}

/// Capitalised words after the first.
fn names(text: &str) -> usize {
    text.split_whitespace().skip(1).filter(|word| word.chars().next().is_some_and(char::is_uppercase)).count()
}

fn sought(question: &str) -> Sought {
    let question = question.to_lowercase();
    let starts = |words: &[&str]| words.iter().any(|word| question.starts_with(word));
    let holds = |words: &[&str]| words.iter().any(|word| question.contains(word));
    if holds(&[
        "how many",
        "how much",
        "how long",
        "how fast",
        "how old",
        "how high",
        "when ",
        "what year",
        "what date",
        "what percent",
    ]) {
        Sought::Number
    } else if starts(&["who", "whose", "where"]) || holds(&["what country", "what city", "whom"]) {
        Sought::Name
    } else if starts(&["how do", "how to", "how can", "how should"])
        || holds(&["command", "example", "install", "steps"])
    {
        Sought::Steps
    } else if starts(&["what is", "what are", "what's", "define", "explain"]) {
        Sought::Definition
    } else {
        Sought::Anything
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::testing::chunk;

    fn check(question: &str, contents: &[&str], expected: &[&str]) {
        let analyzer = Analyzer::new(Language::default());
        let chunks: Vec<Chunk> =
            contents.iter().zip(0..).map(|(content, number)| chunk("page", number, content)).collect();
        let passages: Vec<_> = chunks
            .iter()
            .map(|chunk| Passage { chunk, score: 1.0 / f32::from(chunk.index as u16 + 1) })
            .collect();
        let terms: Vec<_> = analyzer.distinct(question).into_iter().map(|term| (term, 1.0)).collect();
        let found = extract(question, &terms, &passages, &analyzer, MOST_PIECES);
        let found: Vec<_> =
            found.iter().map(|extract| &chunks[extract.passage].content[extract.span.clone()]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_sentence_with_the_questions_words_is_chosen() {
        check(
            "What is a node?",
            &["Robots are fun. A node is a participant in the graph. It rains.", "Pasta is boiled."],
            &["A node is a participant in the graph."],
        );
    }

    #[test]
    fn a_lead_brings_its_code_along() {
        check(
            "How do I list the topics?",
            &["List the topics with this command:\n\n```bash\nros2 topic list\n```\n\nIt rains."],
            &["List the topics with this command:", "```bash\nros2 topic list\n```"],
        );
    }

    #[test]
    fn nothing_to_choose_from_is_no_answer() {
        check("What is a node?", &[], &[]);
    }
}
