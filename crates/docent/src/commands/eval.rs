//! `docent eval`: measure retrieval and answers on a question set.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use docent_core::agent::Agent;
use docent_core::retrieve::{self, Retriever};

use crate::cli::Eval;
use crate::compose;
use crate::eval::answers::{self, Asked};
use crate::eval::reading::{self, ReadingQuestion};
use crate::eval::report::{self, Report};
use crate::eval::{EvalBook, Judgements, QuestionSet, Ranking, last_question, metrics, open_index};
use crate::exit::{Exit, Failure};
use crate::output::{Output, write_file};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Eval, output: &Output) -> Result<(), Failure> {
    if reading::is_set(&arguments.folder) {
        check_options(&arguments)?;
        return read(settings, &arguments, output).await;
    }
    let set = QuestionSet::read(&arguments.folder)?;
    let start = Instant::now();
    let book = open_index(settings, &set.corpus, arguments.index.as_deref(), output).await?;
    let ingested = Instant::now();
    output.note(format!(
        "ingested {} documents ({} passages) in {:.1} s",
        book.description.pages,
        book.description.chunks,
        (ingested - start).as_secs_f64(),
    ));
    if !set.queries.is_empty() {
        retrieval(&set, &book, &arguments, output).await?;
    }
    let mut questions = answers::read_questions(&set)?.unwrap_or_default();
    if let Some(path) = &arguments.others {
        questions.extend(answers::read_others(path, &arguments.domains)?);
    }
    if !questions.is_empty() {
        answering(settings, &book, &questions, output).await?;
        if let Some(path) = &arguments.report {
            report(settings, &set, &book, &questions, path, output).await?;
        }
    }
    Ok(())
}

/// Rejects options that a reading set has no use for.
fn check_options(arguments: &Eval) -> Result<(), Failure> {
    let given = [
        ("--run", arguments.run.is_some()),
        ("--compare", arguments.compare.is_some()),
        ("--others", arguments.others.is_some()),
        ("--report", arguments.report.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let folder = arguments.folder.display();
            Err(Failure::usage(format!("{option} does not apply to {folder}, which has a questions.jsonl"))
                .hint("leave it out; it needs a folder with corpus.jsonl, queries.jsonl and qrels.tsv"))
        }
        None => Ok(()),
    }
}

/// Asks the questions of a reading set: each to the book it names, or all to the ingested book.
async fn read(settings: &Settings, arguments: &Eval, output: &Output) -> Result<(), Failure> {
    let mut questions: BTreeMap<String, Vec<ReadingQuestion>> = BTreeMap::new();
    for question in reading::read(&arguments.folder)? {
        if arguments.only.is_empty() || arguments.only.contains(&question.book) {
            questions.entry(question.book.clone()).or_default().push(question);
        }
    }
    if let Some(folder) = &arguments.answers {
        std::fs::create_dir_all(folder).map_err(anyhow::Error::from)?;
    }
    let top_k = settings.retrieval.top_k.min(10);
    let mut rows = Vec::new();
    for (name, questions) in questions {
        let asked = match &arguments.books {
            Some(books) => {
                let kept = arguments.index.as_ref().map(|kept| kept.join(&name));
                let book = open_index(settings, &books.join(&name), kept.as_deref(), output).await?;
                let agent = agent(settings, &book, book.retriever.clone())?;
                reading::ask(&agent, &questions, top_k, arguments.answers.as_deref()).await?
            }
            None => {
                let book = compose::book(settings).await?;
                let agent = compose::agent(&book, settings, None)?;
                reading::ask(&agent, &questions, top_k, arguments.answers.as_deref()).await?
            }
        };
        rows.extend(asked);
    }
    let scores = reading::scores(&rows);
    if output.json {
        return output.object(&serde_json::json!({ "scores": scores.into_iter().collect::<BTreeMap<_, _>>(), "questions": rows }));
    }
    output.line(reading::table(&scores))?;
    if let Some((_, all)) = scores.first() {
        output.note(format!("p50 {:.1} ms, p95 {:.1} ms per answer", all.p50_ms, all.p95_ms));
    }
    Ok(())
}

async fn retrieval(
    set: &QuestionSet,
    book: &EvalBook,
    arguments: &Eval,
    output: &Output,
) -> Result<(), Failure> {
    let judged = set.judgements()?;
    let start = Instant::now();
    let rankings = rank(book, &set.queries, &judged).await?;
    let searched = Instant::now();
    if let Some(path) = &arguments.run {
        let run: String = rankings.iter().map(Ranking::trec).collect();
        write_file(path, run)?;
    }
    if let Some(path) = &arguments.compare {
        compare(&rankings, path, output)?;
    }
    let score = metrics::score(&judged, &rankings);
    if output.json {
        return output.object(&score);
    }
    output.line(format!(
        "nDCG@10={:.4} Recall@5={:.4} Hit@1={:.4} MRR@10={:.4} queries={}",
        score.ndcg_at_10, score.recall_at_5, score.hit_at_1, score.mrr_at_10, score.queries
    ))?;
    let per_query = (searched - start).as_secs_f64() * 1000.0 / rankings.len().max(1) as f64;
    output.note(format!("{per_query:.1} ms per query"));
    if let Some(conversations) = set.conversations()? {
        let analyzer = book.retriever.analyzer();
        let queries: Vec<_> =
            conversations.into_iter().map(|(id, text)| (id, last_question(&text, analyzer))).collect();
        let score = metrics::score(&judged, &rank(book, &queries, &judged).await?);
        output
            .line(format!("follow-ups: nDCG@10={:.4} Recall@5={:.4}", score.ndcg_at_10, score.recall_at_5))?;
    }
    Ok(())
}

/// Counts the queries that have the same top 10 documents, in the same order, in another run.
fn compare(rankings: &[Ranking], other: &Path, output: &Output) -> Result<(), Failure> {
    let text = std::fs::read_to_string(other)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", other.display())))?;
    let mut theirs: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in text.lines() {
        if let [query, _, document, ..] = line.split_whitespace().collect::<Vec<_>>()[..] {
            theirs.entry(query).or_default().push(document);
        }
    }
    let same = |ranking: &&Ranking| {
        let ours = ranking.documents.iter().take(10).map(|(document, _)| document.as_str());
        theirs.get(ranking.query.as_str()).is_some_and(|theirs| ours.eq(theirs.iter().take(10).copied()))
    };
    let (same, all) = (rankings.iter().filter(same).count(), rankings.len());
    let share = 100.0 * same as f64 / all.max(1) as f64;
    output.note(format!("same top 10 as {}: {same} of {all} queries, {share:.1} %", other.display()));
    Ok(())
}

async fn rank(
    book: &EvalBook,
    queries: &[(String, String)],
    judged: &Judgements,
) -> Result<Vec<Ranking>, Failure> {
    let mut rankings = Vec::new();
    for (id, text) in queries.iter().filter(|(id, _)| judged.contains_key(id)) {
        rankings.push(Ranking { query: id.clone(), documents: book.documents(text).await? });
    }
    Ok(rankings)
}

/// An agent for the book, as configured.
fn agent(settings: &Settings, book: &EvalBook, retriever: Retriever) -> Result<Agent, Failure> {
    compose::eval_agent(settings, retriever, book.meaning.clone())
}

/// Writes the HTML report, including the effect of other thresholds.
async fn report(
    settings: &Settings,
    set: &QuestionSet,
    book: &EvalBook,
    questions: &[Asked],
    path: &Path,
    output: &Output,
) -> Result<(), Failure> {
    let threshold = settings.retrieval.min_relevance_score;
    let bold = book
        .retriever
        .with_settings(retrieve::Settings { min_relevance: 0.0, ..settings.retrieval.settings() });
    let top_k = settings.retrieval.top_k.min(10);
    let cases = answers::cases(&agent(settings, book, bold)?, questions, top_k, threshold).await?;
    let score = answers::score(&agent(settings, book, book.retriever.clone())?, questions, top_k).await?;
    let report = Report {
        set: set.name(),
        made: docent_backends::now_rfc3339(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        index_version: book.description.version.clone(),
        pages: book.description.pages,
        chunks: book.description.chunks,
        figures: score.figures(),
        cases,
        threshold,
    };
    write_file(path, report::html(&report))?;
    output.note(format!("wrote the report to {}", path.display()));
    Ok(())
}

async fn answering(
    settings: &Settings,
    book: &EvalBook,
    questions: &[Asked],
    output: &Output,
) -> Result<(), Failure> {
    let agent = agent(settings, book, book.retriever.clone())?;
    let score = answers::score(&agent, questions, settings.retrieval.top_k.min(10)).await?;
    if output.json {
        return output.object(&score);
    }
    output.line(format!(
        "answered={:.4} contains_gold={:.4} of {} answerable; abstained={:.4} of {} unanswerable; citation_coverage={:.4} verbatim={:.4} p50={:.1}ms p95={:.1}ms",
        score.answered,
        score.contains_gold,
        score.answerable,
        score.abstained,
        score.unanswerable,
        score.citation_coverage,
        score.verbatim_quotes,
        score.p50_ms,
        score.p95_ms
    ))
}
