//! Correct misspelled words of a question.
//!
//! Keywords are found by their letters, so "lenght" finds nothing. A word is corrected only if the book does not contain it:
//! to a common word that the book contains, or else to a word of a title or heading. Both differ by one letter and begin
//! with the same one: "webots" is a name, not a misspelled "robots".
//!
//! Invariant: names, code and words that the book contains stay as they are.

use std::ops::Range;

use strsim::osa_distance;

/// Shorter words can be a misspelling of anything.
const SHORTEST: usize = 5;

/// A question with more words than this is a pasted text, whose words are the user's own.
const MOST_WORDS: usize = 40;

/// A word that may be misspelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubtful<'a> {
    /// Where it is in the question.
    pub span: Range<usize>,
    /// The word.
    pub word: &'a str,
    /// The common words that it may stand for, most common first.
    pub similar: Vec<String>,
}

/// The words of a question that may be misspelled. `similar` gives the common words that an uncommon one may stand for, or
/// `None` if the word is common itself.
pub fn doubtful<'a>(question: &'a str, similar: &dyn Fn(&str) -> Option<Vec<String>>) -> Vec<Doubtful<'a>> {
    if question.split_whitespace().count() > MOST_WORDS {
        return Vec::new();
    }
    let mut is_code = false;
    let mut found = Vec::new();
    let mut at = 0;
    for part in question.split_inclusive(char::is_whitespace) {
        let start = at;
        at += part.len();
        let quotes = part.matches('`').count();
        let is_plain = !is_code && quotes == 0;
        is_code ^= quotes % 2 == 1;
        let word = part.trim_matches(|c: char| c.is_whitespace() || ",.;:?!()\"'".contains(c));
        if !is_plain || word.len() < SHORTEST || !word.chars().all(|c| c.is_ascii_lowercase()) {
            continue;
        }
        if let Some(similar) = similar(word) {
            let start = start + part.find(word).unwrap_or_default();
            let similar = similar.into_iter().filter(|other| may_stand_for(word, other)).collect();
            found.push(Doubtful { span: start..start + word.len(), word, similar });
        }
    }
    found
}

/// The word of a title or heading that a word may stand for; none if several come into question.
pub fn of_headings<'a>(word: &str, headings: impl Iterator<Item = &'a str>) -> Option<String> {
    let words = headings.flat_map(|heading| heading.split(|c: char| !c.is_alphanumeric()));
    let mut found: Vec<String> =
        words.map(str::to_lowercase).filter(|other| may_stand_for(word, other)).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [only] => Some(only.clone()),
        // A word and its plural.
        [one, other] if *other == format!("{one}s") => Some(one.clone()),
        _ => None,
    }
}

/// Whether two words differ by one letter, or two swapped ones, and begin with the same letter.
fn may_stand_for(word: &str, other: &str) -> bool {
    other.len() >= SHORTEST
        && word.len().abs_diff(other.len()) <= 1
        && word.as_bytes().first() == other.as_bytes().first()
        && osa_distance(word, other) == 1
}

/// The question with these words replaced; the spans are in order.
pub fn corrected(question: &str, words: &[(Range<usize>, String)]) -> String {
    let mut text = String::with_capacity(question.len());
    let mut at = 0;
    for (span, word) in words {
        text.push_str(&question[at..span.start]);
        text.push_str(word);
        at = span.end;
    }
    text.push_str(&question[at..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows few words; all others are uncommon.
    fn similar(word: &str) -> Option<Vec<String>> {
        const COMMON: [&str; 6] = ["maximum", "robots", "length", "lengthy", "should", "recommended"];
        if COMMON.contains(&word) {
            return None;
        }
        Some(COMMON.iter().filter(|other| osa_distance(word, other) == 1).map(|&word| word.into()).collect())
    }

    fn similar_words(question: &str) -> Vec<(&str, Vec<String>)> {
        doubtful(question, &similar).into_iter().map(|found| (found.word, found.similar)).collect()
    }

    #[test]
    fn common_words_similar_to_an_uncommon_one_are_found() {
        assert_eq!(
            similar_words("recomended maximum lenght?"),
            [("recomended", vec!["recommended".to_owned()]), ("lenght", vec!["length".to_owned()])]
        );
    }

    #[test]
    fn names_code_and_short_words_are_not_doubted() {
        for question in ["Lenght", "`lenght`", "`a lenght b`", "line_lenght", "max.lenght", "lenght2", "shld"]
        {
            assert_eq!(similar_words(question), [], "{question}");
        }
    }

    #[test]
    fn a_word_with_another_first_letter_is_another_word() {
        assert_eq!(similar_words("does webots exist"), [("webots", Vec::new()), ("exist", Vec::new())]);
        assert_eq!(similar_words("robot"), [("robot", vec!["robots".to_owned()])]);
    }

    #[test]
    fn a_word_of_a_heading_is_found_unless_several_are_similar() {
        let headings = ["Docusaurus plugins", "The plugin API", "Deploying docusaurus"];
        assert_eq!(of_headings("docusarus", headings.into_iter()), Some("docusaurus".to_owned()));
        assert_eq!(of_headings("plugn", headings.into_iter()), Some("plugin".to_owned()));
        assert_eq!(of_headings("plugon", ["plugin", "plugan"].into_iter()), None);
    }

    #[test]
    fn corrected_words_replace_the_misspelled_ones() {
        let question = "Max. lenght of a lne?";
        let words = [(5..11, "length".to_owned()), (17..20, "line".to_owned())];
        assert_eq!(corrected(question, &words), "Max. length of a line?");
    }
}
