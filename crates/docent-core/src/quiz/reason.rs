//! Questions about reasons: "Planners use `map`, because drift would send the robot into a wall."
//!
//! Invariant: what the question quotes, and the reason, both make sense without the rest of the page.

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::wording::{bare, length, points_nowhere, stands_alone};

/// A claim has at least, and at most, this many words.
const SHORTEST_CLAIM: usize = 4;
const LONGEST_CLAIM: usize = 24;

/// A reason has at least this many words.
const SHORTEST_REASON: usize = 4;

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    for span in passage.sentences() {
        let text = passage.text(span.clone());
        let Some((claim, reason)) = text.split_once(" because ") else { continue };
        let (claim, reason) = (bare(claim), bare(reason));
        let is_fine = !reason.starts_with("of ")
            && (SHORTEST_CLAIM..=LONGEST_CLAIM).contains(&length(claim))
            && length(reason) >= SHORTEST_REASON
            && stands_alone(text)
            && points_nowhere(claim)
            && !claim.contains([';', ':']);
        if is_fine {
            let place = if claim.starts_with("The ") { format!("In {}: why", passage.place_name()) } else { "Why".to_owned() };
            let question = format!("{place} is this so? “{claim}.”");
            drafts.push(Draft { kind: QuizKind::Reason, question, answer: vec![reason.to_owned()], quote: span });
        }
    }
}
