//! Compute the signals of a statement for a question.
//!
//! Invariant: no signal depends on the scale of an embedder's scores.

use std::collections::HashSet;

use crate::definition::Term;
use crate::fuse::Fused;
use crate::question_kind::QuestionKind;
use crate::section_kind::SectionKind;
use crate::statement::StatementKind;

/// Number of signals.
pub const SIGNALS: usize = 31;

/// The signals of a statement, in the order of [`Signals::NAMES`].
#[derive(Debug, Clone, PartialEq)]
pub struct Signals(pub [f32; SIGNALS]);

/// The context of a statement: the question, and where in the passage it is.
pub struct Place<'a> {
    /// The passage in the ranking.
    pub fused: &'a Fused,
    /// The query that was searched for.
    pub question: &'a str,
    /// The kind of question.
    pub asked: &'a QuestionKind,
    /// The term that the question wants defined.
    pub term: Option<&'a Term>,
    /// The terms of the query with their weights.
    pub terms: &'a [(String, f32)],
    /// The terms of the title and the headings.
    pub path: &'a HashSet<String>,
    /// The terms of the closest heading.
    pub heading: &'a HashSet<String>,
    /// The terms of the statement before.
    pub before: &'a HashSet<String>,
    /// Position of the statement in the passage, from 0.
    pub position: usize,
}

impl Signals {
    /// The names of the signals, as in `weights.json`.
    pub const NAMES: [&'static str; SIGNALS] = [
        "dense",
        "lexical",
        "page",
        "own_terms",
        "path_terms",
        "terms_before",
        "heading_share",
        "is_first",
        "length",
        "is_short",
        "is_question",
        "is_code",
        "is_list",
        "is_table",
        "value_and_number",
        "how_to_and_code",
        "how_to_and_list",
        "definition_and_defines",
        "definition_and_heading",
        "clarity",
        "echo",
        "keyword_and_heading",
        "keyword_and_first",
        "why_and_reason",
        "list_and_list",
        "in_quiz",
        "in_exercise",
        "in_objectives",
        "in_release_notes",
        "in_glossary",
        "in_contents",
    ];

    /// Computes the signals of a statement with the terms `words`.
    pub fn of(text: &str, words: &HashSet<String>, kind: StatementKind, place: &Place<'_>) -> Self {
        let Place { fused, asked, terms, path, heading, before, .. } = *place;
        let total: f32 = terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
        let share = |holds: &dyn Fn(&String) -> bool| {
            terms.iter().filter(|(term, _)| holds(term)).map(|(_, weight)| weight).sum::<f32>() / total
        };
        let asked_heading = heading.iter().filter(|word| terms.iter().any(|(term, _)| term == *word)).count();
        let heading_share = asked_heading as f32 / heading.len().max(1) as f32;
        let is_first = place.position == 0;
        let flag = |holds: bool| f32::from(u8::from(holds));
        let lower = text.to_lowercase();
        let has_number = text.contains(|c: char| c.is_ascii_digit());
        let section = |kinds: &[SectionKind]| {
            let kind = fused.chunk.section_kind;
            flag(kinds.contains(&kind) && !kind.is_sought(place.question))
        };
        Self([
            fused.dense,
            fused.lexical,
            fused.page,
            share(&|term| words.contains(term)),
            share(&|term| path.contains(term) && !words.contains(term)),
            share(&|term| before.contains(term) && !words.contains(term) && !path.contains(term)),
            heading_share,
            flag(is_first),
            (1.0 + words.len() as f32).ln(),
            flag(words.len() < 3),
            flag(text.trim_end().ends_with('?')),
            flag(kind == StatementKind::Code),
            flag(kind == StatementKind::List),
            flag(kind == StatementKind::Table),
            flag(asked.value && has_number),
            flag(asked.how_to && kind == StatementKind::Code),
            flag(asked.how_to && kind == StatementKind::List),
            flag(asked.definition && defines(&lower)),
            flag(asked.definition) * heading_share,
            place.term.map_or(0.0, |term| term.clarity(text)),
            flag(kind == StatementKind::Sentence && repeats(words, terms)),
            flag(asked.keyword) * heading_share,
            flag(asked.keyword && is_first),
            flag(asked.why && gives_reason(&lower)),
            flag(asked.list && matches!(kind, StatementKind::List | StatementKind::Table)),
            section(&[SectionKind::Quiz, SectionKind::Solution]),
            section(&[SectionKind::Exercise]),
            section(&[SectionKind::Objectives]),
            section(&[SectionKind::ReleaseNotes]),
            section(&[SectionKind::Glossary]),
            section(&[SectionKind::Contents, SectionKind::Index]),
        ])
    }

    /// The weighted sum of the signals.
    pub fn weighed(&self, weights: &[f32; SIGNALS]) -> f32 {
        self.0.iter().zip(weights).map(|(signal, weight)| signal * weight).sum()
    }
}

/// Whether a sentence says hardly more than the question does.
fn repeats(words: &HashSet<String>, terms: &[(String, f32)]) -> bool {
    const FEW_NEW: f32 = 0.2;
    let new = words.iter().filter(|word| terms.iter().all(|(term, _)| term != *word)).count();
    !words.is_empty() && new as f32 <= FEW_NEW * words.len() as f32
}

/// Whether a sentence says what something is.
fn defines(text: &str) -> bool {
    const VERBS: [&str; 12] = [
        " is ",
        " are ",
        " refers to ",
        " refer to ",
        " means ",
        " mean ",
        " stands for ",
        " denotes ",
        " called ",
        " known as ",
        " describes ",
        " defines ",
    ];
    VERBS.iter().any(|verb| text.contains(verb))
}

/// Whether a sentence gives a reason.
fn gives_reason(text: &str) -> bool {
    const REASONS: [&str; 15] = [
        "because",
        "since ",
        "so that",
        "reason",
        "due to",
        "therefore",
        "thus",
        "in order to",
        "otherwise",
        "this means",
        "as a result",
        "why",
        "lead to",
        "leads to",
        "cause",
    ];
    REASONS.iter().any(|reason| text.contains(reason))
}
