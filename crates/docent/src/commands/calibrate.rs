//! `docent calibrate`: fit the relevance model on covered and out-of-scope questions.

use std::collections::BTreeMap;
use std::path::Path;

use docent_core::relevance::Calibration;

use crate::cli::Calibrate;
use crate::compose;
use crate::eval::answers::{self, Asked, read_others};
use crate::eval::curve::{Case, curve_text, risk_coverage};
use crate::eval::fit::{Example, fit, fit_reader, reader_summary, summary};
use crate::eval::reading::{self, ReadingQuestion};
use crate::eval::{EvalBook, QuestionSet, open_index, question};
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Calibrate, output: &Output) -> Result<(), Failure> {
    let (examples, names) = read_sets(settings, &arguments, output).await?;
    if examples.iter().all(|example| example.covered) {
        return Err(Failure::usage("no out-of-scope questions")
            .hint("add some with --others FILE: JSON lines with `question` and `domain`"));
    }
    let threshold = settings.retrieval.min_relevance_score;
    let fitted = match arguments.with_reader {
        true => with_reader(&examples, &names, threshold, output),
        false => without_reader(&examples, &names, threshold, output),
    };
    write(&fitted, &arguments, output)
}

/// The examples of all sets, and a description of each set.
async fn read_sets(
    settings: &Settings,
    arguments: &Calibrate,
    output: &Output,
) -> Result<(Vec<Example>, Vec<String>), Failure> {
    let others = match &arguments.others {
        Some(path) => read_others(path, &[])?,
        None => Vec::new(),
    };
    let (mut examples, mut names) = (Vec::new(), Vec::new());
    for set in &arguments.sets {
        // In `DIR:DOMAIN`, DOMAIN marks the questions of `--others` that the book does cover.
        let (folder, domain) = set.rsplit_once(':').unwrap_or((set, ""));
        let (name, read) = if reading::is_set(Path::new(folder)) {
            let read = from_reading_set(settings, Path::new(folder), arguments, output).await?;
            (folder.to_owned(), read)
        } else {
            let set = QuestionSet::read(Path::new(folder))?;
            let others: Vec<&Asked> =
                others.iter().filter(|other| domain.is_empty() || other.domain != domain).collect();
            let read = from_question_set(settings, &set, &others, arguments, output).await?;
            (set.name().to_owned(), read)
        };
        let covered = read.iter().filter(|example| example.covered).count();
        names.push(format!("{name} ({covered} covered, {} not)", read.len() - covered));
        examples.extend(read);
    }
    Ok((examples, names))
}

/// Examples from a reading set: questions with and without an answer in their book.
async fn from_reading_set(
    settings: &Settings,
    folder: &Path,
    arguments: &Calibrate,
    output: &Output,
) -> Result<Vec<Example>, Failure> {
    let Some(books) = &arguments.books else {
        return Err(Failure::usage(format!("the questions in {} refer to books", folder.display()))
            .hint("set --books DIR to the folder with these books"));
    };
    let mut questions: BTreeMap<String, Vec<ReadingQuestion>> = BTreeMap::new();
    for question in reading::read(folder)?.into_iter().filter(ReadingQuestion::stands_alone) {
        questions.entry(question.book.clone()).or_default().push(question);
    }
    let mut examples = Vec::new();
    for (name, questions) in questions {
        let kept = arguments.index.as_ref().map(|kept| kept.join(&name));
        let book = open_index(settings, &books.join(&name), kept.as_deref(), output).await?;
        for asked in questions {
            examples.push(example(&book, asked.text(), asked.is_answerable()).await?);
        }
    }
    Ok(examples)
}

/// Examples from a question set: its own questions, and `others` as questions that its book does not cover.
async fn from_question_set(
    settings: &Settings,
    set: &QuestionSet,
    others: &[&Asked],
    arguments: &Calibrate,
    output: &Output,
) -> Result<Vec<Example>, Failure> {
    let kept = arguments.index.as_ref().map(|folder| folder.join(set.name()));
    let book = open_index(settings, &set.corpus, kept.as_deref(), output).await?;
    let own = answers::read_questions(set)?.unwrap_or_default();
    let (answerable, unanswerable): (Vec<&Asked>, Vec<&Asked>) =
        own.iter().partition(|asked| asked.is_answerable());
    let mut covered: Vec<&str> = set.queries.iter().map(|(_, text)| text.as_str()).collect();
    if covered.is_empty() {
        // Without queries.jsonl, the answerable questions of qa.jsonl are the covered ones.
        covered.extend(answerable.iter().map(|asked| asked.question.as_str()));
    }
    let foreign = unanswerable.iter().chain(others).map(|asked| asked.question.as_str());
    let questions = covered.iter().map(|text| (*text, true)).chain(foreign.map(|text| (text, false)));
    let mut examples = Vec::new();
    for (text, is_covered) in questions {
        examples.push(example(&book, text, is_covered).await?);
    }
    let (covered, name) = (covered.len(), set.name());
    let foreign = examples.len() - covered;
    output.note(format!("{name}: {covered} covered questions, {foreign} out-of-scope questions"));
    Ok(examples)
}

/// Fits the part of the model that uses the reader's scores; the rest stays as shipped.
fn with_reader(examples: &[Example], names: &[String], threshold: f32, output: &Output) -> Calibration {
    let shipped = Calibration::shipped();
    let fitted = fit_reader(examples, threshold);
    for (name, model) in [("shipped", shipped.reader), ("fitted", fitted)] {
        output.note(format!("{name}: {}", reader_summary(&model, examples, threshold)));
    }
    Calibration {
        fitted_on: format!("{}; with a reader: {}", shipped.fitted_on, names.join("; ")),
        reader: fitted,
        ..shipped.clone()
    }
}

/// Fits the part of the model that uses the signals of the search; the rest stays as shipped.
fn without_reader(examples: &[Example], names: &[String], threshold: f32, output: &Output) -> Calibration {
    let shipped = Calibration::shipped();
    let keywords: Vec<Example> = examples
        .iter()
        .map(|example| Example { signals: example.signals.without_vectors(), ..*example })
        .collect();
    let fitted = Calibration {
        fitted_on: names.join("; "),
        command: "docent calibrate DIR[:DOMAIN]… --others FILE --out FILE".to_owned(),
        hybrid: fit(examples, threshold),
        other_embedders: shipped.other_embedders,
        keywords: fit(&keywords, threshold),
        reader: shipped.reader,
    };
    for (name, before, after, examples) in [
        ("with vectors", shipped.hybrid, fitted.hybrid, examples),
        ("keywords only", shipped.keywords, fitted.keywords, keywords.as_slice()),
    ] {
        output.note(format!("{name}, shipped: {}", summary(&before, examples, threshold)));
        output.note(format!("{name}, fitted:  {}", summary(&after, examples, threshold)));
    }
    let cases: Vec<Case> = examples
        .iter()
        .map(|example| Case {
            answerable: example.covered,
            relevance: fitted.hybrid.probability(&example.signals),
            ..Case::default()
        })
        .collect();
    output.note(format!(
        "\nrisk and coverage with vectors: the share of questions that are answered, and the share of those that the book does not cover\n{}",
        curve_text(&risk_coverage(&cases))
    ));
    fitted
}

fn write(fitted: &Calibration, arguments: &Calibrate, output: &Output) -> Result<(), Failure> {
    output.object(fitted)?;
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(fitted).map_err(anyhow::Error::from)?;
        write_file(path, text + "\n")?;
    }
    Ok(())
}

async fn example(book: &EvalBook, text: &str, covered: bool) -> Result<Example, Failure> {
    let retrieved = book.retriever.search(&question(text, 5)?).await.map_err(compose::retrieve_failure)?;
    let (relevance, answers) = (retrieved.by_signals, retrieved.answers.unwrap_or_default());
    Ok(Example { signals: retrieved.signals, relevance, answers, covered })
}
