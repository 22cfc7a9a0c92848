//! The words of a question on the command line, typed with or without quotes.
//!
//! Later words may look like flags: `docent ask what does --watch do`. clap rejects unknown flags, so those
//! are marked before it sees them.
//!
//! Invariant: known flags and words that resemble one are left to clap, wherever they are.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use super::Cli;
use crate::exit::nearest;

/// Precedes marked words. The operating system passes no arguments that contain it.
const MARK: char = '\0';

/// The commands that take a question.
const ASKING: [&str; 2] = ["ask", "search"];

/// Joins the words of a question.
pub fn typed(first: &str, words: &[String]) -> String {
    let words = words.iter().map(|word| word.strip_prefix(MARK).unwrap_or(word));
    std::iter::once(first).chain(words).collect::<Vec<_>>().join(" ")
}

/// Marks the words of a question that look like flags but are none. The first word is never marked: a flag
/// before the question is a mistake.
pub fn mark_words(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let (mut has_question, mut is_value) = (false, false);
    // The first argument is the name of the program.
    for argument in arguments.iter_mut().skip(1) {
        let Some(text) = argument.to_str().filter(|_| !std::mem::take(&mut is_value)) else { continue };
        if text == "--" {
            break;
        }
        if !text.starts_with('-') || text == "-" {
            match ASKING.contains(&command.get_name()) {
                true => has_question = true,
                false => match command.find_subcommand(text) {
                    Some(asking) if ASKING.contains(&asking.get_name()) => command = asking,
                    _ => break,
                },
            }
            continue;
        }
        match wants_value(command, text) {
            Some(wants_value) => is_value = wants_value,
            None if has_question && !resembles_option(command, text) => {
                *argument = format!("{MARK}{text}").into();
            }
            None => {}
        }
    }
    arguments
}

/// Whether the value of an option is the next argument; `None` if there is no such option.
fn wants_value(command: &Command, text: &str) -> Option<bool> {
    let takes_value = |option: &Arg| option.get_action().takes_values();
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
        return Some(takes_value(option) && value.is_none());
    }
    // `-qk3` is `-q -k 3`.
    let mut letters = text.chars().skip(1);
    while let Some(letter) = letters.next() {
        let option = command.get_arguments().find(|option| option.get_short() == Some(letter))?;
        if takes_value(option) {
            return Some(letters.next().is_none());
        }
    }
    Some(false)
}

/// Whether this is probably a misspelled option.
fn resembles_option(command: &Command, text: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    name.strip_prefix("--")
        .is_some_and(|name| nearest(name, command.get_arguments().filter_map(Arg::get_long)).is_some())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Command as Parsed;

    /// The question in a command line, or clap's error.
    fn question(line: &str) -> Result<String, String> {
        let arguments = mark_words(line.split(' ').map(OsString::from));
        match Cli::try_parse_from(arguments).map_err(|error| error.to_string())?.command {
            Parsed::Ask(ask) => Ok(typed(&ask.question, &ask.words)),
            Parsed::Search(search) => Ok(typed(&search.query, &search.words)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_misspelled_flag_is_an_error_that_suggests_the_right_one() {
        for line in [
            "docent ask --verbos what is a node",
            "docent search --verbos what is a node",
            "docent ask what is a node --verbos",
        ] {
            let error = question(line).unwrap_err();
            assert!(error.contains("unexpected argument '--verbos' found"), "{line}: {error}");
            assert!(error.contains("'--verbose'"), "{line}: {error}");
        }
    }

    #[test]
    fn a_question_that_starts_with_a_dash_needs_two_dashes_before_it() {
        for flag in ["--watch", "-x"] {
            let error = question(&format!("docent ask {flag} does what")).unwrap_err();
            assert!(error.contains(&format!("use '-- {flag}'")), "{error}");
        }
        assert_eq!(question("docent ask --json -- --watch -k does what").unwrap(), "--watch -k does what");
    }

    #[test]
    fn later_words_may_start_with_a_dash() {
        for line in [
            "docent ask what does --watch do",
            "docent --config file search -qk 3 what does --watch do --json",
            "docent search what -k3 does --watch do",
        ] {
            assert_eq!(question(line).unwrap(), "what does --watch do", "{line}");
        }
        assert_eq!(question("docent ask what is -z or --x=1 or -").unwrap(), "what is -z or --x=1 or -");
    }
}
