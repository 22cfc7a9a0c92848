//! Questions about reasons: "Planners use `map`, because drift would send the robot into a wall."
//!
//! Invariant: what the question quotes, and the reason, both make sense without the rest of the page.

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::wording::{bare, has, key, length, points_nowhere, stands_alone, words};

/// A claim has at least, and at most, this many words.
const SHORTEST_CLAIM: usize = 4;
const LONGEST_CLAIM: usize = 24;

/// A reason has at least this many words.
const SHORTEST_REASON: usize = 4;

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    let before = drafts.len();
    for span in passage.sentences() {
        if drafts.len() > before {
            return;
        }
        let text = passage.text(span.clone());
        let Some((claim, reason)) = text.split_once(" because ") else { continue };
        let (claim, reason) = (bare(claim), bare(reason));
        let is_fine = !reason.starts_with("of ")
            && (SHORTEST_CLAIM..=LONGEST_CLAIM).contains(&length(claim))
            && length(reason) >= SHORTEST_REASON
            && stands_alone(text)
            && points_nowhere(claim)
            && !claim.contains([';', ':'])
            && !is_unfinished(claim)
            && !is_about_an_example(claim);
        if is_fine {
            let place = if claim.starts_with("The ") {
                format!("In {}: why", passage.place_name())
            } else {
                "Why".to_owned()
            };
            let question = format!("{place} is this so? “{claim}.”");
            drafts.push(Draft {
                kind: QuizKind::Reason,
                question,
                answer: vec![reason.to_owned()],
                quote: span,
            });
        }
    }
}

/// "It is so, and because …", "It is not because …"
fn is_unfinished(claim: &str) -> bool {
    let last = words(claim).last().map(|word| key(word.text)).unwrap_or_default();
    has(
        "and or not but is it's just only that simply mostly partly which was are largely mainly probably perhaps",
        &last,
    )
}

/// Whether a claim is about the variables or the steps of an example.
fn is_about_an_example(claim: &str) -> bool {
    const SHORTEST: usize = 7;
    let found = words(claim);
    let lower: Vec<String> = found.iter().map(|word| key(word.text)).collect();
    let names_code = found.windows(2).any(|pair| key(pair[0].text) == "the" && pair[1].is_code())
        || found.windows(3).any(|pair| key(pair[0].text) == "the" && pair[2].is_code() && !pair[1].is_code());
    let counts = lower.iter().any(|word| has("first second third outer inner case example output", word));
    let begins = ["you can see", "you'll find", "you might", "you may", "an example"];
    let lower = lower.join(" ");
    names_code
        || begins.iter().any(|begin| lower.starts_with(begin))
        || (lower.starts_with("the ") && (counts || found.len() < SHORTEST))
        || lower.contains("the second case")
}
