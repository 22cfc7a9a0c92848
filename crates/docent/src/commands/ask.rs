//! `docent ask`: one question, one cited answer.

use std::sync::Arc;

use docent_core::agent::{Ask as Question, TurnEvent};
use docent_core::answer::{AgentResponse, Citation, Sentence};
use docent_core::session::SessionStore;
use uuid::Uuid;

use crate::cli::Ask;
use crate::commands::search::check_module;
use crate::compose;
use crate::exit::Failure;
use crate::output::{BAD, FAINT, GOOD, LINK, Output, STRONG, WARN};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ask, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    if book.is_sample {
        output.note(format!(
            "{FAINT}no book ingested yet: the sample book answers (docent ingest FOLDER reads yours){FAINT:#}"
        ));
    }
    if let Some(module) = &arguments.module {
        check_module(module, book.description.modules.keys().map(String::as_str))?;
    }
    let (store, session_id) = match &arguments.session {
        Some(session) => {
            let store = compose::sessions(settings).await?;
            let id = open_session(store.as_ref(), session).await?;
            (Some(store), Some(id))
        }
        None => (None, None),
    };
    let agent = compose::agent(&book, settings, store)?;
    let question = Question {
        query: arguments.question,
        top_k: arguments.top_k.unwrap_or(settings.retrieval.top_k.min(10)),
        module: arguments.module,
        session_id,
        include_sources: true,
    };
    let printer = Printer::new(*output);
    let streams = !output.json && !arguments.no_stream;
    let response = agent
        .ask(&question, &|event| {
            if let (true, TurnEvent::Sentence(sentence, citations)) = (streams, event) {
                printer.sentence(&sentence, &citations);
            }
        })
        .await
        .map_err(compose::ask_failure)?;
    if output.json {
        return output.object(&response);
    }
    printer.finish(&response)?;
    if arguments.session.as_deref() == Some("new")
        && let Some(id) = session_id
    {
        output.note(format!("{FAINT}continue with --session {id}{FAINT:#}"));
    }
    Ok(())
}

/// The session named, or a new one for `new`.
pub async fn open_session(store: &dyn SessionStore, name: &str) -> Result<Uuid, Failure> {
    if name == "new" {
        return Ok(store.create().await.map_err(compose::session_failure)?.session_id);
    }
    let id = parse_id(name)?;
    Ok(store.get(id).await.map_err(compose::session_failure)?.session_id)
}

/// A session's id as written by the user.
pub fn parse_id(text: &str) -> Result<Uuid, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(format!("`{text}` is not a session id"))
            .hint("`docent sessions list` shows those there are")
    })
}

/// Prints an answer as it comes, then its sources.
pub struct Printer {
    output: Output,
    printed: Arc<std::sync::Mutex<usize>>,
}

impl Printer {
    /// For one answer.
    pub fn new(output: Output) -> Self {
        Self { output, printed: Arc::default() }
    }

    /// A sentence with the numbers of its citations.
    pub fn sentence(&self, sentence: &Sentence, _: &[Citation]) {
        *self.printed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        // There is nobody to tell when the reader is gone; the end of the answer tells.
        let _ = self.output.line(shown(sentence));
    }

    /// The rest of the answer: what was not streamed, the sources, the judgement.
    pub fn finish(&self, response: &AgentResponse) -> Result<(), Failure> {
        let printed = *self.printed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !response.grounded {
            self.output.line(&response.answer)?;
        } else if printed == 0 {
            for sentence in &response.sentences {
                self.output.line(shown(sentence))?;
            }
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
        self.output.note(judgement(response));
        Ok(())
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
    let doubt = if sentence.supported {
        String::new()
    } else {
        format!(" {WARN}(not supported by the book){WARN:#}")
    };
    format!("{}{gap}{FAINT}{marks}{FAINT:#}{doubt}", sentence.text)
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
    format!(
        "\n{confidence}{degraded} {FAINT}· {} · relevance {:.2} · {:.0} ms{FAINT:#}",
        response.model_used, response.relevance, response.metadata.response_time_ms
    )
}
