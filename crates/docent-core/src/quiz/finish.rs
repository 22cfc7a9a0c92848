//! Turn drafts into questions, and leave out those that a user could not answer or would not have to think about.
//!
//! Invariant: a question that leaves here is answered by its quote: every line of the answer is in it.

use std::ops::Range;

use uuid::Uuid;

use super::passage::Passage;
use super::wording::{given_away, is_clean, length};
use super::{QuizKind, QuizQuestion, hint};

/// A question that has not been checked yet.
pub(super) struct Draft {
    pub kind: QuizKind,
    pub question: String,
    /// The lines of the answer; several for a list.
    pub answer: Vec<String>,
    /// Position of the quote in the passage.
    pub quote: Range<usize>,
}

/// The share of an answer's words that may be in the question.
const MOST_GIVEN_AWAY: f32 = 0.55;

/// Maximum number of words in an answer, and in a question.
const LONGEST_ANSWER: usize = 40;
const LONGEST_QUESTION: usize = 60;

/// The question, unless something is wrong with it; `known` are the questions about the page so far.
pub(super) fn finish(draft: Draft, passage: &Passage<'_>, known: &[QuizQuestion]) -> Option<QuizQuestion> {
    let Draft { kind, question, answer, quote: span } = draft;
    let chunk = passage.chunk;
    let quote = chunk.content.get(span.clone())?;
    let words: usize = answer.iter().map(|line| length(line)).sum();
    let is_answered = !answer.is_empty()
        && answer.iter().all(|line| !line.trim().is_empty() && quote.contains(line.as_str()));
    let is_fine = is_answered
        && (1..=LONGEST_ANSWER).contains(&words)
        && is_askable(&question, &answer)
        && answer.iter().all(|line| kind == QuizKind::Command || is_clean(line))
        && !known.iter().any(|known| known.question == question);
    if !is_fine {
        return None;
    }
    let hints = hint::hints(kind, &answer, passage);
    let lines: Vec<String> = match answer.len() {
        1 => answer,
        _ => answer.iter().map(|line| format!("- {line}")).collect(),
    };
    Some(QuizQuestion {
        id: Uuid::new_v5(&chunk.id, question.as_bytes()),
        kind,
        phrased_by: None,
        question,
        answer: lines.join("\n"),
        quote: quote.to_owned(),
        start: span.start,
        end: span.end,
        hints,
        chunk_id: chunk.id,
        document_id: chunk.document_id.clone(),
        url: chunk.url.clone(),
        page_title: chunk.title().to_owned(),
        heading: chunk.heading.clone(),
        module_name: chunk.module_name.clone(),
        version: chunk.edition.version.clone(),
        locale: chunk.edition.locale.clone(),
        book_name: chunk.book_name.clone(),
    })
}

/// Whether a question is plain prose of a sensible length that does not contain its answer.
pub(super) fn is_askable<S: AsRef<str>>(question: &str, answer: &[S]) -> bool {
    let answer: Vec<&str> = answer.iter().map(AsRef::as_ref).collect();
    length(question) <= LONGEST_QUESTION
        && is_clean(question)
        && given_away(question, &answer.join(" ")) <= MOST_GIVEN_AWAY
}

/// At most one question per sentence or table row, and none twice; the first of each kind come first.
pub(super) fn without_repetitions(questions: Vec<QuizQuestion>) -> Vec<QuizQuestion> {
    let nth_of_kind =
        |place: usize| questions[..place].iter().filter(|other| other.kind == questions[place].kind).count();
    let mut order: Vec<usize> = (0..questions.len()).collect();
    order.sort_by_key(|place| nth_of_kind(*place));
    let mut kept: Vec<QuizQuestion> = Vec::new();
    for question in order.into_iter().map(|place| questions[place].clone()) {
        let repeats = |other: &QuizQuestion| {
            other.question == question.question
                || other.answer == question.answer
                || (other.start..other.end) == (question.start..question.end)
        };
        if !kept.iter().any(repeats) {
            kept.push(question);
        }
    }
    kept
}
