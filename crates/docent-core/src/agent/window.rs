//! What fits in the model's window.
//!
//! Invariant: what is sent is estimated to fit; what had to go is said.

use super::before::said;
use super::settings::Settings;
use crate::generate::{Message, Role};
use crate::prompt;
use crate::query::Question;
use crate::retrieve::Hit;
use crate::session::Turn;

/// The answer's share when the model has no cap of its own.
const ANSWER_TOKENS: usize = 1000;

/// The tool's description, and what surrounds messages on the way.
const OVERHEAD_TOKENS: usize = 300;

/// The first messages of a turn.
pub struct Window {
    /// Rules, earlier turns, the question.
    pub messages: Vec<Message>,
    /// How many of the messages are earlier turns; they come right after the rules.
    pub earlier: usize,
    /// How many passages fitted.
    pub passages: usize,
    /// What the reader should know.
    pub warnings: Vec<String>,
}

impl Window {
    /// As much as fits: first the rules and the question, then passages, then earlier
    /// turns, the newest first.
    pub fn new(question: &Question, hits: &[Hit], history: &[Turn], settings: &Settings) -> Self {
        let system = prompt::system(&settings.tool_name);
        let answer = settings.max_output_tokens.map_or(ANSWER_TOKENS, |most| most as usize);
        let room = settings.context_tokens.saturating_sub(answer + OVERHEAD_TOKENS + tokens(&system));
        let mut passages = hits.len();
        let mut asked = prompt::question(question.text(), hits, 1);
        while passages > 1 && tokens(&asked) > room {
            passages -= 1;
            asked = prompt::question(question.text(), &hits[..passages], 1);
        }
        let mut warnings = Vec::new();
        if passages < hits.len() {
            warnings.push(format!(
                "only {passages} of {} passages fit in the model's window (agent.context_tokens)",
                hits.len()
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

/// Said when earlier turns did not fit.
pub fn left_out_warning(turns: usize) -> String {
    let turns = if turns == 1 { "turn was".to_owned() } else { format!("{turns} turns were") };
    format!("the oldest {turns} not shown to the model: the conversation is longer than its window")
}

/// The earlier turns as messages, the newest that fit, and how many did not for want of room.
fn conversation(history: &[Turn], most: usize, mut room: usize) -> (Vec<Message>, usize) {
    let mut messages = Vec::new();
    let wanted = history.len().min(most / 2);
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

/// Rather too many than too few: providers count differently.
pub fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(4) + others + 4
}
