//! Questions about sentences that say what something is: "A node is a participant in the graph."
//!
//! They alternate between asking for the definition and asking for the term.
//!
//! Invariant: the term is a noun phrase of a few words at the beginning of its sentence or list item.

use std::ops::Range;

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::verbs::{is_base, is_third_person};
use super::wording::{
    bare, given_away, has, is_clean, is_judgement, key, length, lowered_plural, number, points_nowhere,
    stands_alone, without_article, words,
};
use crate::statement::StatementKind;

/// Maximum number of words in a term without its article.
const LONGEST_TERM: usize = 5;

/// A definition has at least this many words.
const SHORTEST_DEFINITION: usize = 4;

/// A sentence that defines a term.
struct Definition<'a> {
    /// "In Rust, ", or nothing.
    scene: &'a str,
    /// The term with its article.
    subject: &'a str,
    /// "is", "are", "means", "refers to", "stands for".
    verb: &'a str,
    /// What it is, without the final full stop.
    meaning: &'a str,
}

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    // Whether a label may name what follows it; the items of a counted list are asked for together.
    let mut spans: Vec<(Range<usize>, bool)> =
        passage.sentences().into_iter().map(|span| (span, true)).collect();
    for list in passage.introduced(StatementKind::List) {
        let is_counted = words(list.lead_in).iter().any(|word| number(word.text).is_some());
        let items = passage.items(list.block).into_iter();
        spans.extend(items.map(|item| (passage.first_sentence(item.span), !is_counted)));
    }
    for (span, may_have_label) in spans {
        let text = passage.text(span.clone());
        let asks_for_term = (passage.place + drafts.len()) % 2 == 1;
        if let Some(definition) = definition(text, passage) {
            let reverse = asks_for_term.then(|| term(&definition, text, span.clone())).flatten();
            drafts.extend(reverse.or_else(|| Some(forward(&definition, passage, span))));
        } else if let Some((name, meaning)) = labeled(text).filter(|_| may_have_label) {
            let reverse = asks_for_term && given_away(meaning, name) == 0.0;
            let (kind, question, answer) = if reverse {
                (QuizKind::Term, format!("In {}: which term means “{meaning}”?", passage.place_name()), name)
            } else {
                (QuizKind::Definition, format!("What is meant by “{name}”?"), meaning)
            };
            drafts.push(Draft { kind, question, answer: vec![answer.to_owned()], quote: span });
        }
    }
}

/// "Joint encoder: a sensor that …", in a list or at the beginning of a paragraph.
fn labeled(text: &str) -> Option<(&str, &str)> {
    const LABELS: &str = "note tip warning caution danger info important example question answer hint remark figure table listing \
        solution problem goal purpose result summary step default definition task objective hook next finally first last";
    const LATEST_DESCRIPTION: usize = 6;
    let (name, meaning) = text.split_once(": ")?;
    let meaning = bare(meaning);
    let (names, found) = (words(name), words(meaning));
    let word = |place: usize| found.get(place).map(|word| key(word.text)).unwrap_or_default();
    let is_name = (1..=LONGEST_TERM).contains(&names.len())
        && is_clean(name)
        && names.iter().all(|word| word.text.starts_with(char::is_uppercase))
        && !names.iter().any(|word| {
            let word = key(word.text);
            has(LABELS, &word)
                || has(NO_SUBJECT, &word)
                || is_third_person(&word)
                || is_base(&word)
                || number(&word).is_some()
        });
    // A noun that is described, and not a sentence: "a sensor that …", but not "The system learns …".
    let described = found.iter().skip(2).take(LATEST_DESCRIPTION).position(|word| {
        has("that which who of for built used designed containing in to with from by where", word.text)
    });
    let is_phrase = described
        .is_some_and(|place| !found[1..place + 2].iter().any(|word| is_third_person(word.text)))
        && !found.iter().any(|word| has("is are does do has have must should can was were will", word.text));
    let is_definition = has("a an the any one", &word(0))
        && !has(NO_DEFINITION, &word(1))
        && found.len() > SHORTEST_DEFINITION
        && is_phrase
        && points_nowhere(meaning);
    (is_name && is_definition).then_some((name, meaning))
}

fn forward(definition: &Definition<'_>, passage: &Passage<'_>, quote: Range<usize>) -> Draft {
    let Definition { scene, subject, verb, meaning } = definition;
    let subject = if *verb == "are" { lowered_plural(subject) } else { passage.lowered(subject) };
    let scene = if scene.is_empty() { String::new() } else { format!("{scene} ") };
    let (what, which) = if scene.is_empty() { ("What", "is") } else { ("what", "is") };
    let question = match *verb {
        "is" => format!("{scene}{what} {which} {subject}?"),
        "are" => format!("{scene}{what} are {subject}?"),
        "means" | "mean" => format!("{scene}{what} does {subject} mean?"),
        "stands for" | "stand for" => format!("{scene}{what} does {subject} stand for?"),
        _ => format!("{scene}{what} does {subject} refer to?"),
    };
    Draft { kind: QuizKind::Definition, question, answer: vec![(*meaning).to_owned()], quote }
}

/// The question for the term. The definition must not contain it.
fn term(definition: &Definition<'_>, text: &str, quote: Range<usize>) -> Option<Draft> {
    let term = without_article(definition.subject);
    let article = &definition.subject[..definition.subject.len() - term.len()];
    let names_it = given_away(definition.meaning, term) > 0.0;
    // "The limit is a number": a limit, but not the only one.
    let is_one_of_many =
        article == "The " && words(definition.meaning).first().is_some_and(|first| first.text != "the");
    if names_it || is_one_of_many || length(term) > 4 || definition.verb != "is" {
        return None;
    }
    let at = text.find(definition.subject)?;
    let rest = &text[at + definition.subject.len()..];
    let question = format!(
        "Which term is missing? “{}{}____{}”",
        &text[..at],
        article_for_blank(article),
        rest.trim_end()
    );
    Some(Draft { kind: QuizKind::Term, question, answer: vec![term.to_owned()], quote })
}

/// "A" and "An" would give the first letter away.
fn article_for_blank(article: &str) -> &str {
    match article {
        "A " | "An " => "A(n) ",
        "a " | "an " => "a(n) ",
        other => other,
    }
}

/// Words that no subject of a definition contains.
const NO_SUBJECT: &str = "and or but if when where while because which who whom that this these those there here it they we \
    you i he she what how why with by from into at be been do does did can may will would should must each every all some \
    any many most no none not only its their our your his her everything something nothing anything one another other \
    such so also then now just in on for please whereas according often usually always sometimes typically never \
    lot lots within still doesn't don't isn't aren't can't won't didn't not";

/// Nouns and adjectives that say nothing without their sentence: "The reason is a bug."
const NO_TERM: &str = "reason key goal result problem idea point answer difference purpose way trick rule first second third last \
    next main simplest most usual easiest best default following same latter former case advantage disadvantage drawback \
    downside benefit aim task thing example question exception solution alternative caveat catch output input return value \
    name type argument parameter option above new old current simple common typical usual important good better final \
    resulting rest remainder majority number part side end beginning step line code function method file command \
    likely previous below correct right wrong full only table list figure section chapter page book tutorial guide \
    recommended preferred obvious quickest fastest safest short long big small large";

/// Words after the article that make a judgement, not a definition: "is a good start".
const NO_DEFINITION: &str = "good great common bit lot little few nice important useful powerful better best bad same only first last \
    next main most example reason case must key problem mistake matter time question number bug shame pity big small huge \
    large long short simple simpler easy hard difficult sensible reasonable fine safe perfect popular typical variant \
    convenient handy further following fair more less different similar good-start recommended default right wrong \
    frequent big-deal start pain topic new minimum maximum rough real very much way-to-go name result term prerequisite step second third fourth fifth";

/// Words that a definition with "is" begins with.
const DEFINING: &str = "a an the one any";

fn definition<'a>(text: &'a str, passage: &Passage<'_>) -> Option<Definition<'a>> {
    let (scene, sentence) = scene(text);
    if !stands_alone(sentence) || !text.ends_with('.') && !text.ends_with(char::is_alphanumeric) {
        return None;
    }
    let found = words(sentence);
    let verb_at = found
        .iter()
        .take(LONGEST_TERM + 6)
        .position(|word| !word.is_aside && has("is are means mean refers refer stands stand", word.text))?;
    if verb_at == 0 {
        return None;
    }
    let verb_word = found[verb_at];
    let next = found.get(verb_at + 1)?;
    let (verb, meaning_at) = match (verb_word.text, next.text) {
        ("refers" | "refer", "to") | ("stands" | "stand", "for") => {
            (&sentence[verb_word.start..next.end()], next.end())
        }
        ("is" | "are" | "means" | "mean", _) => (verb_word.text, verb_word.end()),
        _ => return None,
    };
    let meaning = first_clause(bare(&sentence[meaning_at..]));
    let subject = subject(sentence[..verb_word.start].trim())?;
    let first = words(meaning).first().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let second = words(meaning).get(1).map(|word| word.text.to_lowercase()).unwrap_or_default();
    let defines = match verb {
        "is" if has(DEFINING, &first) => !has(NO_DEFINITION, &second) && !second.ends_with("est"),
        "is" => without_article(subject) == subject && is_described_noun(meaning),
        "are" => is_plural_noun_phrase(meaning),
        _ => true,
    };
    let is_fine = defines
        && length(meaning) >= SHORTEST_DEFINITION
        && points_nowhere(meaning)
        && is_term(subject, passage);
    is_fine.then_some(Definition { scene, subject, verb, meaning })
}

/// What comes before a semicolon, if that is long enough to be a definition.
fn first_clause(meaning: &str) -> &str {
    meaning
        .split_once("; ")
        .map(|(first, _)| first)
        .filter(|first| length(first) >= SHORTEST_DEFINITION)
        .unwrap_or(meaning)
}

/// "In Rust, a crate is …": what comes before the sentence proper.
fn scene(text: &str) -> (&str, &str) {
    const LONGEST_SCENE: usize = 3;
    match text.split_once(", ") {
        Some((scene, rest))
            if scene.starts_with("In ")
                && !vague(scene)
                && length(scene) <= LONGEST_SCENE
                && points_nowhere(scene) =>
        {
            (&text[..scene.len() + 1], rest)
        }
        _ => ("", text),
    }
}

/// "In general", "In most cases".
fn vague(scene: &str) -> bool {
    words(scene).iter().any(|word| {
        has(
            "general most other many some fact addition short practice particular essence \
        summary contrast theory other-words both all case cases words",
            &key(word.text),
        )
    })
}

/// The subject without an apposition: "SLAM, simultaneous localisation and mapping, is …".
fn subject(text: &str) -> Option<&str> {
    match text.split_once(", ") {
        Some((term, rest)) if rest.ends_with(',') && !rest.trim_end_matches(',').contains(',') => Some(term),
        Some(_) => None,
        None => (!text.contains([',', ':', ';'])).then_some(text),
    }
}

/// Whether a subject is a term that can be asked for.
fn is_term(subject: &str, passage: &Passage<'_>) -> bool {
    let found = words(subject);
    let term = without_article(subject);
    let article = subject[..subject.len() - term.len()].trim().to_lowercase();
    let names: Vec<String> =
        words(term).iter().filter(|word| !word.is_aside).map(|word| word.text.to_lowercase()).collect();
    let article = article.as_str();
    let is_vague = |name: &String| has(NO_TERM, name) && (names.len() == 1 || article == "the");
    let is_bare_activity = article.is_empty()
        && names.first().is_some_and(|name| has(NO_TERM, name) || is_activity(name, &names));
    let is_generic = article == "the" && names.len() == 1 && has(GENERIC, &names[0]);
    let has_word = found.iter().any(|word| word.is_code())
        || term.chars().filter(|sign| sign.is_alphanumeric()).count() > 1;
    let is_name = (1..=LONGEST_TERM).contains(&names.len())
        && has_word
        && is_clean(subject)
        && !found.iter().any(|word| !word.is_code() && has(NO_SUBJECT, &key(word.text)))
        && !names.iter().any(is_vague)
        && !is_bare_activity
        && !is_generic
        && !names.last().is_some_and(|last| last.ends_with("ly"))
        && term.chars().any(char::is_alphabetic);
    // "The planner is …" may mean one certain planner.
    let is_capitalized = || words(term).iter().all(|word| word.text.starts_with(char::is_uppercase));
    is_name && (article != "the" || passage.is_headed(term) || is_capitalized() || has_abbreviation(term))
}

/// "Using GDB", "calling `property()`"; but "ejecting a component" is defined as a process.
fn is_activity(first: &str, names: &[String]) -> bool {
    first.ends_with("ing")
        && names.len() > 1
        && !names.iter().any(|name| has("a an the", name))
        && first.len() > 4
        && is_base(first.trim_end_matches("ing"))
        || has("using successfully having being", first)
}

/// Nouns that mean one certain thing after "the".
pub(super) const GENERIC: &str = "component module class plugin tool server client node object process program application app user system \
    project package library script test value model robot data text string map variable constant field event image link";

/// Whether a term has an abbreviation in parentheses: "the zero moment point (ZMP)".
fn has_abbreviation(term: &str) -> bool {
    term.ends_with(')')
}

/// Whether what follows "are" says what things are, not what is done with them.
fn is_plural_noun_phrase(meaning: &str) -> bool {
    const LATEST_NOUN: usize = 4;
    let found = words(meaning);
    let first = found.first().map(|word| key(word.text)).unwrap_or_default();
    let is_participle = ["ed", "ing", "en"].iter().any(|ending| first.ends_with(ending));
    let clause =
        found.iter().take(LATEST_NOUN).take_while(|word| !meaning[..word.start].contains([':', ',']));
    let has_plural = clause.into_iter().any(|word| word.text.ends_with('s') && word.text.len() > 3);
    has_plural && !is_participle && !is_judgement(&first) && !has(NO_DEFINITION, &first)
}

/// Whether a definition without an article is a noun that is described: "training data produced by a simulator".
fn is_described_noun(meaning: &str) -> bool {
    const LATEST: usize = 4;
    let found = words(meaning);
    let first = found.first().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let describes = found.iter().enumerate().skip(1).take(LATEST).any(|(place, word)| {
        has("that which whose", word.text)
            || place > 1 && has("produced used made written consisting based for of", word.text)
    });
    describes && !first.ends_with("ed") && !is_judgement(&first) && !has(NO_DEFINITION, &first)
}

/// Questions about the entries of a glossary: "Term: definition."
pub(super) fn glossary(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    for list in passage.introduced(StatementKind::List) {
        for item in passage.items(list.block) {
            let span = passage.first_sentence(item.span.clone());
            let text = passage.text(span.clone());
            let Some((term, meaning)) = text.split_once(": ") else { continue };
            let (term, meaning) = (term.trim(), bare(meaning));
            if length(term) > LONGEST_TERM
                || !is_clean(term)
                || length(meaning) < 3
                || !points_nowhere(meaning)
            {
                continue;
            }
            let is_short = term.chars().filter(|letter| letter.is_uppercase()).count() > 1;
            let asks_for_term =
                (passage.place + drafts.len()) % 2 == 1 && !is_short && given_away(meaning, term) == 0.0;
            let draft = if asks_for_term {
                let question = format!("Which term means “{meaning}”?");
                Draft { kind: QuizKind::Term, question, answer: vec![term.to_owned()], quote: span }
            } else {
                let question = format!("What is meant by “{}”?", passage.lowered(term));
                Draft { kind: QuizKind::Definition, question, answer: vec![meaning.to_owned()], quote: span }
            };
            drafts.push(draft);
        }
    }
}
