//! Prints an answer sentence by sentence, with numbered citations.
//!
//! On a terminal, Markdown is rendered and sentences appear as soon as they are verified. A pipe gets the
//! complete answer as plain text.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use docent_core::agent::{TurnEvent, UNSUPPORTED_MARK};
use docent_core::answer::{AgentResponse, ResponseKind, Sentence, Verdict};
use docent_parse::maths::Maths;
use termimad::MadSkin;

use crate::exit::Failure;
use crate::formula;
use crate::output::{BAD, FAINT, GOOD, LINK, Output, STRONG, WARN};

/// Prints an answer as it arrives, then its sources.
pub struct Printer {
    output: Output,
    skin: Option<MadSkin>,
    streams: bool,
    printed: Mutex<usize>,
}

impl Printer {
    /// A printer for one answer; it only streams to a terminal.
    pub fn new(output: Output, streams: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let skin = terminal.then(MadSkin::default);
        Self { output, skin, streams: streams && terminal && !output.json, printed: Mutex::default() }
    }

    /// Handles an event of the turn.
    pub fn hear(&self, event: &TurnEvent) {
        match event {
            TurnEvent::State(state) if self.output.verbose => {
                self.output.note(format!("{FAINT}{}{FAINT:#}", state.name()));
            }
            TurnEvent::Sentence(sentence, _) if self.streams => {
                *self.printed() += 1;
                // A failed write is reported at the end of the answer.
                let _ = self.print(sentence);
            }
            TurnEvent::Restart if self.streams && *self.printed() > 0 => {
                *self.printed() = 0;
                self.output.note(format!("{WARN}the draft could not be verified; retrying{WARN:#}"));
            }
            _ => {}
        }
    }

    /// Prints the rest: what was not streamed, the sources and the summary line.
    pub fn finish(&self, response: &AgentResponse) -> Result<(), Failure> {
        if response.kind == ResponseKind::Conversation {
            return if *self.printed() == 0 { self.markdown(&response.answer) } else { Ok(()) };
        }
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
            let place = match &citation.version {
                Some(version) => format!("{place} (version {version})"),
                None => place,
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
            Some(skin) => {
                self.output.line(skin.term_text(&with_readable_formulas(text)).to_string().trim_end())
            }
            None => self.output.line(text),
        }
    }

    fn printed(&self) -> std::sync::MutexGuard<'_, usize> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_readable_formulas(markdown: &str) -> String {
    let mut maths = Maths::default();
    let hidden = maths.hidden(markdown);
    maths.replaced(&hidden, formula::readable)
}

/// A sentence with its citation numbers, and a mark if the book does not support it.
fn shown(sentence: &Sentence) -> String {
    let marks: String = sentence.citations.iter().map(|id| format!("[{id}]")).collect();
    let doubt = if sentence.verdict == Verdict::Unsupported { UNSUPPORTED_MARK } else { "" };
    let notes: Vec<&str> = [marks.as_str(), doubt].into_iter().filter(|note| !note.is_empty()).collect();
    // Nothing may follow on the same line as a closing fence or a table row.
    let gap = match sentence.text.ends_with("```") || sentence.text.ends_with('|') {
        _ if notes.is_empty() => "",
        true => "\n",
        false => " ",
    };
    format!("{}{gap}{}", sentence.text, notes.join(" "))
}

fn judgement(response: &AgentResponse) -> String {
    let confidence = if response.grounded {
        format!("{GOOD}from the book{GOOD:#}")
    } else {
        format!("{WARN}not covered by the book{WARN:#}")
    };
    let degraded = match &response.error {
        Some(error) if response.degraded => format!(" · {BAD}{error}; answered without it{BAD:#}"),
        _ => String::new(),
    };
    let searched = response
        .rewritten_query
        .as_ref()
        .map_or_else(String::new, |text| format!("{FAINT}searched for: {text}{FAINT:#}\n"));
    let remembered = if response.metadata.cache_hit { " · cached" } else { "" };
    format!(
        "\n{searched}{confidence}{degraded} {FAINT}· {}{remembered} · relevance {:.2} · {:.0} ms{FAINT:#}",
        response.model_used, response.relevance, response.metadata.response_time_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, citations: &[usize], verdict: Verdict, expected: &str) {
        let supported = verdict == Verdict::Supported;
        let sentence = serde_json::json!({
            "text": text, "citations": citations, "support": 0.0, "supported": supported, "verdict": verdict,
        });
        let sentence: Sentence = serde_json::from_value(sentence).unwrap();
        assert_eq!(shown(&sentence), expected);
    }

    #[test]
    fn formulas_are_readable_outside_code() {
        assert_eq!(with_readable_formulas("So $x_1^2 \\le 5$, `$x$`."), "So x₁² ≤ 5, `$x$`.");
    }

    #[test]
    fn citations_and_doubts_follow_a_sentence_but_not_a_closing_fence_or_a_row() {
        check("A node.", &[1, 2], Verdict::Supported, "A node. [1][2]");
        check("A node.", &[], Verdict::Unsupported, "A node. *(not supported by the book)*");
        check("```\nls\n```", &[1], Verdict::Supported, "```\nls\n```\n[1]");
        check("```\nls\n```", &[], Verdict::Unsupported, "```\nls\n```\n*(not supported by the book)*");
        check("| a |", &[1], Verdict::Unsupported, "| a |\n[1] *(not supported by the book)*");
        check("```\nls\n```", &[], Verdict::None, "```\nls\n```");
    }
}
