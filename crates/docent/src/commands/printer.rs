//! An answer in the terminal: sentence by sentence, with numbers for its citations.
//!
//! On a terminal Markdown is rendered and sentences appear as they are checked; into a pipe
//! goes the finished answer, as plain text.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use docent_core::agent::{TurnEvent, UNSUPPORTED_MARK};
use docent_core::answer::{AgentResponse, Sentence};
use termimad::MadSkin;

use crate::exit::Failure;
use crate::output::{BAD, FAINT, GOOD, LINK, Output, STRONG, WARN};

/// Prints an answer as it comes, then its sources.
pub struct Printer {
    output: Output,
    skin: Option<MadSkin>,
    streams: bool,
    printed: Mutex<usize>,
}

impl Printer {
    /// For one answer; it streams only to a terminal.
    pub fn new(output: Output, streams: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let skin = terminal.then(MadSkin::default);
        Self { output, skin, streams: streams && terminal && !output.json, printed: Mutex::default() }
    }

    /// Hears what happens in the turn.
    pub fn hear(&self, event: &TurnEvent) {
        match event {
            TurnEvent::State(state) if self.output.verbose => {
                self.output.note(format!("{FAINT}{}{FAINT:#}", state.name()));
            }
            TurnEvent::Sentence(sentence, _) if self.streams => {
                *self.printed() += 1;
                // There is nobody to tell when the reader is gone; the end of the answer tells.
                let _ = self.print(sentence);
            }
            TurnEvent::Restart if self.streams && *self.printed() > 0 => {
                *self.printed() = 0;
                self.output.note(format!("{WARN}that did not hold; once more:{WARN:#}"));
            }
            _ => {}
        }
    }

    /// The rest of the answer: what was not streamed, the sources, the judgement.
    pub fn finish(&self, response: &AgentResponse) -> Result<(), Failure> {
        if !response.grounded {
            self.markdown(&response.answer)?;
        } else if *self.printed() == 0 {
            response.sentences.iter().try_for_each(|sentence| self.print(sentence))?;
        }
        if !response.citations.is_empty() {
            self.output.line("")?;
        }
        for citation in &response.citations {
            let place = match &citation.heading {
                Some(heading) => format!("{} > {heading}", citation.page_title),
                None => citation.page_title.clone(),
            };
            self.output.line(format!(
                "{STRONG}[{}]{STRONG:#} {place}\n    {LINK}{}{LINK:#}",
                citation.id, citation.url
            ))?;
        }
        for warning in &response.metadata.warnings {
            self.output.warn(warning);
        }
        self.output.note(judgement(response));
        Ok(())
    }

    fn print(&self, sentence: &Sentence) -> Result<(), Failure> {
        self.markdown(&shown(sentence))
    }

    fn markdown(&self, text: &str) -> Result<(), Failure> {
        match &self.skin {
            Some(skin) => self.output.line(skin.term_text(text).to_string().trim_end()),
            None => self.output.line(text),
        }
    }

    fn printed(&self) -> std::sync::MutexGuard<'_, usize> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sentence with its citations' numbers, and a mark when the book does not support it.
fn shown(sentence: &Sentence) -> String {
    let marks: String = sentence.citations.iter().map(|id| format!("[{id}]")).collect();
    let gap = match sentence.text.ends_with("```") || sentence.text.ends_with('|') {
        _ if marks.is_empty() => "",
        true => "\n",
        false => " ",
    };
    let doubt = if sentence.supported { String::new() } else { format!(" {UNSUPPORTED_MARK}") };
    format!("{}{gap}{marks}{doubt}", sentence.text)
}

fn judgement(response: &AgentResponse) -> String {
    let confidence = if response.grounded {
        format!("{GOOD}from the book{GOOD:#}")
    } else {
        format!("{WARN}not in the book{WARN:#}")
    };
    let degraded = match &response.error {
        Some(error) if response.degraded => format!(" · {BAD}{error}; answered without it{BAD:#}"),
        _ => String::new(),
    };
    let remembered = if response.metadata.cache_hit { " · answered before" } else { "" };
    format!(
        "\n{confidence}{degraded} {FAINT}· {}{remembered} · relevance {:.2} · {:.0} ms{FAINT:#}",
        response.model_used, response.relevance, response.metadata.response_time_ms
    )
}
