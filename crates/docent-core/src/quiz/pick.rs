//! Choose among the questions of a page, and of a book.
//!
//! Invariant: the choice keeps the reading order on a page and depends on nothing but the questions.

use std::collections::VecDeque;

use super::{QuizKind, QuizQuestion};

/// At most `most` questions of a page: first one per passage and kind, then the others.
pub(super) fn best(questions: Vec<QuizQuestion>, most: usize) -> Vec<QuizQuestion> {
    if questions.len() <= most {
        return questions;
    }
    let mut counted: Vec<(usize, usize, usize)> = Vec::new();
    for (place, question) in questions.iter().enumerate() {
        let of_kind = questions[..place].iter().filter(|other| other.kind == question.kind).count();
        let of_passage =
            questions[..place].iter().filter(|other| other.chunk_id == question.chunk_id).count();
        counted.push((
            of_kind + 2 * of_passage + usize::from(question.kind == QuizKind::Reason),
            place,
            place,
        ));
    }
    counted.sort_unstable();
    let mut chosen: Vec<usize> = counted.into_iter().take(most).map(|(_, _, place)| place).collect();
    chosen.sort_unstable();
    let mut questions: Vec<Option<QuizQuestion>> = questions.into_iter().map(Some).collect();
    chosen.into_iter().filter_map(|place| questions[place].take()).collect()
}

/// The order in which to visit pages so that the first few are from all parts of the book: first, middle, quarters …
pub(super) fn book_order(pages: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(pages);
    let mut seen = vec![false; pages];
    let mut step = pages.next_power_of_two().max(1);
    while order.len() < pages {
        for place in (0..pages).step_by(step) {
            if !std::mem::replace(&mut seen[place], true) {
                order.push(place);
            }
        }
        step = (step / 2).max(1);
    }
    order
}

/// At most `limit` questions, the first of each page, then the second of each, and so on.
pub(super) fn round_robin(pages: Vec<Vec<QuizQuestion>>, limit: usize) -> Vec<QuizQuestion> {
    let mut pages: Vec<VecDeque<QuizQuestion>> = pages.into_iter().map(VecDeque::from).collect();
    let mut chosen: Vec<QuizQuestion> = Vec::new();
    while chosen.len() < limit && pages.iter().any(|page| !page.is_empty()) {
        for page in &mut pages {
            let Some(question) = page.pop_front().filter(|_| chosen.len() < limit) else { continue };
            if !chosen.iter().any(|other| other.question == question.question) {
                chosen.push(question);
            }
        }
    }
    chosen
}
