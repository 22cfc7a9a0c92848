//! `docent quiz`: ask the user questions about the book, print them, or write flashcards for Anki.
//!
//! Invariant: only on a terminal does it wait for input; elsewhere it prints every question with its answer.

use std::io::{self, IsTerminal};

use docent_core::agent::Agent;
use docent_core::generate::Meter;
use docent_core::index::{Filter, PageOutline};
use docent_core::quiz::{self, MOST_PHRASED, MOST_QUESTIONS, QuizQuestion};
use docent_core::retrieve::Retriever;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::Quiz;
use crate::compose;
use crate::exit::{Failure, nearest};
use crate::output::{FAINT, GOOD, LINK, Output, STRONG, WARN, write_file};
use crate::settings::Settings;

/// Number of questions about the book, without `--limit`.
const QUESTIONS: usize = 20;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Quiz, output: &Output) -> Result<(), Failure> {
    let filter: Filter = arguments.part.into();
    let book = compose::book(settings).await?;
    book.announce(output);
    book.description.check(&filter).map_err(compose::no_such_part)?;
    let mut questions = match &arguments.page {
        Some(named) => {
            let page = page_named(named, &filter, &book.retriever).await?;
            let limit = arguments.limit.unwrap_or(MOST_QUESTIONS);
            quiz::of_page(&book.retriever, &page, &filter, limit).await.map(Option::unwrap_or_default)
        }
        None => {
            let all = if arguments.anki.is_some() { MOST_QUESTIONS } else { QUESTIONS };
            quiz::of_book(&book.retriever, &filter, arguments.limit.unwrap_or(all)).await
        }
    }
    .map_err(compose::retrieve_failure)?;
    if !arguments.as_written {
        phrase(&mut questions, &compose::agent(&book, settings, None)?, output).await;
    }
    if let Some(file) = &arguments.anki {
        write_file(file, quiz::anki(&questions, &book.title.now().await))?;
        output.note(format!("{} flashcards written to {}", questions.len(), file.display()));
        return Ok(());
    }
    if output.json {
        return output.object(&serde_json::json!({ "questions": questions }));
    }
    if questions.is_empty() {
        output.note("nothing to ask about here; questions are made from English pages with definitions, lists, steps and tables");
        return Ok(());
    }
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let mut editor = DefaultEditor::new().map_err(anyhow::Error::from)?;
        let read = |prompt: &str| match editor.readline(prompt) {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
            Err(error) => Err(anyhow::Error::from(error).into()),
        };
        return Asking { output: *output, read }.ask_all(&questions)?.print(output);
    }
    questions.iter().enumerate().try_for_each(|(number, question)| {
        output.line(format!("{STRONG}{}. {}{STRONG:#}", number + 1, question.question))?;
        solve(question, output)
    })
}

/// Lets the model phrase the questions, if one is configured. After a failure, the others stay as they are.
async fn phrase(questions: &mut [QuizQuestion], agent: &Agent, output: &Output) {
    for some in questions.chunks_mut(MOST_PHRASED) {
        if let Err(error) = agent.phrase(some, &Meter::default()).await {
            output.note(format!("{error}; the questions are asked as they are"));
            return;
        }
    }
}

/// The page that the user named by its id, address or title, or by a part of one of them that no other page has.
async fn page_named(named: &str, filter: &Filter, book: &Retriever) -> Result<String, Failure> {
    let outline = book.outline().await.map_err(compose::retrieve_failure)?;
    let pages: Vec<&PageOutline> = outline.iter().filter(|page| filter.admits_page(page)).collect();
    let wanted = named.trim().to_lowercase();
    let is_called = |page: &&&PageOutline| {
        [&page.document_id, &page.url, &page.title].into_iter().any(|name| name.to_lowercase() == wanted)
    };
    let contains = |page: &&&PageOutline| {
        page.document_id.to_lowercase().contains(&wanted) || page.title.to_lowercase().contains(&wanted)
    };
    let exact: Vec<_> = pages.iter().filter(is_called).collect();
    let found = if exact.is_empty() { pages.iter().filter(contains).collect() } else { exact };
    match found.as_slice() {
        [only] => Ok(only.document_id.clone()),
        [] => {
            let names = pages.iter().flat_map(|page| [page.document_id.as_str(), page.title.as_str()]);
            let near = nearest(named, names).map(|near| format!("did you mean {near}?"));
            Err(Failure::usage(format!("there is no page `{named}`")).hint(
                near.unwrap_or_else(|| "`docent search` shows the pages that match some words".to_owned()),
            ))
        }
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|page| page.document_id.as_str()).collect();
            Err(Failure::usage(format!("{} pages match `{named}`", several.len()))
                .hint(format!("name one of them: {}", names.join(", "))))
        }
    }
}

/// Prints the answer, its quote and its place.
fn solve(question: &QuizQuestion, output: &Output) -> Result<(), Failure> {
    for line in question.answer.lines() {
        output.line(format!("   {GOOD}{line}{GOOD:#}"))?;
    }
    if question.quote != question.answer {
        for line in question.readable_quote().lines().filter(|line| !line.trim().is_empty()) {
            output.line(format!("   {FAINT}> {line}{FAINT:#}"))?;
        }
    }
    output.line(format!("   {LINK}{}{LINK:#}\n", question.url))
}

/// A quiz on a terminal. `read` shows a prompt and reads a line; none if the user leaves.
struct Asking<R> {
    output: Output,
    read: R,
}

/// How a quiz went.
struct Outcome<'a> {
    /// Number of questions that were asked.
    asked: usize,
    /// The questions that the user did not know at first.
    missed: Vec<&'a QuizQuestion>,
    /// How many of them the user knew the second time.
    learned: usize,
}

impl<R: FnMut(&str) -> Result<Option<String>, Failure>> Asking<R> {
    fn ask_all<'a>(mut self, questions: &'a [QuizQuestion]) -> Result<Outcome<'a>, Failure> {
        let count = questions.len();
        self.output.note(format!(
            "{FAINT}{count} question{} · Enter shows a hint, another hint, then the answer · Ctrl-D leaves{FAINT:#}\n",
            if count == 1 { "" } else { "s" }
        ));
        let mut outcome = Outcome { asked: 0, missed: Vec::new(), learned: 0 };
        for (number, question) in questions.iter().enumerate() {
            let Some(knew) = self.ask(&format!("{}/{count}", number + 1), question)? else {
                return Ok(outcome);
            };
            outcome.asked += 1;
            if !knew {
                outcome.missed.push(question);
            }
        }
        if !outcome.missed.is_empty() {
            self.output.line(format!("{STRONG}Once more, the ones you missed:{STRONG:#}\n"))?;
        }
        for question in &outcome.missed {
            let Some(knew) = self.ask("again", question)? else { break };
            outcome.learned += usize::from(knew);
        }
        Ok(outcome)
    }

    /// Asks a question; returns whether the user knew the answer, or nothing if the user left.
    fn ask(&mut self, number: &str, question: &QuizQuestion) -> Result<Option<bool>, Failure> {
        self.output.line(format!("{FAINT}{number}{FAINT:#}  {STRONG}{}{STRONG:#}", question.question))?;
        for hint in &question.hints {
            if (self.read)("   Enter for a hint › ")?.is_none() {
                return Ok(None);
            }
            self.output.line(format!("   {hint}"))?;
        }
        if (self.read)("   Enter for the answer › ")?.is_none() {
            return Ok(None);
        }
        solve(question, &self.output)?;
        loop {
            let Some(line) = (self.read)("   Did you know it? y/n › ")? else { return Ok(None) };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Some(true)),
                "n" | "no" => return Ok(Some(false)),
                _ => self.output.note("   type y or n"),
            }
        }
    }
}

impl Outcome<'_> {
    fn print(&self, output: &Output) -> Result<(), Failure> {
        let Self { asked, missed, learned } = self;
        let again =
            if missed.is_empty() { String::new() } else { format!(", {learned} more on the second try") };
        output.line(format!("\n{STRONG}You knew {} of {asked}{again}.{STRONG:#}", asked - missed.len()))?;
        let sections = self.sections();
        if !sections.is_empty() {
            output.line(format!("{WARN}Read again:{WARN:#}"))?;
        }
        sections.iter().try_for_each(|(name, url)| output.line(format!("   {name}\n   {LINK}{url}{LINK:#}")))
    }

    /// The sections of the missed questions, each once.
    fn sections(&self) -> Vec<(String, &str)> {
        let mut sections: Vec<(String, &str)> = Vec::new();
        for question in &self.missed {
            if !sections.iter().any(|(_, url)| *url == question.url) {
                sections.push((place(question), &question.url));
            }
        }
        sections
    }
}

fn place(question: &QuizQuestion) -> String {
    match &question.heading {
        Some(heading) if *heading != question.page_title => format!("{} › {heading}", question.page_title),
        _ => question.page_title.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_core::chunk::Chunk;
    use uuid::Uuid;

    #[test]
    fn missed_questions_come_back_once_and_their_sections_are_listed() {
        let mut page = Vec::new();
        for (number, text) in
            ["A pump is a machine that moves water.", "`-q` turns off the lamp of the pump."]
                .iter()
                .enumerate()
        {
            let mut chunk = Chunk::new(Uuid::from_u128(number as u128), "pumps.md", *text);
            chunk.url = format!("https://book.example/pumps#{number}");
            chunk.page_title = "Pumps".to_owned();
            page.push(chunk);
        }
        let questions = quiz::questions(&page);
        assert_eq!(questions.len(), 2, "{questions:?}");
        let output = Output { json: false, quiet: true, verbose: false };
        // Hint, hint, answer, graded; the first question is missed, and known the second time.
        let mut lines = ["", "", "", "maybe", "n", "", "", "", "Y", "", "", "", "yes"].into_iter();
        let read = |_: &str| Ok(lines.next().map(str::to_owned));
        let outcome = Asking { output, read }.ask_all(&questions).unwrap();
        assert_eq!((outcome.asked, outcome.missed.len(), outcome.learned), (2, 1, 1));
        assert_eq!(outcome.sections(), [("Pumps".to_owned(), "https://book.example/pumps#0")]);
        assert!(lines.next().is_none());
        // Leaving in the middle.
        let read = |_: &str| Ok(None);
        assert_eq!(Asking { output, read }.ask_all(&questions).unwrap().asked, 0);
    }
}
