//! Tell whether a sentence makes sense on its own, and take it apart.
//!
//! A question is read without the page: "It returns the value" asks nothing, and neither does "the example above".
//!
//! Invariant: positions are byte positions in the given text, at character boundaries.

use super::verbs::is_base;

/// A word of a text: without the punctuation around it. Inline code is one word, with its backticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub start: usize,
    /// Whether it stands in parentheses.
    pub is_aside: bool,
}

impl Word<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn is_code(&self) -> bool {
        self.text.starts_with('`')
    }
}

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '`' => {
                let ticks = rest.len() - rest.trim_start_matches('`').len();
                let length = rest[ticks..].find(&rest[..ticks]).map_or(rest.len(), |end| end + 2 * ticks);
                found.push(Word { text: &rest[..length], start: at, is_aside: depth > 0 });
                at += length;
                continue;
            }
            _ if is_inner(character) => {
                let length = rest
                    .find(|c: char| {
                        c.is_whitespace() || matches!(c, '`' | '(' | ')' | '"' | '“' | '”' | ',' | ';')
                    })
                    .unwrap_or(rest.len());
                let word = rest[..length].trim_end_matches(|c: char| !is_inner(c));
                if !word.is_empty() {
                    found.push(Word { text: word, start: at, is_aside: depth > 0 });
                }
                at += length.max(character.len_utf8());
                continue;
            }
            _ => {}
        }
        at += character.len_utf8();
    }
    found
}

fn is_inner(character: char) -> bool {
    character.is_alphanumeric()
        || matches!(
            character,
            '_' | '/' | '<' | '>' | '+' | '#' | '%' | '°' | '@' | '&' | '~' | '$' | '{' | '}' | '-'
        )
}

/// Whether a list of words, separated by spaces, contains a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Words that begin sentences which continue others.
const CONTINUING: &str = "it its this that these those they them their he she his her such so thus then hence therefore \
    however but and or also instead otherwise moreover furthermore additionally besides next finally lastly first \
    second third similarly likewise consequently nevertheless meanwhile still yet again here there now note both either \
    neither another others other some each-one one's all most many several few none let let's we we've we'll our us i \
    i'm my if when while since because although though unless once until before after as for to with by without \
    what which who whose how why where whether see remember recall notice even only just not nor comparatively \
    obviously except initially suppose imagine consider assume please whereas otherwise clearly of-course";

/// Words that point outside the sentence.
const POINTING: &str = "this these those above below following previous previously earlier latter former \
    aforementioned such here we we've we'll we're our us i i'm i've my let's listing figure fig chapter eq said \
    likewise same another others also too therefore instead thus today tomorrow yesterday currently";

/// After these words, "that" points at something: "the case for that shape".
const BEFORE_THAT: &str = "of for in on at by with from to into over under after before about than as use uses is are do \
    and or but without during through via";

/// After a verb and "that", these words begin a clause: "check that the valve is open".
const AFTER_THAT: &str = "the a an you it there all any each every no its your they both two some";

/// Whether a sentence makes sense without the sentences around it.
pub(super) fn stands_alone(sentence: &str) -> bool {
    let words = words(sentence);
    let Some(first) = words.first() else { return false };
    !has(CONTINUING, &key(first.text)) && points_nowhere(sentence)
}

/// Whether nothing in a text refers to something outside it.
pub(super) fn points_nowhere(text: &str) -> bool {
    const LATEST_NOUN: usize = 3;
    let words = words(text);
    is_clean(text)
        && words.iter().enumerate().all(|(place, word)| {
            if word.is_code() {
                return true;
            }
            let lower = key(word.text);
            let before = place.checked_sub(1).map(|before| key(words[before].text)).unwrap_or_default();
            match lower.as_str() {
                "it" | "its" | "they" | "their" | "them" | "it's" | "he" | "she" | "his" | "itself" => {
                    place >= LATEST_NOUN
                }
                "that" => {
                    let after =
                        words.get(place + 1).map(|after| after.text.to_lowercase()).unwrap_or_default();
                    let is_last = place + 2 >= words.len();
                    let begins_clause = !is_base(&before) || has(AFTER_THAT, &after);
                    !has(BEFORE_THAT, &before) && !is_last && begins_clause
                }
                "all" => words.get(place + 1).is_none_or(|after| number(after.text).is_none()),
                "two" | "both" | "one" | "ones" => {
                    !(before == "the" && place + 1 < words.len() && place < LATEST_NOUN)
                }
                word => !has(POINTING, word),
            }
        })
}

/// A word in lower case with plain apostrophes, as it is written in lists of words.
pub(super) fn key(word: &str) -> String {
    word.to_lowercase().replace('’', "'")
}

/// Whether a text is plain prose: no remains of markup, formulas or addresses, and every sign that opens is closed.
pub(super) fn is_clean(text: &str) -> bool {
    let outside: String = text.split('`').step_by(2).collect();
    let balanced = |open: char, close: char| outside.matches(open).count() == outside.matches(close).count();
    text.matches('`').count().is_multiple_of(2)
        && balanced('(', ')')
        && balanced('[', ']')
        && balanced('“', '”')
        && outside.matches('"').count().is_multiple_of(2)
        && !text.contains('\n')
        && !["](", "{", "}", "<", ">", "://", "$", "\\", "**", "|", "</", "[^", "…", "...", "[]"]
            .iter()
            .any(|mark| outside.contains(mark))
}

/// The text without its final punctuation.
pub(super) fn bare(text: &str) -> &str {
    text.trim().trim_end_matches(['.', ':', ';', ',', ' '])
}

/// Number of words.
pub(super) fn length(text: &str) -> usize {
    words(text).len()
}

/// Lowercases the first letter, unless the first word is a name: it has capital letters inside, is followed by another
/// capital, or is capitalized in the middle of a sentence of the page.
pub(super) fn lowered(text: &str, page: &str) -> String {
    let found = words(text);
    let Some(first) = found.first().copied() else { return text.to_owned() };
    let mut letters = first.text.chars();
    let Some(initial) = letters.next().filter(|initial| initial.is_uppercase() && first.start == 0) else {
        return text.to_owned();
    };
    let lower = format!("{}{}", initial.to_lowercase(), letters.as_str());
    let is_plain = letters.as_str().chars().all(|letter| letter.is_lowercase() || letter == '-');
    let is_article = has("a an the", &lower);
    let has_capitals =
        found.iter().skip(1).any(|word| !word.is_aside && word.text.starts_with(char::is_uppercase));
    let before_common =
        !has_capitals && found.get(1).is_some_and(|word| word.text.starts_with(char::is_lowercase));
    let is_common = || {
        (before_common && !is_name(page, first.text))
            || (contains_word(page, &lower) && !is_name(page, first.text))
    };
    if is_article || (is_plain && is_common()) {
        format!("{lower}{}", &text[first.text.len()..])
    } else {
        text.to_owned()
    }
}

/// Whether a word is capitalized in the middle of a sentence, after a word that is not.
fn is_name(page: &str, word: &str) -> bool {
    page.match_indices(word).any(|(at, _)| {
        let before = page[..at].strip_suffix(' ').and_then(|before| before.split_whitespace().next_back());
        let continues = before.is_some_and(|before| {
            before.starts_with(char::is_lowercase)
                && before.ends_with(|c: char| c.is_alphanumeric() || c == ',')
        });
        continues && !page[at + word.len()..].starts_with(char::is_alphanumeric)
    })
}

/// Whether the prose of a text contains a word, in this spelling.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        before.ends_with([' ', '\n'])
            && !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '='))
    })
}

/// Lowercases the first letter of a plural noun: "Test cases".
pub(super) fn lowered_plural(text: &str) -> String {
    let found = words(text);
    let is_plain =
        |word: &Word<'_>| word.text.chars().skip(1).all(|letter| letter.is_lowercase() || letter == '-');
    let is_common = found.first().is_some_and(is_plain)
        && found.get(1).is_none_or(|word| word.text.starts_with(char::is_lowercase));
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if is_common => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// Whether a word is an adjective, or another word that begins a judgement rather than a definition: "is essential for".
pub(super) fn is_judgement(word: &str) -> bool {
    has(JUDGEMENTS, word)
        || word.ends_with("ly")
        || ["able", "ible", "ful", "ous", "less", "ary", "wise"].iter().any(|ending| word.ends_with(ending))
}

const JUDGEMENTS: &str = "essential critical crucial important necessary ideal vital straightforward modular set then often usually always \
    not but also already never sometimes similar limited related different optional special common central key aware sure true false so \
    such unable ready free full worth proof due now still just even very more most less too well quite rather equivalent identical safe \
    fast slow small large subject valid immutable mutable easy hard good great better best bad fine nice what how why where when because \
    there here only both either all some like unlike part made up to in on at by for with from of as no nothing something somewhat \
    two three four five much many few several built read written set kept held sent found known given shown bound run done inherent prone intended meant supposed";

/// A text without its article.
pub(super) fn without_article(text: &str) -> &str {
    let first = text.split(' ').next().unwrap_or_default();
    if has("a an the", &first.to_lowercase()) { text[first.len()..].trim_start() } else { text }
}

/// The number that a word stands for, from two to ten.
pub(super) fn number(word: &str) -> Option<usize> {
    const NAMES: [&str; 9] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let lower = word.to_lowercase();
    let named = NAMES.iter().position(|name| *name == lower).map(|place| place + 2);
    named.or_else(|| lower.parse().ok().filter(|number| (2..=10).contains(number)))
}

/// A number from two to ten in words.
pub(super) fn in_words(number: usize) -> String {
    match number {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        5 => "five".to_owned(),
        6 => "six".to_owned(),
        7 => "seven".to_owned(),
        other => other.to_string(),
    }
}

/// Words that carry no meaning of their own.
const EMPTY: &str = "a an the of to in on at by for with from and or but is are was be been being it its that this as not no \
    you your can will may must should do does than then when which who what how into one all any each if so";

/// The words that carry the meaning of a text, without endings.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !has(EMPTY, word))
        .map(|word| stem(word).to_owned())
        .collect()
}

fn stem(word: &str) -> &str {
    const SHORTEST: usize = 4;
    ["ing", "ed", "es", "er", "s", "e"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() + 1 >= SHORTEST))
        .unwrap_or(word)
}

/// The share of an answer's words that its question already contains.
pub(super) fn given_away(question: &str, answer: &str) -> f32 {
    let (known, wanted) = (content_words(question), content_words(answer));
    let given = wanted.iter().filter(|word| known.contains(word)).count();
    if wanted.is_empty() { 1.0 } else { given as f32 / wanted.len() as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn code_is_one_word_and_parentheses_are_asides() {
        let found = words("The ZMP (zero `x y` point), `ros2 topic hz`, runs.");
        let texts: Vec<_> = found.iter().map(|word| word.text).collect();
        assert_eq!(texts, ["The", "ZMP", "zero", "`x y`", "point", "`ros2 topic hz`", "runs"]);
        assert_eq!(found.iter().filter(|word| word.is_aside).count(), 3);
    }

    #[test]
    fn sentences_that_need_others_are_recognized() {
        for sentence in [
            "A node is a participant in the graph.",
            "Controllers use `odom`, because a jump would jerk the robot.",
            "A service is an interface in which a client waits until it gets a response.",
        ] {
            assert!(stands_alone(sentence), "{sentence}");
        }
        for sentence in [
            "It is a participant in the graph.",
            "However, a node is small.",
            "A node uses the method above.",
            "The case for that shape is practical.",
            "The two are different.",
            "Listing 4 shows a node.",
            "A node (see the [docs](x) is small.",
        ] {
            assert!(!stands_alone(sentence), "{sentence}");
        }
    }

    #[test]
    fn names_keep_their_capital() {
        let page = "Use synthetic data with ROS, in containers of Docker.";
        assert_eq!(lowered("Synthetic data", page), "synthetic data");
        assert_eq!(lowered("Docker images", page), "Docker images");
        assert_eq!(lowered("The ZMP", page), "the ZMP");
        assert_eq!(lowered("NITROS", page), "NITROS");
    }

    #[test]
    fn a_question_can_give_its_answer_away() {
        assert!(given_away("What is the job of `smoother_server`?", "Smooths") > 0.9);
        assert_eq!(given_away("What is a node?", "a participant"), 0.0);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "([a-zA-Z`(),.\" é日]|that |it ){0,40}") {
            for word in words(&text) {
                prop_assert_eq!(&text[word.start..word.end()], word.text);
            }
            let _ = (stands_alone(&text), lowered(&text, &text), given_away(&text, &text));
        }
    }
}
