//! Split text into sentences.
//!
//! Invariant: the spans are in order, do not overlap, and omit only white space.

use std::ops::Range;

/// Words after which a full stop does not end a sentence.
const ABBREVIATIONS: [&str; 22] = [
    "e.g", "i.e", "etc", "vs", "cf", "fig", "figs", "eq", "no", "dr", "mr", "mrs", "ms", "prof", "approx",
    "resp", "ca", "al", "sec", "ch", "vol", "incl",
];

/// The sentences of a text. A line break also ends a sentence, so that list items are separate.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    let mut in_code = false;
    while let Some((at, c)) = characters.next() {
        let after = at + c.len_utf8();
        let ends = match c {
            '`' => {
                in_code = !in_code;
                false
            }
            '\n' => {
                in_code = false;
                true
            }
            '。' | '！' | '？' => true,
            '.' | '!' | '?' if !in_code => {
                let next = characters.peek().map(|(_, next)| *next);
                let closes = next
                    .is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '”' | '’' | ')' | ']'));
                closes && !(c == '.' && abbreviates(&text[start..at])) && opens_sentence(&text[after..])
            }
            _ => false,
        };
        if ends {
            let mut end = after;
            while let Some(&(at, closing)) = characters.peek() {
                if !matches!(closing, '"' | '”' | '’' | ')' | ']' | '」' | '』') {
                    break;
                }
                end = at + closing.len_utf8();
                characters.next();
            }
            push(text, start, end, &mut spans);
            start = end;
        }
    }
    push(text, start, text.len(), &mut spans);
    spans
}

fn abbreviates(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let word = word.to_lowercase();
    ABBREVIATIONS.contains(&word.as_str())
        || (word.len() == 1 && word.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Whether a new sentence may begin here: not with a lower-case letter.
fn opens_sentence(rest: &str) -> bool {
    rest.trim_start_matches(['"', '”', '’', ')', ']', ' ']).chars().next().is_none_or(|c| !c.is_lowercase())
}

fn push(text: &str, start: usize, end: usize, spans: &mut Vec<Range<usize>>) {
    let span = &text[start..end];
    let from = start + (span.len() - span.trim_start().len());
    let to = from + span.trim().len();
    if from < to {
        spans.push(from..to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = sentences(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn full_stops_end_sentences_but_not_names_numbers_or_abbreviations() {
        check(
            "Call `rclpy.init()`. It costs 2.5 ms, e.g. on a laptop. See Fig. 3! Done?",
            &["Call `rclpy.init()`.", "It costs 2.5 ms, e.g. on a laptop.", "See Fig. 3!", "Done?"],
        );
    }

    #[test]
    fn closing_quotes_belong_to_their_sentence() {
        check(
            "He said \"Stop.\" Then he left. (Really.) Yes",
            &["He said \"Stop.\"", "Then he left.", "(Really.)", "Yes"],
        );
    }

    #[test]
    fn a_line_break_ends_a_sentence() {
        check("- one\n- two. Three", &["- one", "- two.", "Three"]);
    }

    #[test]
    fn ideographic_full_stops_need_no_space() {
        check("节点是进程。话题是通道。", &["节点是进程。", "话题是通道。"]);
    }

    proptest! {
        #[test]
        fn only_white_space_is_omitted(text in "[a-zA-Z .!?`\n\"(日。é]{0,60}") {
            let mut at = 0;
            for span in sentences(&text) {
                prop_assert!(text[at..span.start].trim().is_empty());
                prop_assert!(span.start < span.end);
                at = span.end;
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
