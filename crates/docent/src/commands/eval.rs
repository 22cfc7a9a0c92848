//! `docent eval`: measure retrieval on a question set.

use crate::cli::Eval;
use crate::compose::clock;
use crate::eval::{QuestionSet, Ranking, metrics, open_index};
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Eval, output: &Output) -> Result<(), Failure> {
    let set = QuestionSet::read(&arguments.folder)?;
    let judged = set.judgements()?;
    let start = clock();
    let book = open_index(settings, &set, arguments.index.as_deref(), output).await?;
    let ingested = clock();
    let mut rankings = Vec::new();
    for (id, text) in &set.queries {
        if judged.contains_key(id) {
            rankings.push(Ranking { query: id.clone(), documents: book.documents(text).await? });
        }
    }
    let searched = clock();
    if let Some(path) = &arguments.run {
        let run: String = rankings.iter().map(Ranking::trec).collect();
        std::fs::write(path, run).map_err(|error| {
            Failure::from(anyhow::Error::from(error).context(format!("cannot write {}", path.display())))
        })?;
    }
    let score = metrics::score(&judged, &rankings);
    if output.json {
        return output.object(&score);
    }
    output.line(format!(
        "nDCG@10={:.4} Recall@5={:.4} Hit@1={:.4} MRR@10={:.4} queries={}",
        score.ndcg_at_10, score.recall_at_5, score.hit_at_1, score.mrr_at_10, score.queries
    ))?;
    let per_query = (searched - ingested).as_secs_f64() * 1000.0 / rankings.len().max(1) as f64;
    output.note(format!(
        "{} documents in {} passages, read in {:.1} s; {per_query:.1} ms a query",
        book.description.pages,
        book.description.chunks,
        (ingested - start).as_secs_f64(),
    ));
    Ok(())
}
