//! Conversation stores.

pub mod memory;
pub mod pending;
pub mod sql;
mod retention;

/// Maximum length of a title made from a question, in characters.
const TITLE_LENGTH: usize = 80;

/// The title a session gets from its first question: one line, cut at a word.
fn title(question: &str) -> String {
    let line = question.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
    let Some((end, next)) = line.char_indices().nth(TITLE_LENGTH) else { return line };
    let start = &line[..end];
    let words = match start.rsplit_once(' ') {
        _ if next == ' ' => start,
        // With long words, or without spaces, cutting inside a word is better than losing half the title.
        Some((words, _)) if words.len() >= start.len() / 2 => words,
        _ => start,
    };
    format!("{}…", words.trim_end())
}

#[cfg(test)]
mod tests {
    use super::title;

    fn check(question: &str, expected: &str) {
        assert_eq!(title(question), expected);
    }

    #[test]
    fn a_title_is_one_short_line() {
        check("What is a node?", "What is a node?");
        check("  What\n\tis  a \u{1b}[31mnode\u{0}?\n", "What is a [31mnode?");
        check("", "");
    }

    #[test]
    fn a_title_ends_at_a_word() {
        let words = "node ".repeat(30);
        check(&words, &format!("{}…", "node ".repeat(16).trim_end()));
        check(&format!("xx{words}"), &format!("xx{}…", "node ".repeat(15).trim_end()));
        check(&"a".repeat(80), &"a".repeat(80));
    }

    #[test]
    fn a_long_word_is_cut() {
        check(&"é".repeat(200), &format!("{}…", "é".repeat(80)));
        check(&format!("ROS {}", "ノ".repeat(200)), &format!("ROS {}…", "ノ".repeat(76)));
    }
}
