//! `docent report`: what readers asked, and what the book lacks, as one page for its owner.

use docent_core::embed::{Embedder, Purpose};
use docent_core::log::{LoggedTurn, Rating};
use docent_core::retrieve::Confidence;

use crate::cli;
use crate::compose;
use crate::exit::Failure;
use crate::output::{Output, write_file};
use crate::report::{Asked, Outcome, Report, Section, html};
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
    let mut asked: Vec<Asked> = turns.iter().map(asked).collect();
    if let Some(embedder) = &book.meaning {
        add_vectors(&mut asked, embedder.as_ref()).await?;
    }
    let title = book.title(settings);
    let report = Report {
        title: &title,
        made: docent_backends::now_rfc3339(),
        days: arguments.days,
        asked: &asked,
        sections: &sections,
    };
    write_file(&arguments.file, html(&report))?;
    output.note(format!(
        "{} questions of {} days in {}",
        asked.len(),
        arguments.days,
        arguments.file.display()
    ));
    Ok(())
}

fn asked(turn: &LoggedTurn) -> Asked {
    Asked {
        at: turn.at.clone(),
        question: turn.question.clone(),
        outcome: match (turn.grounded, turn.confidence) {
            (true, _) => Outcome::Answered,
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

/// Vectors for the questions that may be part of a gap.
async fn add_vectors(asked: &mut [Asked], embedder: &dyn Embedder) -> Result<(), Failure> {
    let mut wanting: Vec<&mut Asked> = asked
        .iter_mut()
        .filter(|asked| asked.outcome != Outcome::Answered || asked.rating == Some(false))
        .collect();
    for batch in wanting.chunks_mut(embedder.batch_size().max(1)) {
        let texts: Vec<&str> = batch.iter().map(|asked| asked.question.as_str()).collect();
        let vectors = embedder.embed(&texts, Purpose::Query).await.map_err(compose::embed_failure)?;
        batch.iter_mut().zip(vectors).for_each(|(asked, vector)| asked.vector = Some(vector));
    }
    Ok(())
}
