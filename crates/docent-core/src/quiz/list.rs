//! Questions about lists that a sentence introduces: "Every robot has three parts:".
//!
//! Invariant: a list is asked for as a whole, and only if its items are short or begin with a name.

use std::ops::Range;

use super::QuizKind;
use super::finish::Draft;
use super::passage::{Item, Passage};
use super::verbs::{is_base, is_third_person};
use super::wording::{
    Word, bare, given_away, has, in_words, is_clean, key, length, number, points_nowhere, stands_alone, words,
};
use crate::statement::StatementKind;

/// Nobody remembers longer lists.
const MOST_ITEMS: usize = 7;

/// Maximum number of items if the sentence does not count them.
const MOST_WITHOUT_NUMBER: usize = 5;

/// Maximum number of words in the name of an item, and in an item without one.
const LONGEST_NAME: usize = 6;
const LONGEST_ITEM: usize = 10;

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    for list in passage.introduced(StatementKind::List) {
        let items = passage.items(list.block.clone());
        if !(2..=MOST_ITEMS).contains(&items.len()) {
            continue;
        }
        let names: Option<Vec<(Range<usize>, Range<usize>)>> =
            items.iter().map(|item| name(item, passage)).collect();
        let Some(ask) = request(list.lead_in, items.len(), passage) else {
            // Without a sentence to ask with, the section has to say what the items are.
            if items.len() > 2
                && passage.has_clear_heading()
                && !is_base(&key(list.lead_in.split(' ').next().unwrap_or_default()))
            {
                let ask = format!("In {}: which item of the list is this?", passage.place_name());
                let names =
                    names.filter(|names| !names.iter().any(|(name, _)| is_label(passage.text(name.clone()))));
                drafts.extend(names.and_then(|names| described(&ask, &names, passage)));
            }
            continue;
        };
        let answer: Vec<String> = match &names {
            Some(names) => names.iter().map(|(name, _)| passage.text(name.clone()).to_owned()).collect(),
            None => items.iter().map(|item| bare(passage.text(item.span.clone())).to_owned()).collect(),
        };
        let longest = if names.is_some() { LONGEST_NAME } else { LONGEST_ITEM };
        if answer.iter().any(|line| length(line) > longest || !is_clean(line) || line.ends_with('?')) {
            continue;
        }
        drafts.push(Draft { kind: QuizKind::List, question: ask.all, answer, quote: list.block.clone() });
        drafts.extend(names.and_then(|names| described(&ask.one, &names, passage)));
    }
}

/// What a lead-in asks for.
struct Request {
    /// The question for all items.
    all: String,
    /// The beginning of the question for one of them.
    one: String,
}

fn request(lead_in: &str, count: usize, passage: &Passage<'_>) -> Option<Request> {
    let claim = bare(lead_in);
    if !(lead_in.ends_with(':') || lead_in.ends_with('.')) || !(3..=30).contains(&length(claim)) {
        return None;
    }
    let found = words(claim);
    let (first, last) = (found.first()?, found.last()?);
    if is_base(&first.text.to_lowercase()) {
        return None;
    }
    let counted = in_words(count);
    let ask = |claim: &str| {
        // A definite lead-in means something in its section.
        let is_definite = ["the ", "The ", "you", "You"].iter().any(|word| claim.contains(word));
        let place = if is_definite { format!("In {}: ", passage.place_name()) } else { String::new() };
        Request {
            all: format!("{place}{claim}. Name them."),
            one: format!("{place}{claim}. Which one is described here?"),
        }
    };
    // "Docusaurus supports the following formats:" → "Docusaurus supports three formats."
    if let Some(at) = claim.find(" the following ").filter(|_| lead_in.ends_with(':')) {
        let rest = &claim[at + " the following ".len()..];
        let noun = rest.split(' ').next().unwrap_or_default();
        if !noun.ends_with('s') || number(noun).is_some() {
            return None;
        }
        let claim = format!("{} {counted} {rest}", &claim[..at]);
        return stands_alone(&claim).then(|| ask(&claim));
    }
    if !stands_alone(claim) {
        return None;
    }
    if counts(&found, count) {
        return Some(ask(claim));
    }
    // "Supported types are:", "A robot consists of:"
    let ends_open = has("are include includes of contains", last.text) && lead_in.ends_with(':');
    (ends_open && passage.has_clear_heading() && count <= MOST_WITHOUT_NUMBER).then(|| Request {
        all: format!("In {}: complete the list of {counted}: “{claim} ____”", passage.place_name()),
        one: format!("In {}: “{claim} ____” Which of the {counted} is described here?", passage.place_name()),
    })
}

/// Whether a sentence counts the items: "has three parts", but not "Tier 3 platforms".
fn counts(words: &[Word<'_>], count: usize) -> bool {
    const LATEST_NOUN: usize = 4;
    let place = words.iter().position(|word| number(word.text) == Some(count));
    place.is_some_and(|place| {
        let before = place.checked_sub(1).map(|before| key(words[before].text)).unwrap_or_default();
        let noun = words[place + 1..].iter().take(LATEST_NOUN).any(|word| {
            word.text.ends_with('s') && word.text.len() > 3 || has("children people criteria", word.text)
        });
        let verb = words.iter().any(|word| {
            is_third_person(word.text)
                || is_base(word.text)
                || has("is are has have was were can may must", word.text)
        });
        noun && verb && !has("tier version chapter level phase step figure part ros python release", &before)
    })
}

/// The name of an item and its description: "A policy: the rule that …", "Sense. Read the sensors.", "A trigger says when".
fn name(item: &Item, passage: &Passage<'_>) -> Option<(Range<usize>, Range<usize>)> {
    let text = passage.text(item.span.clone());
    let start = item.span.start;
    let found = words(text);
    // "A writer says which labels to store": what is before the verb.
    let begins_definite = found.first().is_some_and(|first| has("a an the", &key(first.text)));
    let verb = found.iter().take(LONGEST_NAME).enumerate().skip(1).find(|(place, word)| {
        (begins_definite && *place > 1 && is_third_person(word.text))
            || (is_base(word.text) && found[place - 1].text.ends_with('s'))
    });
    let mark = [": ", ". ", " – ", " — ", " - "]
        .iter()
        .filter_map(|mark| Some((text.find(mark)?, mark.len())))
        .min()
        .filter(|(at, _)| length(&text[..*at]) <= LONGEST_NAME && *at > 0);
    let verb = verb.filter(|(_, verb)| mark.is_none_or(|(at, _)| verb.start < at));
    match (mark, verb) {
        (Some((at, skipped)), None) => Some((start..start + at, start + at + skipped..item.span.end)),
        (_, Some((_, verb))) => {
            let end = start + text[..verb.start].trim_end().len();
            Some((start..end, start + verb.start..item.span.end))
        }
        (None, None) => None,
    }
}

/// "Goal", "Tier 3": names that mean nothing without their list.
fn is_label(name: &str) -> bool {
    let found = words(name);
    let is_numbered = found.last().is_some_and(|last| last.text.chars().all(|sign| sign.is_ascii_digit()));
    (found.len() > 1 && is_numbered)
        || found.len() == 1
            && has(
                "goal hardware software purpose note example time cost duration output input description name type default summary \
                 result chapter part step done id title value pros cons key status author date link requirements prerequisites",
                &key(found[0].text.trim_matches('`')),
            )
}

/// A question for the name of one item: the one with the longest description that does not give the name away.
fn described(ask: &str, names: &[(Range<usize>, Range<usize>)], passage: &Passage<'_>) -> Option<Draft> {
    const SHORTEST_DESCRIPTION: usize = 5;
    const LONGEST_DESCRIPTION: usize = 30;
    const LONGEST_ANSWER: usize = 4;
    let usable = names.iter().filter_map(|(name, rest)| {
        let described = passage.first_sentence(rest.clone());
        let (name_text, text) = (passage.text(name.clone()), bare(passage.text(described.clone())));
        let is_fine = (SHORTEST_DESCRIPTION..=LONGEST_DESCRIPTION).contains(&length(text))
            && given_away(text, name_text) == 0.0
            && is_clean(text)
            && points_nowhere(text)
            && length(name_text) <= LONGEST_ANSWER;
        is_fine.then_some((name.start..described.end, name_text, text))
    });
    let (quote, name, text) =
        usable.max_by_key(|(_, _, text)| (length(text), std::cmp::Reverse(text.len())))?;
    let question = format!("{ask} “{text}”");
    Some(Draft { kind: QuizKind::Item, question, answer: vec![name.to_owned()], quote })
}
