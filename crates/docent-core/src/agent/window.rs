//! Select what fits in the model's context window.
//!
//! Invariant: the estimated size of the messages fits the window; whatever was left out is reported as a
//! warning.

use super::NO_INFORMATION;
use super::settings::Settings;
use crate::answer::ResponseKind;
use crate::excerpt::Excerpt;
use crate::generate::{Message, Role};
use crate::prompt;
use crate::query::Question;
use crate::session::Turn;

/// Tokens reserved for the answer if `max_output_tokens` is not set.
const ANSWER_TOKENS: usize = 1000;

/// Tokens reserved for the description of the tool and for message framing.
const OVERHEAD_TOKENS: usize = 300;

/// The first messages of a turn.
pub struct Window {
    /// System prompt, earlier turns, and the question with its passages.
    pub messages: Vec<Message>,
    /// How many of the messages are from earlier turns; they follow the system prompt.
    pub earlier: usize,
    /// How many passages fit.
    pub passages: usize,
    /// Warnings for the user about what was left out.
    pub warnings: Vec<String>,
}

impl Window {
    /// Fills the window: the system prompt and the question first, then passages, then earlier turns from
    /// newest to oldest.
    pub fn new(question: &Question, found: &[Excerpt<'_>], history: &[Turn], settings: &Settings) -> Self {
        let system = prompt::system(&settings.tool_name);
        let answer = settings.max_output_tokens.map_or(ANSWER_TOKENS, |most| most as usize);
        let room = settings.context_tokens.saturating_sub(answer + OVERHEAD_TOKENS + tokens(&system));
        let mut passages = found.len();
        let mut asked = prompt::question(question.text(), found, 1);
        while passages > 1 && tokens(&asked) > room {
            passages -= 1;
            asked = prompt::question(question.text(), &found[..passages], 1);
        }
        let mut warnings = Vec::new();
        if passages < found.len() {
            warnings.push(format!(
                "only {passages} of {} passages fit in the model's context window (agent.context_tokens)",
                found.len()
            ));
        }
        let room = room.saturating_sub(tokens(&asked));
        let (earlier, left_out) = conversation(history, settings.max_history, room);
        if left_out > 0 {
            warnings.push(left_out_warning(left_out));
        }
        let mut messages = vec![Message::text(Role::System, system)];
        let count = earlier.len();
        messages.extend(earlier);
        messages.push(Message::text(Role::User, asked));
        Self { messages, earlier: count, passages, warnings }
    }
}

/// The warning when earlier turns did not fit.
pub fn left_out_warning(turns: usize) -> String {
    let turns = if turns == 1 { "turn was".to_owned() } else { format!("{turns} turns were") };
    format!("the oldest {turns} not sent to the model: the conversation exceeds its context window")
}

/// The newest earlier turns that fit, as messages, and the number of turns that did not fit.
fn conversation(history: &[Turn], most: usize, mut room: usize) -> (Vec<Message>, usize) {
    let mut messages = Vec::new();
    // A turn is two messages; half a turn would be an answer without its question.
    let wanted = history.len().min(most.div_ceil(2));
    for turn in history.iter().rev().take(wanted) {
        let answer = said(turn);
        let length = tokens(&turn.query) + tokens(&answer);
        if length > room {
            break;
        }
        room -= length;
        messages.push(Message::text(Role::Assistant, answer));
        messages.push(Message::text(Role::User, turn.query.clone()));
    }
    messages.reverse();
    let left_out = wanted - messages.len() / 2;
    (messages, left_out)
}

/// The text of the answer, without citations.
pub fn said(turn: &Turn) -> String {
    let sentences: Vec<&str> =
        turn.response.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    match turn.response.kind {
        _ if !sentences.is_empty() => sentences.join(" "),
        ResponseKind::Stopped => "(stopped by the user)".to_owned(),
        _ => format!("{NO_INFORMATION}."),
    }
}

/// Estimates the number of tokens, rather too high than too low, since providers count differently.
pub fn tokens(text: &str) -> usize {
    let mut characters = Characters::default();
    characters.count(text);
    characters.tokens() as usize + 4
}

/// Counts the characters of a text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Characters {
    ascii: usize,
    others: usize,
}

impl Characters {
    /// Adds a piece.
    pub fn count(&mut self, text: &str) {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        self.ascii += ascii;
        self.others += text.chars().count() - ascii;
    }

    /// Estimated number of tokens.
    pub fn tokens(&self) -> u32 {
        u32::try_from(self.ascii.div_ceil(4) + self.others).unwrap_or(u32::MAX)
    }
}
