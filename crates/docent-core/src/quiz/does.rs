//! Questions about sentences that say what something does: "`--headless` turns off the window."
//!
//! Invariant: the subject is code, or a term with an indefinite article or a name that is in a heading.

use super::QuizKind;
use super::definition::GENERIC;
use super::finish::Draft;
use super::passage::Passage;
use super::verbs::is_third_person;
use super::wording::{bare, has, key, length, points_nowhere, stands_alone, without_article, words};
use crate::statement::StatementKind;

/// Maximum number of words in a subject without its article.
const LONGEST_SUBJECT: usize = 4;

/// What something does has at least this many words.
const SHORTEST: usize = 4;

/// Words that no subject contains.
const NO_SUBJECT: &str = "is are and or of that which who with for in on to by can must may not never always only also then still \
    often usually now just even separate new typical good better simple single second first different slow similar common \
    few little more most other such small large long short";

/// Third persons that are also plurals: "recursive types".
const ALSO_NOUNS: &str = "types maps points tests releases requests changes blocks lists names forms sets reports starts runs calls tracks \
    marks counts returns logs records updates displays outputs exports imports filters scales handles links loads limits \
    locks patches prints searches streams switches triggers walks moves matches captures covers uses answers controls \
    files holds parts views plots processes programs projects reads samples sources stages steps tags tasks";

/// Names in examples.
const PLACEHOLDERS: &str = "`foo` `bar` `baz` `foo()` `bar()` `main` `main()`";

/// After a plural: "requests have no body".
const FINITE: &str = "is are was were can could may might will would should must have has had do does pose inherit allow often only";

/// Verbs that say too little to be asked for.
const WEAK: &str = "needs requires means uses has contains includes says shows comes goes gets looks belongs lies fails begins \
    starts ends grows depends consists exists helps costs works";

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    let mut spans = passage.sentences();
    for list in passage.introduced(StatementKind::List) {
        spans.extend(passage.items(list.block).into_iter().map(|item| passage.first_sentence(item.span)));
    }
    for span in spans {
        let text = passage.text(span.clone());
        if let Some((subject, deed)) = subject_and_deed(text, passage) {
            let question = format!("What does {} do?", passage.lowered(subject));
            drafts.push(Draft { kind: QuizKind::Does, question, answer: vec![deed.to_owned()], quote: span });
        }
    }
}

fn subject_and_deed<'a>(text: &'a str, passage: &Passage<'_>) -> Option<(&'a str, &'a str)> {
    if !stands_alone(text) {
        return None;
    }
    let found = words(text);
    let verb_at = found
        .iter()
        .take(LONGEST_SUBJECT + 4)
        .position(|word| !word.is_aside && !word.is_code() && is_third_person(word.text))?;
    let verb = found[verb_at];
    let subject = text[..verb.start].trim();
    // What follows may have another subject: "…, and `--quiet` hides it".
    let rest = &text[verb.start..];
    let other = rest.match_indices(", and ").find(|(at, mark)| has_own_verb(&rest[at + mark.len()..]));
    let end = ["; ", ", but ", ", while "]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .chain(other.map(|(at, _)| at))
        .min()
        .unwrap_or(rest.len());
    let deed = bare(&rest[..end]);
    let term = without_article(subject);
    let before: Vec<_> = found[..verb_at].iter().filter(|word| !word.is_aside).collect();
    let has_article = has("A An", before.first()?.text);
    let is_code = before.first()?.is_code() && before.len() == 1;
    let is_first = !passage.chunk.continues && passage.chunk.content.trim_start().starts_with(text);
    let is_name = is_first
        && !has(ALSO_NOUNS, verb.text)
        && before.first()?.text.starts_with(char::is_uppercase)
        && !has("The", before[0].text)
        && passage.is_headed(term)
        && before.len() <= 2;
    let is_subject = length(term) <= LONGEST_SUBJECT + 2
        && before.len() <= LONGEST_SUBJECT + 1
        && !subject.contains([',', ':', ';', '–', '—'])
        && (!is_code || subject.len() > 3 && !has(PLACEHOLDERS, subject))
        && !before.iter().any(|word| !word.is_code() && has(NO_SUBJECT, &word.text.to_lowercase()));
    let next = found.get(verb_at + 1).map(|word| key(word.text)).unwrap_or_default();
    let is_noun = has(FINITE, &next)
        || (is_code && has(ALSO_NOUNS, verb.text) && has("of for in that which with", &next));
    let is_vague = !is_code
        && before.len() == 2
        && (has(GENERIC, before[1].text) || before[1].is_code() && before[1].text.len() < 4);
    let is_fine = !is_noun
        && !is_vague
        && (is_code || has_article || is_name)
        && is_subject
        && length(deed) >= SHORTEST
        && points_nowhere(deed)
        && !has(WEAK, verb.text)
        && !deed.starts_with("makes the point")
        && !deed.starts_with("makes sense");
    is_fine.then_some((subject, deed))
}

/// Whether a text begins with a subject and its verb, and not with the last item of a list: "`log/` for logs". The verb may
/// be left out: "`hz` measures the rate, and `bw` the bandwidth".
fn has_own_verb(text: &str) -> bool {
    const BETWEEN: &str = "for of in on at by with from to that which";
    let found = words(text);
    if found.len() > 1 && found[0].is_code() && has("the a an its", found[1].text) {
        return true;
    }
    let begins = found.first().is_some_and(|word| word.is_code() || has("the a an", word.text));
    let subject = found.iter().skip(1).take(LONGEST_SUBJECT).take_while(|word| !has(BETWEEN, word.text));
    begins && subject.into_iter().any(|word| has(FINITE, word.text) || is_third_person(word.text))
}
