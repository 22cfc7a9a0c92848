//! `docent calibrate-reading`: fit the weights that choose answering statements, on questions with known answers.

use std::collections::BTreeMap;

use docent_core::excerpt::excerpts;
use docent_core::read::fit::{Example, fit};
use docent_core::read::{Judged, Read, Signals, Weights, WithReader, numbers_of_reader};
use docent_core::retrieve::Retrieved;

use crate::cli::CalibrateReading;
use crate::compose;
use crate::eval::reading::{self, ReadingQuestion};
use crate::eval::{open_index, question};
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::settings::Settings;

/// How many passages of a question are recorded: as many as an answer is made from.
const PASSAGES_SHOWN: usize = 5;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: CalibrateReading, output: &Output) -> Result<(), Failure> {
    let mut questions: BTreeMap<String, Vec<ReadingQuestion>> = BTreeMap::new();
    for question in reading::read(&arguments.folder)?.into_iter().filter(ReadingQuestion::stands_alone) {
        if arguments.only.is_empty() || arguments.only.contains(&question.book) {
            questions.entry(question.book.clone()).or_default().push(question);
        }
    }
    if let Some(path) = &arguments.record {
        return write_file(path, recorded(settings, &arguments, questions, output).await?);
    }
    if arguments.with_reader {
        let books = examples(settings, &arguments, questions, output, with_reader).await?;
        let [signals, piece, relevance] = cross_validated(&books, output)?;
        let fitted = WithReader { fitted_on: counted(&books), signals, piece, relevance };
        return write(&Weights { with_reader: fitted, ..Weights::shipped() }, &arguments);
    }
    let books = examples(settings, &arguments, questions, output, |read, _| read.signals.0).await?;
    let fitted = cross_validated(&books, output)?;
    let weights = Signals::NAMES.iter().zip(fitted).map(|(name, weight)| ((*name).to_owned(), weight));
    let weights = Weights { fitted_on: counted(&books), weights: weights.collect(), ..Weights::shipped() };
    write(&weights, &arguments)
}

/// The score of a statement by its signals, and the reader's two numbers for it.
fn with_reader(statement: &Read, judged: &[Judged]) -> [f32; 3] {
    let (piece, relevance) = numbers_of_reader(statement, judged);
    [statement.score, piece, relevance]
}

/// What the search finds for the questions of every book, as JSON lines: its passages with the probability of every
/// statement to answer. Other rules for choosing spans can be tried on it without searching again.
async fn recorded(
    settings: &Settings,
    arguments: &CalibrateReading,
    questions: BTreeMap<String, Vec<ReadingQuestion>>,
    output: &Output,
) -> Result<String, Failure> {
    let mut lines = String::new();
    let mut cutting = Cutting::default();
    for (name, questions) in questions {
        let kept = arguments.index.as_ref().map(|kept| kept.join(&name));
        let book = open_index(settings, &arguments.books.join(&name), kept.as_deref(), output).await?;
        for asked in questions {
            let question = question(asked.text(), PASSAGES_SHOWN)?;
            let found = book.retriever.search(&question).await.map_err(compose::retrieve_failure)?;
            cutting.count(&asked, &found);
            lines += &asked.recorded(&found).to_string();
            lines.push('\n');
        }
    }
    cutting.print(output)?;
    Ok(lines)
}

/// What cutting passages for a model saves and loses, over the answerable questions.
#[derive(Default)]
struct Cutting {
    questions: usize,
    /// Words of the passages, and of their excerpts.
    words: [usize; 2],
    /// Questions with an answer in the passages, and in their excerpts.
    answered: [usize; 2],
}

impl Cutting {
    fn count(&mut self, asked: &ReadingQuestion, found: &Retrieved) {
        if !asked.is_answerable() {
            return;
        }
        let whole: Vec<&str> = found.hits.iter().map(|hit| hit.chunk.content.as_str()).collect();
        let cut = excerpts(&found.hits, &found.read);
        let cut: Vec<&str> = cut.iter().map(|excerpt| excerpt.text.as_ref()).collect();
        self.questions += 1;
        for (at, texts) in [whole, cut].into_iter().enumerate() {
            let text = texts.join("\n");
            self.words[at] += text.split_whitespace().count();
            self.answered[at] += usize::from(asked.is_answered_by(&text));
        }
    }

    fn print(&self, output: &Output) -> Result<(), Failure> {
        let questions = self.questions.max(1);
        let share = |at: usize| 100.0 * self.answered[at] as f64 / questions as f64;
        let words = |at: usize| self.words[at] / questions;
        output.line(format!(
            "{} questions: passages have {} words, the excerpts sent to a model {}; the answer is in {:.1} % of the passages, {:.1} % of the excerpts",
            self.questions, words(0), words(1), share(0), share(1)
        ))
    }
}

/// Searches for the questions of every book. Each example lists the statements found, with their numbers and whether
/// they answer the question.
async fn examples<const N: usize>(
    settings: &Settings,
    arguments: &CalibrateReading,
    questions: BTreeMap<String, Vec<ReadingQuestion>>,
    output: &Output,
    known: impl Fn(&Read, &[Judged]) -> [f32; N],
) -> Result<BTreeMap<String, Vec<Example<N>>>, Failure> {
    let mut books: BTreeMap<String, Vec<Example<N>>> = BTreeMap::new();
    for (name, questions) in questions {
        let kept = arguments.index.as_ref().map(|kept| kept.join(&name));
        let book = open_index(settings, &arguments.books.join(&name), kept.as_deref(), output).await?;
        for asked in questions {
            let question = question(asked.text(), 1)?;
            let examined = book.retriever.examine(&question).await.map_err(compose::retrieve_failure)?;
            let answers = |read: &Read| {
                asked.is_answered_by(&examined.passages[read.passage].chunk.content[read.span.clone()])
            };
            let example: Example<N> = examined
                .statements
                .iter()
                .map(|read| (known(read, &examined.judged), answers(read)))
                .collect();
            if example.iter().any(|(_, answers)| *answers) {
                books.entry(name.clone()).or_default().push(example);
            }
        }
    }
    Ok(books)
}

/// The weights fitted on all books. Also prints how good they are on each book when fitted on the others.
fn cross_validated<const N: usize>(
    books: &BTreeMap<String, Vec<Example<N>>>,
    output: &Output,
) -> Result<[f32; N], Failure> {
    let (mut best, mut count) = (0.0, 0);
    for held_out in books.keys() {
        let others: Vec<Example<N>> = books
            .iter()
            .filter(|(name, _)| *name != held_out)
            .flat_map(|(_, examples)| examples.clone())
            .collect();
        let weights = fit(&others);
        let right = books[held_out].iter().filter(|example| first_answers(example, &weights)).count();
        output.line(format!(
            "{held_out:<28}{:>5}{:>6.0}%",
            books[held_out].len(),
            100.0 * right as f64 / books[held_out].len() as f64
        ))?;
        best += right as f64;
        count += books[held_out].len();
    }
    output.line(format!(
        "{:<28}{count:>5}{:>6.0}%  top statement answers the question; each book held out in turn",
        "all",
        100.0 * best / count.max(1) as f64
    ))?;
    let all: Vec<Example<N>> = books.values().flatten().cloned().collect();
    Ok(fit(&all).map(rounded))
}

fn counted<const N: usize>(books: &BTreeMap<String, Vec<Example<N>>>) -> String {
    let counted: Vec<String> =
        books.iter().map(|(name, examples)| format!("{name} ({})", examples.len())).collect();
    counted.join(", ")
}

fn write(weights: &Weights, arguments: &CalibrateReading) -> Result<(), Failure> {
    let Some(path) = &arguments.out else { return Ok(()) };
    let text = serde_json::to_string_pretty(weights).map_err(anyhow::Error::from)?;
    write_file(path, text + "\n")
}

fn first_answers<const N: usize>(example: &Example<N>, weights: &[f32; N]) -> bool {
    let weighed =
        |known: &[f32; N]| known.iter().zip(weights).map(|(known, weight)| known * weight).sum::<f32>();
    let best = example.iter().max_by(|(a, _), (b, _)| weighed(a).total_cmp(&weighed(b)));
    best.is_some_and(|(_, answers)| *answers)
}

/// Rounds to three decimals; more would suggest precision that is not there.
fn rounded(weight: f32) -> f32 {
    (weight * 1000.0).round() / 1000.0
}
