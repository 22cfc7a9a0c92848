//! `docent calibrate`: fit the relevance model on questions a book covers and questions it does not.

use std::path::Path;

use docent_core::relevance::{Calibration, Signals};

use crate::cli::Calibrate;
use crate::compose;
use crate::eval::answers::{self, read_others};
use crate::eval::curve::{Case, curve_text, risk_coverage};
use crate::eval::fit::{Example, fit, summary};
use crate::eval::{EvalBook, QuestionSet, open_index, question};
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Calibrate, output: &Output) -> Result<(), Failure> {
    let others = match &arguments.others {
        Some(path) => read_others(path, &[])?,
        None => Vec::new(),
    };
    let mut examples = Vec::new();
    let mut names = Vec::new();
    for set in &arguments.sets {
        // `DIR:DOMAIN` says which of the other questions are about this book after all.
        let (folder, domain) = set.rsplit_once(':').unwrap_or((set, ""));
        let set = QuestionSet::read(Path::new(folder))?;
        let kept = arguments.index.as_ref().map(|folder| folder.join(set.name()));
        let book = open_index(settings, &set, kept.as_deref(), output).await?;
        let before = examples.len();
        for (_, text) in &set.queries {
            examples.push(Example { signals: signals(&book, text).await?, covered: true });
        }
        let own = answers::read_questions(&set)?.unwrap_or_default();
        // Where the set has no list of its own, its answers say which questions are covered.
        for asked in own.iter().filter(|asked| asked.is_answerable() && set.queries.is_empty()) {
            examples.push(Example { signals: signals(&book, &asked.question).await?, covered: true });
        }
        let covered = examples.len() - before;
        for asked in own.iter().filter(|asked| !asked.is_answerable()) {
            examples.push(Example { signals: signals(&book, &asked.question).await?, covered: false });
        }
        for other in others.iter().filter(|other| domain.is_empty() || other.domain != domain) {
            examples.push(Example { signals: signals(&book, &other.question).await?, covered: false });
        }
        let foreign = examples.len() - before - covered;
        output.note(format!("{}: {covered} questions it covers, {foreign} it does not", set.name()));
        names.push(format!("{} ({covered} covered, {foreign} not)", set.name()));
    }
    if examples.iter().all(|example| example.covered) {
        return Err(Failure::usage("there is no question that the books do not cover")
            .hint("name some with --others FILE: a JSON line each, with `question` and `domain`"));
    }
    let keywords: Vec<Example> = examples
        .iter()
        .map(|example| Example { signals: example.signals.without_vectors(), ..*example })
        .collect();
    let fitted = Calibration {
        fitted_on: names.join("; "),
        command: "docent calibrate DIR[:DOMAIN]… --others FILE --out FILE".to_owned(),
        hybrid: fit(&examples),
        keywords: fit(&keywords),
    };
    output.object(&fitted)?;
    let (shipped, threshold) = (Calibration::shipped(), settings.retrieval.min_relevance_score);
    for (name, before, after, examples) in [
        ("with vectors", shipped.hybrid, fitted.hybrid, &examples),
        ("keywords alone", shipped.keywords, fitted.keywords, &keywords),
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
        "\nrisk–coverage with vectors: the share of questions answered, and of those the share the book does not cover\n{}",
        curve_text(&risk_coverage(&cases))
    ));
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&fitted).map_err(anyhow::Error::from)?;
        write_file(path, text + "\n")?;
    }
    Ok(())
}

async fn signals(book: &EvalBook, text: &str) -> Result<Signals, Failure> {
    let retrieved = book.retriever.search(&question(text, 5)?).await.map_err(compose::retrieve_failure)?;
    Ok(retrieved.signals)
}
