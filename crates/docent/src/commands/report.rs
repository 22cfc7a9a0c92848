//! `docent report`: write a page about what users asked and what the book does not cover.

use std::path::Path;

use docent_core::answer::ResponseKind;
use docent_core::embed::{Embedder, Purpose};
use docent_core::retrieve::Confidence;
use docent_core::turn_log::{LoggedTurn, Rating};
use serde_json::{Value, json};

use crate::cli;
use crate::compose;
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::report::{Asked, Gap, Outcome, Report, Section, gaps, html, is_missed};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: cli::Report, output: &Output) -> Result<(), Failure> {
    let log = compose::stores(settings).await?.log;
    let since = docent_backends::rfc3339_days_ago(arguments.days);
    let turns = log.since(&since).await.map_err(compose::session_failure)?;
    let book = compose::book(settings).await?;
    let outline = book.retriever.outline().await.map_err(compose::retrieve_failure)?;
    let sections: Vec<Section> = outline
        .iter()
        .flat_map(|page| {
            page.sections.iter().map(|section| Section {
                breadcrumb: match &section.heading {
                    Some(heading) if *heading != page.title => format!("{} > {heading}", page.title),
                    _ => page.title.clone(),
                },
                url: section.url.clone(),
            })
        })
        .collect();
    let mut asked: Vec<Asked> = turns.iter().filter(|turn| asks_the_book(turn)).map(asked).collect();
    if let Some(embedder) = &book.meaning {
        add_vectors(&mut asked, embedder.as_ref()).await?;
    }
    let title = book.title.last();
    let report = Report {
        title: &title,
        made: docent_backends::now_rfc3339(),
        days: arguments.days,
        asked: &asked,
        sections: &sections,
    };
    write_file(&arguments.file, html(&report))?;
    if output.json {
        return output.object(&json(&report, &arguments.file));
    }
    output.note(format!(
        "{} questions from the last {} days, written to {}",
        asked.len(),
        arguments.days,
        arguments.file.display()
    ));
    Ok(())
}

/// The report as JSON.
fn json(report: &Report<'_>, file: &Path) -> Value {
    let count = |outcome| report.asked.iter().filter(|asked| asked.outcome == outcome).count();
    let question = |number: &usize| report.asked[*number].question.as_str();
    let gap = |gap: &Gap| {
        let questions: Vec<&str> = gap.questions.iter().map(question).collect();
        let nearest = gap.nearest.as_ref().map(|(title, url)| json!({ "title": title, "url": url }));
        json!({ "questions": questions, "nearest": nearest, "marked_down": gap.downs })
    };
    json!({
        "title": report.title,
        "made": report.made,
        "days": report.days,
        "file": file,
        "questions": report.asked.len(),
        "answered": count(Outcome::Answered),
        "unverified": count(Outcome::Unverified),
        "low": count(Outcome::Low),
        "declined": count(Outcome::Abstained),
        "degraded": report.asked.iter().filter(|asked| asked.degraded).count(),
        "marked_up": report.asked.iter().filter(|asked| asked.rating == Some(true)).count(),
        "marked_down": report.asked.iter().filter(|asked| asked.rating == Some(false)).count(),
        "tokens": report.asked.iter().map(|asked| u64::from(asked.tokens)).sum::<u64>(),
        "gaps": gaps(report.asked).iter().map(gap).collect::<Vec<_>>(),
    })
}

/// Whether a turn says something about the book: a greeting does not, and for an abandoned turn it is unknown
/// whether the book would have answered.
fn asks_the_book(turn: &LoggedTurn) -> bool {
    !turn.abandoned && turn.kind != ResponseKind::Conversation
}

fn asked(turn: &LoggedTurn) -> Asked {
    Asked {
        at: turn.at.clone(),
        question: turn.question.clone(),
        outcome: match (turn.grounded, turn.confidence) {
            (true, _) => Outcome::Answered,
            _ if turn.unverified => Outcome::Unverified,
            (false, Confidence::None) => Outcome::Abstained,
            (false, _) => Outcome::Low,
        },
        relevance: turn.relevance,
        degraded: turn.degraded,
        milliseconds: turn.milliseconds,
        tokens: turn.tokens,
        cited: turn.cited.clone(),
        nearest: turn.nearest.clone(),
        rating: turn.feedback.as_ref().map(|feedback| feedback.rating == Rating::Up),
        comment: turn.feedback.as_ref().and_then(|feedback| feedback.comment.clone()),
        vector: None,
    }
}

/// Adds vectors to the questions that may be part of a gap.
async fn add_vectors(asked: &mut [Asked], embedder: &dyn Embedder) -> Result<(), Failure> {
    let mut wanting: Vec<&mut Asked> = asked.iter_mut().filter(|asked| is_missed(asked)).collect();
    for batch in wanting.chunks_mut(embedder.batch_size().max(1)) {
        let texts: Vec<&str> = batch.iter().map(|asked| asked.question.as_str()).collect();
        let vectors = embedder.embed(&texts, Purpose::Query).await.map_err(compose::embed_failure)?;
        batch.iter_mut().zip(vectors).for_each(|(asked, vector)| asked.vector = Some(vector));
    }
    Ok(())
}
