//! `docent calibrate-verify`: measure and fit the answer verification on labeled claims.

use std::collections::HashMap;
use std::sync::Arc;

use docent_core::language::Language;
use docent_core::terms::Analyzer;
use docent_core::verify::{Calibration, SUPPORTED, Signals, Verifier};
use serde::Serialize;

use crate::cli::CalibrateVerify;
use crate::compose;
use crate::eval::fit::auc;
use crate::eval::support::{
    Judged, as_checked, auroc, cross_validated, fitted, fitted_with_reader, judge, read_documents,
};
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: CalibrateVerify, output: &Output) -> Result<(), Failure> {
    let documents = match &arguments.corpus {
        Some(path) => read_documents(path)?,
        None => HashMap::new(),
    };
    let analyzer = Arc::new(Analyzer::new(Language::default()));
    let verifier =
        Verifier::new(analyzer, compose::embedder(settings).await?, compose::reader(settings).await?);
    let (mut names, mut sets) = (Vec::new(), Vec::new());
    for path in &arguments.claims {
        let claims = judge(path, &documents, &verifier).await?;
        let supported = claims.iter().filter(|claim| claim.supported).count();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        names.push(format!("{name} ({supported} supported, {} not)", claims.len() - supported));
        sets.push(claims);
    }
    let all = || sets.iter().flatten();
    let shipped = Calibration::shipped();
    let fitted = if arguments.with_reader {
        Calibration {
            fitted_on: format!("{}; with a reader: {}", shipped.fitted_on, names.join("; ")),
            with_reader: fitted_with_reader(sets.iter()),
            ..shipped.clone()
        }
    } else {
        Calibration {
            fitted_on: names.join("; "),
            command: "docent calibrate-verify FILE… --corpus FILE --out FILE".to_owned(),
            with_similarity: fitted(all(), false),
            by_words: fitted(all(), true),
            with_reader: shipped.with_reader,
        }
    };
    let (meaning, words) = (cross_validated(&sets, false), cross_validated(&sets, true));
    for (number, (name, set)) in names.iter().zip(&sets).enumerate() {
        show(name, set, [meaning[number], words[number]], output)?;
    }
    if let Some(path) = &arguments.scores {
        write_file(path, scores(&names, &sets)?)?;
    }
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&fitted).map_err(anyhow::Error::from)?;
        write_file(path, text + "\n")?;
    }
    Ok(())
}

/// A claim as `--scores` writes it.
#[derive(Serialize)]
struct Scored<'a> {
    set: &'a str,
    score: f32,
    #[serde(flatten)]
    claim: &'a Judged,
}

fn scores(names: &[String], sets: &[Vec<Judged>]) -> Result<String, Failure> {
    let mut text = String::new();
    for (set, claims) in names.iter().zip(sets) {
        for claim in claims {
            let scored = Scored { set, score: as_checked(claim), claim };
            text += &serde_json::to_string(&scored).map_err(anyhow::Error::from)?;
            text.push('\n');
        }
    }
    Ok(text)
}

/// Extracts one signal.
type Reading = fn(&Signals) -> f32;

fn show(name: &str, set: &[Judged], [meaning, words]: [f64; 2], output: &Output) -> Result<(), Failure> {
    let shipped = Calibration::shipped();
    let by_words =
        |signals: &Signals| shipped.support(&Signals { similarity: None, reader: None, ..*signals });
    let checked = |supported: bool| -> Vec<f32> {
        set.iter().filter(|claim| claim.supported == supported).map(as_checked).collect()
    };
    let read = set.iter().filter(|claim| claim.signals.reader.is_some()).count();
    output.line(format!(
        "{name}: AUROC={:.4} (words only {:.4}); cross-validated with similarity {meaning:.4} (words only {words:.4})",
        auc(&checked(true), &checked(false)),
        auroc(set, by_words),
    ))?;
    let signals: [(&str, Reading); 9] = [
        ("coverage of the span", |signals| signals.coverage),
        ("coverage of the passage", |signals| signals.passage_coverage),
        ("similarity", |signals| signals.similarity.unwrap_or_default()),
        ("no invented number", |signals| -signals.invented_numbers),
        ("no changed negation", |signals| -signals.negation),
        ("no opposite direction", |signals| -signals.opposite),
        ("reader: mentioned", |signals| signals.reader.map_or(0.0, |reader| reader.mentioned)),
        ("reader: agrees", |signals| signals.reader.map_or(0.0, |reader| reader.agrees)),
        ("no rule violated", |signals| if signals.vetoed { 0.0 } else { 1.0 }),
    ];
    for (name, signal) in signals {
        output.line(format!("  {name}: {:.4}", auroc(set, signal)))?;
    }
    let share = |supported: bool| {
        let scores = checked(supported);
        let passed = scores.iter().filter(|score| **score >= SUPPORTED).count();
        100.0 * passed as f64 / scores.len().max(1) as f64
    };
    let broken = |supported: bool| {
        let kind: Vec<&Judged> = set.iter().filter(|claim| claim.supported == supported).collect();
        100.0 * kind.iter().filter(|claim| claim.signals.vetoed).count() as f64 / kind.len().max(1) as f64
    };
    output.note(format!(
        "  at threshold {SUPPORTED}: {:.1} % of the supported claims pass, {:.1} % of the others; the reader read \
         {:.0} %; rules reject {:.1} % of the supported and {:.1} % of the others",
        share(true),
        share(false),
        100.0 * read as f64 / set.len().max(1) as f64,
        broken(true),
        broken(false),
    ));
    Ok(())
}
