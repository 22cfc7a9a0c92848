//! `docent calibrate`: fit the relevance model on covered and out-of-scope questions.

use std::collections::BTreeMap;
use std::path::Path;

use docent_core::relevance::Calibration;

use crate::cli::Calibrate;
use crate::compose;
use crate::eval::answers::{self, read_others};
use crate::eval::curve::{Case, curve_text, risk_coverage};
use crate::eval::fit::{Example, fit, fit_reader, reader_summary, summary};
use crate::eval::reading::{self, ReadingQuestion};
use crate::eval::{EvalBook, QuestionSet, open_index, question};
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::settings::Settings;

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

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Calibrate, output: &Output) -> Result<(), Failure> {
    let others = match &arguments.others {
        Some(path) => read_others(path, &[])?,
        None => Vec::new(),
    };
    let mut examples = Vec::new();
    let mut names = Vec::new();
    for set in &arguments.sets {
        // In `DIR:DOMAIN`, DOMAIN marks the questions of `--others` that the book does cover.
        let (folder, domain) = set.rsplit_once(':').unwrap_or((set, ""));
        if reading::is_set(Path::new(folder)) {
            let read = from_reading_set(settings, Path::new(folder), &arguments, output).await?;
            let covered = read.iter().filter(|example| example.covered).count();
            names.push(format!("{folder} ({covered} covered, {} not)", read.len() - covered));
            examples.extend(read);
            continue;
        }
        let set = QuestionSet::read(Path::new(folder))?;
        let kept = arguments.index.as_ref().map(|folder| folder.join(set.name()));
        let book = open_index(settings, &set.corpus, kept.as_deref(), output).await?;
        let before = examples.len();
        for (_, text) in &set.queries {
            examples.push(example(&book, text, true).await?);
        }
        let own = answers::read_questions(&set)?.unwrap_or_default();
        // Without queries.jsonl, the answerable questions of qa.jsonl are the covered ones.
        for asked in own.iter().filter(|asked| asked.is_answerable() && set.queries.is_empty()) {
            examples.push(example(&book, &asked.question, true).await?);
        }
        let covered = examples.len() - before;
        for asked in own.iter().filter(|asked| !asked.is_answerable()) {
            examples.push(example(&book, &asked.question, false).await?);
        }
        for other in others.iter().filter(|other| domain.is_empty() || other.domain != domain) {
            examples.push(example(&book, &other.question, false).await?);
        }
        let foreign = examples.len() - before - covered;
        output.note(format!("{}: {covered} covered questions, {foreign} out-of-scope questions", set.name()));
        names.push(format!("{} ({covered} covered, {foreign} not)", set.name()));
    }
    if examples.iter().all(|example| example.covered) {
        return Err(Failure::usage("no out-of-scope questions")
            .hint("add some with --others FILE: JSON lines with `question` and `domain`"));
    }
    let threshold = settings.retrieval.min_relevance_score;
    if arguments.with_reader {
        let shipped = Calibration::shipped();
        let fitted = fit_reader(&examples, threshold);
        for (name, model) in [("shipped", shipped.reader), ("fitted", fitted)] {
            output.note(format!("{name}: {}", reader_summary(&model, &examples, threshold)));
        }
        let fitted = Calibration {
            fitted_on: format!("{}; with a reader: {}", shipped.fitted_on, names.join("; ")),
            reader: fitted,
            ..shipped.clone()
        };
        return write(&fitted, &arguments, output);
    }
    let keywords: Vec<Example> = examples
        .iter()
        .map(|example| Example { signals: example.signals.without_vectors(), ..*example })
        .collect();
    let fitted = Calibration {
        fitted_on: names.join("; "),
        command: "docent calibrate DIR[:DOMAIN]… --others FILE --out FILE".to_owned(),
        hybrid: fit(&examples, threshold),
        other_embedders: Calibration::shipped().other_embedders,
        keywords: fit(&keywords, threshold),
        reader: Calibration::shipped().reader,
    };
    let shipped = Calibration::shipped();
    for (name, before, after, examples) in [
        ("with vectors", shipped.hybrid, fitted.hybrid, &examples),
        ("keywords only", shipped.keywords, fitted.keywords, &keywords),
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
    write(&fitted, &arguments, output)
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
