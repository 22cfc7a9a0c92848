//! Questions about numbered instructions: which step comes after another.
//!
//! Invariant: the list is numbered, and most of its items begin with a verb.

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::verbs::is_base;
use super::wording::{bare, is_clean, length, points_nowhere, words};
use crate::statement::StatementKind;

/// Maximum number of words in a step.
const LONGEST_STEP: usize = 24;

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    if !passage.has_clear_heading() {
        return;
    }
    for list in passage.introduced(StatementKind::List) {
        let items = passage.items(list.block.clone());
        let steps: Vec<_> = items.iter().map(|item| passage.first_sentence(item.span.clone())).collect();
        let is_instruction =
            |text: &str| words(text).first().is_some_and(|word| is_base(&word.text.to_lowercase()));
        let instructions = steps.iter().filter(|step| is_instruction(passage.text((*step).clone()))).count();
        if !is_procedure(list.lead_in, passage)
            || items.len() < 3
            || !items.iter().all(|item| item.is_numbered)
            || instructions * 3 < items.len() * 2
        {
            continue;
        }
        let pairs = steps.windows(2).filter_map(|pair| {
            let [before, after] = [&pair[0], &pair[1]].map(|step| bare(passage.text(step.clone())));
            let is_fine = [before, after].iter().all(|step| {
                (2..=LONGEST_STEP).contains(&length(step))
                    && is_clean(step)
                    && points_nowhere(step)
                    && !step.contains("step 1")
            });
            let question = format!("{}: which step comes right after “{before}”?", passage.place_name());
            let draft = Draft {
                kind: QuizKind::Steps,
                question,
                answer: vec![after.to_owned()],
                quote: pair[0].start..pair[1].end,
            };
            (is_fine && is_instruction(after)).then_some(draft)
        });
        let pairs: Vec<Draft> = pairs.collect();
        // One question from the middle of the list: its beginning and its end are easy.
        let middle = pairs.len() / 2;
        drafts.extend(pairs.into_iter().nth(middle));
    }
}

/// Whether the heading or the lead-in promises steps, not goals or advice.
fn is_procedure(lead_in: &str, passage: &Passage<'_>) -> bool {
    let heading = passage.heading().unwrap_or_default().to_lowercase();
    let lead_in = lead_in.to_lowercase();
    let first = heading.split(' ').next().unwrap_or_default();
    let has_any = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    let promises = is_base(first)
        || first.ends_with("ing")
        || has_any(
            &heading,
            &["how to", "loop", "process", "procedure", "workflow", "pipeline", "install", "setup", "cycle"],
        )
        || has_any(&lead_in, &["steps", "follow", "procedure", "in this order", "in order"]);
    let advises = has_any(
        &heading,
        &["tips", "practice", "recommend", "rules", "guideline", "checklist", "objective", "goal"],
    ) || has_any(
        &lead_in,
        &[
            "able to",
            "learn",
            "you will",
            "tips",
            "practice",
            "recommend",
            "rules",
            "should",
            "ways",
            "options",
            "either",
            "include",
            "possible",
            "ability",
            "reasons",
            "things",
        ],
    );
    promises && !advises
}
