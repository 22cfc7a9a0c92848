//! English words that change the meaning of a statement, and numbers.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Pairs of opposites, and words for strong and weak claims.
pub struct Words {
    opposites: HashMap<&'static str, Vec<&'static str>>,
    /// Words for strong claims: "must", "always".
    pub strong: &'static [&'static str],
    /// Words for weak claims: "may", "usually".
    pub weak: &'static [&'static str],
}

impl Words {
    /// The opposites of a lower-case word.
    pub fn opposites(&self, word: &str) -> impl Iterator<Item = &'static str> + '_ {
        self.opposites.get(word).into_iter().flatten().copied()
    }

    /// Whether omitting a lower-case word would change the meaning: a condition, a negation, a strong or weak
    /// claim.
    pub fn limits(&self, word: &str) -> bool {
        LIMITS.contains(&word)
            || self.strong.contains(&word)
            || self.weak.contains(&word)
            || word.ends_with("n't")
            || word.ends_with("n’t")
    }
}

/// Further words that cannot be omitted without changing the meaning.
const LIMITS: [&str; 46] = [
    "if",
    "unless",
    "except",
    "not",
    "no",
    "when",
    "until",
    "till",
    "without",
    "before",
    "after",
    "least",
    "up",
    "about",
    "approximately",
    "nearly",
    "almost",
    "each",
    "any",
    "cannot",
    "than",
    "while",
    "where",
    "provided",
    "unlike",
    "instead",
    "rather",
    "otherwise",
    "but",
    "however",
    "by",
    "default",
    "during",
    "within",
    "beyond",
    "over",
    "under",
    "between",
    "first",
    "last",
    "neither",
    "nor",
    "none",
    "unable",
    "hardly",
    "seldom",
];

/// One pair per line.
const OPPOSITES: &str = include_str!("opposites.txt");

/// The words shipped with Docent.
pub static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut opposites: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for (one, other) in OPPOSITES.lines().filter_map(|line| line.split_once(' ')) {
        opposites.entry(one).or_default().push(other);
        opposites.entry(other).or_default().push(one);
    }
    Words {
        opposites,
        strong: &["must", "always", "all", "every", "only", "never", "required", "exactly", "guaranteed"],
        weak: &[
            "may",
            "can",
            "might",
            "could",
            "usually",
            "often",
            "some",
            "sometimes",
            "should",
            "recommended",
            "optional",
            "optionally",
            "typically",
            "generally",
            "most",
            "many",
        ],
    }
});

/// The numbers in a text, without thousands separators.
pub fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .map(|number| number.trim_matches(['.', ',']).replace(',', ""))
        .filter(|number| number.bytes().any(|byte| byte.is_ascii_digit()))
        .collect();
    found.dedup();
    found
}

/// Numbers as words, except "one", which is mostly a pronoun or part of an idiom.
const NUMBER_WORDS: [(&str, u32); 27] = [
    ("zero", 0),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
];

/// The number that a lower-case English word stands for: "nine", "twenty-five".
pub fn number_word(word: &str) -> Option<u32> {
    let plain = |word: &str| NUMBER_WORDS.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    let digit = |word: &str| if word == "one" { Some(1) } else { plain(word) };
    match word.split_once('-') {
        Some((tens, units)) => {
            let tens = plain(tens).filter(|tens| (20..=90).contains(tens))?;
            Some(tens + digit(units).filter(|units| (1..=9).contains(units))?)
        }
        None => plain(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_words_have_values() {
        for (word, value) in
            [("zero", 0), ("nine", 9), ("thirty", 30), ("twenty-one", 21), ("ninety-nine", 99)]
        {
            assert_eq!(number_word(word), Some(value), "{word}");
        }
        for word in ["one", "once", "twenty-ten", "nine-one", "two-wheeled", "twenty-", ""] {
            assert_eq!(number_word(word), None, "{word}");
        }
    }

    #[test]
    fn opposites_are_symmetric() {
        assert!(WORDS.opposites("finer").any(|word| word == "coarser"));
        assert!(WORDS.opposites("coarser").any(|word| word == "finer"));
        assert_eq!(WORDS.opposites("robot").count(), 0);
    }

    #[test]
    fn every_line_is_a_pair() {
        assert!(OPPOSITES.lines().all(|line| line.split(' ').count() == 2));
    }
}
