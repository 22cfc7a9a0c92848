//! Two hints for a question: where to look and what shape the answer has, then how it begins.
//!
//! Invariant: no hint contains the whole answer.

use super::QuizKind;
use super::passage::Passage;
use super::wording::{given_away, in_words, words};

/// Answers up to this many words are hinted at by their first letters, longer ones by their first words.
const SHORT: usize = 4;

pub(super) fn hints(kind: QuizKind, answer: &[String], passage: &Passage<'_>) -> [String; 2] {
    [format!("{} {}", place(answer, passage), shape(kind, answer)), beginning(answer)]
}

/// Where the answer is. Headings that contain the answer are not named.
fn place(answer: &[String], passage: &Passage<'_>) -> String {
    let tells = |name: &str| answer.iter().any(|line| given_away(name, line) >= 0.5);
    let title = passage.chunk.title();
    match passage.heading() {
        Some(heading) if heading != title && !tells(heading) => {
            if tells(title) {
                format!("See the section “{heading}”.")
            } else {
                format!("See the section “{heading}” of “{title}”.")
            }
        }
        _ if !tells(title) => format!("See the page “{title}”."),
        _ => "The page says it in one sentence.".to_owned(),
    }
}

fn shape(kind: QuizKind, answer: &[String]) -> String {
    let count = answer.iter().map(|line| words(line).len()).sum::<usize>();
    match (kind, answer.len()) {
        (_, lines) if lines > 1 => format!("The answer is a list of {}.", in_words(lines)),
        (QuizKind::Command, _) => "The answer is a command.".to_owned(),
        (_, _) if answer[0].starts_with('`') && count == 1 => "The answer is a name in code.".to_owned(),
        (_, _) if count == 1 => "The answer is one word.".to_owned(),
        _ => format!("The answer has {} words.", in_words(count)),
    }
}

fn beginning(answer: &[String]) -> String {
    match answer {
        [line] => {
            let found = words(line);
            let count = found.len();
            // A name in code may have many parts.
            let most = if line.contains('`') { SHORT + 2 } else { SHORT };
            if count <= most {
                let letters = first_letters(line);
                match line.trim_matches('`').chars().count() {
                    // A number, or an option such as `-s`.
                    length if !letters.contains(char::is_alphanumeric) => {
                        format!(
                            "It has {} character{}.",
                            in_words(length),
                            if length == 1 { "" } else { "s" }
                        )
                    }
                    _ => format!("It starts with these letters: {letters}"),
                }
            } else {
                let shown = (count / 3).clamp(2, 8);
                format!("It begins: “{} …”", line[..found[shown - 1].end()].trim())
            }
        }
        lines => {
            let letters: Vec<String> = lines.iter().map(|line| first_letters(line)).collect();
            format!("They start with these letters: {}", letters.join(" · "))
        }
    }
}

/// "z… m… p…" for "zero moment point"; words of one letter are not told.
fn first_letters(text: &str) -> String {
    let spaced = text.replace('`', " ");
    let letters = spaced.split_whitespace().filter_map(|word| {
        let mut signs = word.chars();
        let first = signs.find(|sign| sign.is_alphanumeric())?;
        let rest = signs.filter(|sign| sign.is_alphanumeric()).count();
        Some(if rest == 0 { "…".to_owned() } else { format!("{first}…") })
    });
    letters.take(SHORT + 2).collect::<Vec<_>>().join(" ")
}
