//! Questions about commands that a sentence introduces: "To list the topics, run:".
//!
//! Invariant: the code is in a shell's language and has exactly one command; the quote contains both the sentence and the
//! command.

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::verbs::is_base;
use super::wording::{bare, has, key, length, points_nowhere, words};
use crate::statement::StatementKind;

/// Maximum length of a command, in characters.
const LONGEST_COMMAND: usize = 110;

/// Maximum number of words in a purpose that is asked for with its section.
const SHORT: usize = 6;

/// Languages of code blocks that contain commands.
const SHELLS: &str =
    "bash sh shell console zsh cmd powershell terminal shell-session bash2 pwsh shellsession";

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    for code in passage.introduced(StatementKind::Code) {
        let (Some(command), Some(purpose)) = (only_command(passage.text(code.block)), purpose(code.lead_in))
        else {
            continue;
        };
        // A short purpose needs its section: "launch the listener".
        let which = if length(purpose) <= SHORT {
            format!("In {}: which", passage.place_name())
        } else {
            "Which".to_owned()
        };
        let question = format!("{which} command do you use to {}?", lower_first(purpose));
        drafts.push(Draft {
            kind: QuizKind::Command,
            question,
            answer: vec![command.to_owned()],
            quote: code.span,
        });
    }
}

/// The command in a code block, if there is just one. With prompts, other lines are its output.
fn only_command(block: &str) -> Option<&str> {
    let (info, rest) = block.trim().strip_prefix("```")?.split_once('\n')?;
    let language = info.split([' ', '{', ',']).next().unwrap_or_default().to_lowercase();
    if !has(SHELLS, &language) {
        return None;
    }
    let lines = rest.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("```"));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    let prompted: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("$ ").or_else(|| line.strip_prefix("> "))).collect();
    let command = match (lines.as_slice(), prompted.as_slice()) {
        (_, [only]) => *only,
        ([only], []) => *only,
        _ => return None,
    };
    let command = command.trim();
    let is_fine =
        command.chars().count() <= LONGEST_COMMAND && !command.ends_with('\\') && command.contains(' ');
    is_fine.then_some(command)
}

/// "list the topics" of "To list the topics, run:" or "List the topics:".
fn purpose(lead_in: &str) -> Option<&str> {
    let claim = bare(lead_in.strip_suffix(':')?);
    let claim = [
        ", run",
        ", use",
        ", type",
        ", enter",
        ", execute",
        ", do",
        " run",
        " with",
        " using",
        " by running",
        " as follows",
    ]
    .iter()
    .fold(claim, |claim, ending| claim.strip_suffix(ending).unwrap_or(claim));
    let claim = [
        ", run the command",
        ", run the following command",
        ", use the following command",
        ", run the following",
        ", run this command",
        " with the following command",
        " by running the following command",
        ", execute the following command",
        " using the following command",
    ]
    .iter()
    .fold(claim, |claim, ending| claim.strip_suffix(ending).unwrap_or(claim));
    let purpose = ["To ", "You can ", "You can also ", "Now "]
        .iter()
        .find_map(|start| claim.strip_prefix(start))
        .unwrap_or(claim);
    let first = words(purpose).first()?.text.to_lowercase();
    let is_fine = is_base(&first)
        && !has("run use type execute enter see make take do let", &first)
        && (2..=20).contains(&length(purpose))
        && !purpose.contains([',', ';', ':'])
        && !purpose.contains(". ")
        && !words(purpose).iter().any(|word| has("it its them then they", &word.text.to_lowercase()))
        && !purpose.contains(" use ")
        && !words(purpose)
            .last()
            .is_some_and(|last| has("and or then by with to in from of the", &key(last.text)))
        && points_nowhere(purpose);
    is_fine.then_some(purpose)
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
