//! `docent calibrate-verify`: measure the check of sentences on claims, and fit it.

use std::collections::HashMap;
use std::sync::Arc;

use docent_core::language::Language;
use docent_core::terms::Analyzer;
use docent_core::verify::{Calibration, SUPPORTED, Signals, Verifier};

use crate::cli::CalibrateVerify;
use crate::compose;
use crate::eval::support::{Judged, auroc, cross_validated, fitted, judge, read_documents};
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
    let verifier = Verifier::new(analyzer, compose::embedder(settings).await?);
    let (mut names, mut sets) = (Vec::new(), Vec::new());
    for path in &arguments.claims {
        let claims = judge(path, &documents, &verifier).await?;
        let supported = claims.iter().filter(|claim| claim.supported).count();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        names.push(format!("{name} ({supported} supported, {} not)", claims.len() - supported));
        sets.push(claims);
    }
    let all = || sets.iter().flatten();
    let fitted = Calibration {
        fitted_on: names.join("; "),
        command: "docent calibrate-verify FILE… --corpus FILE --out FILE".to_owned(),
        with_similarity: fitted(all(), false),
        by_words: fitted(all(), true),
    };
    let (meaning, words) = (cross_validated(&sets, false), cross_validated(&sets, true));
    for (number, (name, set)) in names.iter().zip(&sets).enumerate() {
        show(name, set, [meaning[number], words[number]], output)?;
    }
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&fitted).map_err(anyhow::Error::from)?;
        write_file(path, text + "\n")?;
    }
    Ok(())
}

/// Reads one signal.
type Reading = fn(&Signals) -> f32;

fn show(name: &str, set: &[Judged], [meaning, words]: [f64; 2], output: &Output) -> Result<(), Failure> {
    let shipped = Calibration::shipped();
    let by_words = |signals: &Signals| shipped.support(&Signals { similarity: None, ..*signals });
    // As answers are checked: the meaning is asked where the words leave a doubt.
    let as_checked = |signals: &Signals| {
        if shipped.is_in_doubt(signals) { shipped.support(signals) } else { by_words(signals) }
    };
    let doubtful = set.iter().filter(|claim| shipped.is_in_doubt(&claim.signals)).count();
    output.line(format!(
        "{name}: AUROC={:.4} (words alone {:.4}); fitted on other claims {meaning:.4} (words alone {words:.4})",
        auroc(set, as_checked),
        auroc(set, by_words),
    ))?;
    let signals: [(&str, Reading); 6] = [
        ("coverage of the span", |signals| signals.coverage),
        ("coverage of the passage", |signals| signals.passage_coverage),
        ("similarity", |signals| signals.similarity.unwrap_or_default()),
        ("no invented number", |signals| -signals.invented_numbers),
        ("no turned negation", |signals| -signals.negation),
        ("no opposite direction", |signals| -signals.opposite),
    ];
    for (name, signal) in signals {
        output.line(format!("  {name}: {:.4}", auroc(set, signal)))?;
    }
    let share = |supported: bool| {
        let kind: Vec<&Judged> = set.iter().filter(|claim| claim.supported == supported).collect();
        let passed = kind.iter().filter(|claim| as_checked(&claim.signals) >= SUPPORTED).count();
        100.0 * passed as f64 / kind.len().max(1) as f64
    };
    output.note(format!(
        "  at {SUPPORTED}: {:.1} % of the supported pass, {:.1} % of the others; the words leave a doubt about {:.0} %",
        share(true),
        share(false),
        100.0 * doubtful as f64 / set.len().max(1) as f64
    ));
    Ok(())
}
