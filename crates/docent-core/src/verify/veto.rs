//! Rules that reject a claim however similar it is to the passage: another number, unit, name in code, table
//! cell or negation, two words exchanged, or a condition left out.
//!
//! A claim that keeps the book's words but changes one of these says something else, which neither shared
//! words nor embeddings reveal. A rule applies only if the passage explicitly says otherwise.
//!
//! Invariant: words copied from the passage are never rejected.

use std::collections::HashSet;

use super::claim::bare_words;
use super::words::{WORDS, number_word, numbers};
use crate::language::Language;
use crate::reader::pieces;

/// The rule that a claim breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Veto {
    /// A number that is not in the passage.
    Number,
    /// A number from the passage with another unit.
    Unit,
    /// A name in code that is not in the passage.
    Code,
    /// The value of another row of the table.
    Cell,
    /// The opposite of a word in the passage.
    Opposite,
    /// "must" instead of "may", "all" instead of "some".
    Scope,
    /// A "not" in only one of two otherwise equal sentences.
    Negation,
    /// A sentence with some of its words exchanged.
    Order,
    /// A clause without the condition that its sentence has.
    Condition,
}

/// A claim and the passage it is compared with.
pub struct Compared<'a> {
    /// The sentence to verify.
    pub claim: &'a str,
    /// The passage with the headings above it.
    pub passage: &'a str,
    /// The sentence, item or row of the passage that is closest to the claim.
    pub nearest: &'a str,
    /// Weighted share of the claim's terms in `nearest`, 0–1.
    pub coverage: f32,
    /// The language of the book. Some rules know only English, and negations only languages with
    /// [`FunctionWords`](crate::language::FunctionWords).
    pub language: Language,
}

impl Compared<'_> {
    fn is_english(&self) -> bool {
        self.language == Language::default()
    }
}

/// Minimum coverage for [`Veto::Negation`].
const ALIKE: f32 = 0.8;

/// Returns whether a claim breaks the rule.
type Rule = fn(&Compared<'_>) -> bool;

/// Returns the first rule that the claim breaks.
pub fn veto(compared: &Compared<'_>) -> Option<Veto> {
    let rules: [(Veto, Rule, bool); 9] = [
        (Veto::Number, has_other_number, false),
        (Veto::Unit, has_other_unit, false),
        (Veto::Code, has_other_code, false),
        (Veto::Cell, has_other_cell, false),
        (Veto::Opposite, says_opposite, true),
        (Veto::Scope, widens_scope, true),
        (Veto::Negation, turns_negation, false),
        (Veto::Order, exchanges_words, true),
        (Veto::Condition, leaves_out_condition, true),
    ];
    rules
        .into_iter()
        .find(|(_, broken, english_only)| (!english_only || compared.is_english()) && broken(compared))
        .map(|(veto, ..)| veto)
}

fn has_other_number(compared: &Compared<'_>) -> bool {
    let theirs: HashSet<String> = numbers(compared.passage).into_iter().collect();
    let written: HashSet<String> = words(compared.passage).filter_map(|word| written(&word)).collect();
    let is_other = |number: &String| !theirs.contains(number) && !written.contains(number);
    numbers(compared.claim).iter().any(is_other) || (compared.is_english() && has_other_count(compared))
}

/// The number that a word stands for, in digits.
fn written(word: &str) -> Option<String> {
    // "one" is only compared with digits: on its own it is rarely a number.
    if word == "one" { Some("1".to_owned()) } else { number_word(word).map(|number| number.to_string()) }
}

/// Whether the claim counts something with a number word that is not in the passage, while the passage counts
/// the same thing with another number.
fn has_other_count(compared: &Compared<'_>) -> bool {
    let theirs = counts(compared.passage);
    counts(compared.claim).iter().filter(|count| count.is_word).any(|count| {
        let is_same_number = |other: &Count| other.number == count.number;
        let is_same_thing = |other: &Count| other.counted.is_some() && other.counted == count.counted;
        !theirs.iter().any(is_same_number) && theirs.iter().any(is_same_thing)
    })
}

/// A number and what it counts.
struct Count {
    number: f64,
    /// Whether the number is written as a word.
    is_word: bool,
    /// The next word, without a plural s.
    counted: Option<String>,
}

/// Words that may follow a number without being what it counts.
const NOT_COUNTED: [&str; 36] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "for", "from", "has", "have", "if", "in",
    "is", "it", "of", "on", "or", "other", "others", "that", "the", "then", "to", "was", "were", "when",
    "with", "hundred", "thousand", "million", "billion", "percent",
];

/// All numbers of an English text, in digits or words.
fn counts(text: &str) -> Vec<Count> {
    // "nine-bar" is "nine bar", but "twenty-five" is one number.
    let parts = |word: String| -> Vec<String> {
        match number_word(&word) {
            Some(_) => vec![word],
            None => word.split('-').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
        }
    };
    let words: Vec<String> = words(&text.replace(',', "")).flat_map(parts).collect();
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let digits = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
        let (number, attached) = match number_word(word) {
            Some(number) => (Some(f64::from(number)), ""),
            None => (word[..digits].parse().ok(), &word[digits..]),
        };
        let Some(number) = number else { continue };
        let next =
            if attached.is_empty() { words.get(place + 1).map(String::as_str) } else { Some(attached) };
        let counted = next
            .filter(|next| next.chars().all(char::is_alphabetic) && !NOT_COUNTED.contains(next))
            .map(|next| next.strip_suffix('s').unwrap_or(next).to_owned());
        found.push(Count { number, is_word: number_word(word).is_some(), counted });
    }
    found
}

/// Units, grouped by quantity, with their spellings.
const UNITS: [&[&[&str]]; 9] = [
    &[
        &["ms", "millisecond", "milliseconds"],
        &["s", "sec", "second", "seconds"],
        &["min", "minute", "minutes"],
        &["h", "hour", "hours"],
        &["day", "days"],
        &["week", "weeks"],
        &["month", "months"],
        &["year", "years"],
    ],
    &[
        &["bit", "bits"],
        &["byte", "bytes"],
        &["kb", "kilobytes"],
        &["kib"],
        &["mb", "megabytes"],
        &["mib"],
        &["gb", "gigabytes"],
        &["gib"],
        &["tb", "terabytes"],
    ],
    &[
        &["mm", "millimetres", "millimeters"],
        &["cm", "centimetres", "centimeters"],
        &["m", "metre", "metres", "meter", "meters"],
        &["km", "kilometres", "kilometers"],
        &["inch", "inches"],
        &["feet", "foot", "ft"],
    ],
    &[&["mg", "milligrams"], &["g", "gram", "grams"], &["kg", "kilograms"], &["pounds", "lb"]],
    &[&["ml", "millilitres", "milliliters"], &["l", "litre", "litres", "liter", "liters"]],
    &[&["hz"], &["khz"], &["mhz"], &["ghz"]],
    &[&["mv"], &["v", "volt", "volts"], &["kv"], &["ma"], &["a", "amps"], &["w", "watt", "watts"], &["kw"]],
    &[&["°c"], &["°f"], &["degrees"], &["rad", "radians"]],
    &[&["characters"], &["words"], &["lines"], &["tokens"], &["pages"]],
];

/// The quantity and the unit that a word stands for.
fn unit(word: &str) -> Option<(usize, usize)> {
    UNITS.iter().enumerate().find_map(|(quantity, units)| {
        let place = units.iter().position(|forms| forms.contains(&word))?;
        Some((quantity, place))
    })
}

/// Numbers with the units after them.
fn measures(text: &str) -> Vec<(String, (usize, usize))> {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    let mut rest = lower.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = &rest[start..];
        let end = from.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(from.len());
        let number = from[..end].trim_matches(['.', ',']).replace(',', "");
        let behind = from[end..].trim_start_matches([' ', '-', '\u{a0}']);
        let word = &behind[..behind.find(|c: char| !(c.is_alphabetic() || c == '°')).unwrap_or(behind.len())];
        if let Some(unit) = unit(word) {
            found.push((number, unit));
        }
        rest = &from[end..];
    }
    found
}

fn has_other_unit(compared: &Compared<'_>) -> bool {
    let theirs = measures(compared.passage);
    measures(compared.claim).iter().any(|(number, (quantity, unit))| {
        let mut same =
            theirs.iter().filter(|(other, (kind, _))| other == number && kind == quantity).peekable();
        same.peek().is_some() && same.all(|(_, (_, other))| other != unit)
    })
}

/// Words written like code: in backticks, an option, or with `_`, `::` or `()`.
fn codes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            found.push(part.to_owned());
            continue;
        }
        let looks_coded = |word: &&str| {
            let inside = word.trim_matches(|c: char| !c.is_alphanumeric());
            word.starts_with("--") || inside.contains('_') || inside.contains("::") || word.ends_with("()")
        };
        let words = part.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ':', '!', '?']));
        found.extend(words.filter(looks_coded).map(str::to_owned));
    }
    found
}

/// Removes white space and optional punctuation, and converts to lower case.
fn bare(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| !c.is_whitespace() && !"`\"'()[]{},;:".contains(*c)).collect()
}

fn has_other_code(compared: &Compared<'_>) -> bool {
    let passage = bare(compared.passage);
    codes(compared.claim)
        .iter()
        .map(|code| bare(code))
        .any(|code| !code.is_empty() && !passage.contains(&code))
}

/// Whether the claim names a row of a table, but the value of another row.
fn has_other_cell(compared: &Compared<'_>) -> bool {
    let cells =
        |line: &str| -> Vec<String> { line.trim().trim_matches('|').split('|').map(spaced).collect() };
    let lines = compared.passage.lines().filter(|line| line.trim_start().starts_with('|'));
    let rows: Vec<Vec<String>> =
        lines.map(cells).filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).collect();
    let Some((_, rows)) = rows.split_first() else { return false };
    let claim = spaced(compared.claim);
    let has = |cell: &str| cell.trim().len() > 1 && claim.contains(cell);
    let mut named = rows.iter().filter(|row| row.first().is_some_and(|name| has(name)));
    let (Some(row), None) = (named.next(), named.next()) else { return false };
    (1..row.len()).any(|column| {
        let others =
            || rows.iter().filter_map(|other| other.get(column)).filter(|other| **other != row[column]);
        !has(&row[column]) && others().any(|other| has(other))
    })
}

/// The words of a text, separated by and enclosed in single spaces.
fn spaced(text: &str) -> String {
    format!(" {} ", words(text).collect::<Vec<_>>().join(" "))
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '°' | '%')))
        .map(|word| word.trim_matches(['.', '-']).to_lowercase())
        .filter(|word| !word.is_empty())
}

fn says_opposite(compared: &Compared<'_>) -> bool {
    let passage: HashSet<String> = words(compared.passage).collect();
    let nearest: HashSet<String> = words(compared.nearest).collect();
    words(compared.claim)
        .filter(|word| !passage.contains(word))
        .any(|word| WORDS.opposites(&word).any(|opposite| nearest.contains(opposite)))
}

/// Minimum coverage for [`Veto::Scope`].
const RELATED: f32 = 0.5;

fn widens_scope(compared: &Compared<'_>) -> bool {
    if compared.coverage < RELATED {
        return false;
    }
    let nearest: HashSet<String> = words(compared.nearest).collect();
    let mut claim = words(compared.claim).peekable();
    let has_weak = |found: &HashSet<String>| WORDS.weak.iter().any(|word| found.contains(*word));
    if claim.peek().is_none() || !has_weak(&nearest) {
        return false;
    }
    let claim: HashSet<String> = claim.collect();
    let widened = WORDS.strong.iter().any(|word| claim.contains(*word) && !nearest.contains(*word));
    widened && !has_weak(&claim)
}

fn turns_negation(compared: &Compared<'_>) -> bool {
    let Some(words) = compared.language.function_words() else { return false };
    compared.coverage >= ALIKE && words.negates(compared.claim) != words.negates(compared.nearest)
}

/// Minimum number of words for [`Veto::Order`] and [`Veto::Condition`].
const LEAST_WORDS: usize = 4;

/// Whether the claim is a part of the nearest sentence with some words exchanged ("slower on the heap than on the stack").
/// A phrase that was moved puts most words in other places, and the sides of "and" and "or" may be exchanged.
fn exchanges_words(compared: &Compared<'_>) -> bool {
    let (ours, theirs) = (bare_words(compared.claim), bare_words(compared.nearest));
    if ours.len() < LEAST_WORDS || ours.len() > theirs.len() {
        return false;
    }
    theirs.windows(ours.len()).any(|part| {
        let differ: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != part[at]).collect();
        let (Some(&first), Some(&last)) = (differ.first(), differ.last()) else { return false };
        let sorted = |words: &[String]| {
            let mut words: Vec<String> = differ.iter().map(|&at| words[at].clone()).collect();
            words.sort_unstable();
            words
        };
        let are_listed = (first..=last).all(|at| differ.contains(&at) || ["and", "or"].contains(&&*ours[at]));
        differ.len() <= (ours.len() / 3).max(2) && !are_listed && sorted(&ours) == sorted(part)
    })
}

/// Words that begin a condition, after the clause it belongs to or before.
const CONDITIONS: [&str; 9] =
    ["if", "unless", "until", "except", "when", "whenever", "while", "within", "without"];

/// Whether the claim is a clause of the passage, word for word, whose sentence has a condition beside it.
fn leaves_out_condition(compared: &Compared<'_>) -> bool {
    let ours = bare_words(compared.claim);
    if ours.len() < LEAST_WORDS {
        return false;
    }
    let is_condition = |word: &String| CONDITIONS.contains(&word.as_str());
    pieces(compared.passage).into_iter().map(|span| bare_words(&compared.passage[span])).any(|theirs| {
        let mut starts = (0..(theirs.len() + 1).saturating_sub(ours.len()))
            .filter(|start| theirs[*start..].starts_with(&ours));
        starts.any(|start| {
            let after = theirs.get(start + ours.len());
            // "If you use it, …": the condition begins the sentence.
            let before = theirs.first().filter(|_| start > 0);
            after.is_some_and(is_condition) || before.is_some_and(is_condition)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claim: &str, passage: &str, expected: Option<Veto>) {
        check_in("en", claim, passage, expected);
    }

    fn check_in(language: &str, claim: &str, passage: &str, expected: Option<Veto>) {
        let language = language.parse().unwrap();
        let compared = Compared { claim, passage, nearest: passage, coverage: 0.9, language };
        assert_eq!(veto(&compared), expected, "{claim}");
    }

    #[test]
    fn negations_are_compared_in_other_languages() {
        let negation = Some(Veto::Negation);
        check_in("de", "Die Auswahl wird nicht gespeichert.", "Die Auswahl wird gespeichert.", negation);
        check_in("de", "Die Auswahl wird nicht gespeichert.", "Die Auswahl wird nie gespeichert.", None);
        check_in("fr", "Le service n'est pas démarré.", "Le service est démarré.", negation);
        check_in("es", "No hay nada que instalar.", "No hay que instalar.", None);
        check_in("fi", "Valintaa ei tallenneta.", "Valinta tallennetaan.", None);
    }

    #[test]
    fn each_rule_rejects_what_the_passage_contradicts() {
        check("Let it rest for 45 hours.", "Let it rest for 45 minutes.", Some(Veto::Unit));
        check("The torque is 5 Nm.", "Max torque: 50 Nm.", Some(Veto::Number));
        check("Brew at nine bar.", "Brew at three bar.", Some(Veto::Number));
        check("Brew at nine bar.", "Brew at 3 bar.", Some(Veto::Number));
        check("Brew at 9 bar.", "Brew at three bar.", Some(Veto::Number));
        check("It is a nine-bar pump.", "It is a pump with 3bar.", Some(Veto::Number));
        check("Wait twenty-five minutes.", "Wait twenty minutes.", Some(Veto::Number));
        check("Pass `--quiet` to it.", "Pass `--verbose` to it.", Some(Veto::Code));
        check("Grind coarser.", "Grind finer if it tastes sour.", Some(Veto::Opposite));
        check("Open the UDP port.", "Open the TCP port.", Some(Veto::Opposite));
        check("You must restart it.", "You may restart it.", Some(Veto::Scope));
        check("The selection is not persisted.", "The selection is persisted.", Some(Veto::Negation));
        let table = "| Mode | Speed |\n| --- | --- |\n| slow | 10 rpm |\n| fast | 90 rpm |";
        check("In slow mode the speed is 90 rpm.", table, Some(Veto::Cell));
    }

    #[test]
    fn the_same_statement_in_other_words_passes() {
        check("It waits two minutes.", "It waits 2 minutes.", None);
        check("It has 3 arms.", "It has three arms.", None);
        check("Brew at nine bar.", "Brew at 9.0 bar.", None);
        check("Wait twenty-five minutes.", "Wait 25 minutes.", None);
        check("Wait 25 minutes.", "Wait twenty-five minutes.", None);
        check("Pass `-v`.", "Pass `-v` to see more.", None);
        check("Heat it, then let it cool.", "Heat it and let it cool.", None);
        let table = "| Mode | Speed |\n| --- | --- |\n| slow | 10 rpm |\n| fast | 90 rpm |";
        check("In slow mode the speed is 10 rpm.", table, None);
    }

    #[test]
    fn exchanged_words_are_rejected_unless_the_meaning_is_the_same() {
        let slower = "Data on the heap is slower to reach than data on the stack.";
        check("Data on the stack is slower to reach than data on the heap.", slower, Some(Veto::Order));
        check(
            "Versions are listed from oldest to newest.",
            "Versions are listed from newest to oldest.",
            Some(Veto::Order),
        );
        check(
            "Press D on Unix, Z on Windows, to leave.",
            "Press Z on Unix, D on Windows, to leave.",
            Some(Veto::Order),
        );
        check("It works with topics and services.", "It works with services and topics.", None);
        check("In release builds the check is skipped.", "The check is skipped in release builds.", None);
        check(slower, slower, None);
    }

    #[test]
    fn a_clause_needs_its_condition() {
        let passage = "It has two parts. The version is kept for years, except in rare cases. If you use the preset, you can skip the plugin.";
        check("The version is kept for years.", passage, Some(Veto::Condition));
        check("You can skip the plugin.", passage, Some(Veto::Condition));
        check("The version is kept for years, except in rare cases.", passage, None);
        check("You can skip the plugin if you use the preset.", passage, None);
        check("It has two parts.", "It has two parts. If you open it, mind the spring.", None);
    }

    #[test]
    fn number_words_that_contradict_nothing_pass() {
        check("One node of them is idle.", "Two nodes of them are idle.", None);
        check("One of the nodes and no one else.", "Three of the nodes and no others.", None);
        check("There are two in total.", "There are an inlet and an outlet, 3 in each row.", None);
        check("The two valves open.", "The inlet valve and the outlet valve open after 3 seconds.", None);
        check("It holds two thousand litres.", "It holds 2,000 litres at three thousand rpm.", None);
    }
}
