//! What a question takes for granted: that something was removed, or that it has a price.
//!
//! "Why was the match keyword removed?" finds the pages about the match keyword, which say nothing of the kind. Whatever
//! they say about it would look like a reason. The patterns are English.
//!
//! Invariant: a premise is checked only against what the passages say; its word is one of the question's.

use std::collections::HashSet;

use crate::sentence::sentences;
use crate::terms::Analyzer;

/// Something that a question takes for granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Premise {
    /// The word of the question that says so.
    pub word: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Removal,
    Price,
}

/// How questions say that something is gone, and the beginnings of the words with which a book says it.
const REMOVED: [&str; 17] = [
    "removed",
    "dropped",
    "deleted",
    "abandoned",
    "discontinued",
    "retired",
    "scrapped",
    "withdrawn",
    "taken out",
    "given up",
    "give up",
    "gave up",
    "got rid of",
    "get rid of",
    "phased out",
    "thrown out",
    "kicked out",
];
const REMOVAL: [&str; 24] = [
    "remov",
    "drop",
    "delet",
    "abandon",
    "discontinu",
    "retire",
    "scrapped",
    "withdr",
    "deprecat",
    "obsolet",
    "replac",
    "supersed",
    "no longer",
    "not supported any",
    "taken out",
    "give up",
    "given up",
    "gave up",
    "giving up",
    "rid of",
    "phased out",
    "thrown out",
    "eliminat",
    "does not exist any",
];

/// How a book says what something costs.
const PRICED: [&str; 13] = [
    "cost",
    "price",
    "pricing",
    "free",
    "paid",
    "pay",
    "fee",
    "charge",
    "billing",
    "subscription",
    "dollar",
    "euro",
    "cents",
];

impl Premise {
    /// The premise of an English question, if it has one of those that are checked.
    pub fn of(question: &str) -> Option<Self> {
        let lower = question.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        let plain = words.join(" ");
        let has = |phrase: &str| format!(" {plain} ").contains(&format!(" {phrase} "));
        let asks_why =
            words.iter().take(2).any(|word| *word == "why") || plain.contains("reason for removing");
        if asks_why && let Some(word) = REMOVED.iter().find(|word| has(word)) {
            return Some(Self { word: (*word).to_owned(), kind: Kind::Removal });
        }
        let asks_price = has("how much") && ["cost", "costs", "pay"].iter().any(|word| has(word));
        let word = ["cost", "costs", "pay", "price", "pricing"].into_iter().find(|word| has(word))?;
        let names_price = plain.starts_with("what")
            && ["price of", "pricing of", "cost per", "costs per"].iter().any(|phrase| has(phrase));
        (asks_price || names_price).then(|| Self { word: word.to_owned(), kind: Kind::Price })
    }

    /// Whether the passages say it: a removal in one sentence with a term of the question, a price anywhere.
    pub fn is_in(&self, passages: &[&str], terms: &[(String, f32)], analyzer: &Analyzer) -> bool {
        let own: HashSet<String> = analyzer.distinct(&self.word).into_iter().collect();
        let subjects: Vec<&str> =
            terms.iter().map(|(term, _)| term.as_str()).filter(|term| !own.contains(*term)).collect();
        passages.iter().any(|passage| match self.kind {
            Kind::Price => says(passage, &PRICED) || passage.contains(['$', '€', '£']),
            Kind::Removal => sentences(passage).into_iter().map(|span| &passage[span]).any(|sentence| {
                let found = analyzer.distinct(sentence);
                says(sentence, &REMOVAL)
                    && subjects.iter().any(|subject| found.iter().any(|term| term == subject))
            }),
        })
    }
}

/// Whether a word of the text begins with one of these, or the text contains one of several words.
fn says(text: &str, signs: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| signs.iter().any(|sign| word.starts_with(sign)))
        || signs.iter().any(|sign| sign.contains(' ') && lower.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn check(question: &str, passage: &str, expected: Option<bool>) {
        let analyzer = Analyzer::new(Language::default());
        let terms: Vec<_> = analyzer.distinct(question).into_iter().map(|term| (term, 1.0)).collect();
        let found = Premise::of(question).map(|premise| premise.is_in(&[passage], &terms, &analyzer));
        assert_eq!(found, expected, "{question}");
    }

    #[test]
    fn a_removal_must_be_said_of_something_in_the_question() {
        let asked = "Why was the match keyword taken out in the 2024 edition?";
        check(asked, "The match keyword compares a value with patterns. Comments were removed.", Some(false));
        check(asked, "In this edition, the match keyword was removed because nobody used it.", Some(true));
        check("why were macros dropped", "Macros are no longer supported.", Some(true));
        check("How do I remove a version?", "Delete its folder.", None);
        check("Why is my message dropped?", "The queue drops a message if it is full.", Some(true));
    }

    #[test]
    fn a_price_must_be_mentioned() {
        let asked = "how much does the cloud cost per month";
        check(asked, "The cloud runs your spiders.", Some(false));
        check(asked, "The service is free for open source.", Some(true));
        check(asked, "It is $5.", Some(true));
        check("what does the flag cost me in time", "It is slow.", None);
    }
}
