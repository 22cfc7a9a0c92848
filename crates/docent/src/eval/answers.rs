//! Scores answers: correct, cited, and declined if the book does not cover the question.
//!
//! Reads `qa.jsonl` (`question`, `answers` or `answer`, `answerable`) beside a corpus.

use std::path::Path;

use docent_core::agent::{Agent, Ask};
use docent_core::answer::AgentResponse;
use docent_core::query::LONGEST_QUESTION;
use serde::{Deserialize, Serialize};

use super::QuestionSet;
use super::curve::Case;
use crate::compose;
use crate::exit::{Exit, Failure};

/// A question with its expected answers.
#[derive(Debug, Clone, Deserialize)]
pub struct Asked {
    /// The question.
    pub question: String,
    #[serde(default)]
    answers: Vec<String>,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default = "yes")]
    answerable: bool,
    /// The domain it is about, in a set with several domains.
    #[serde(default)]
    pub domain: String,
}

fn yes() -> bool {
    true
}

/// The scores of all answers of a set.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct AnswerScore {
    /// The number of questions that the book covers.
    pub answerable: usize,
    /// Of those, the share that were answered.
    pub answered: f64,
    /// Of those, the share whose answer contains an expected one.
    pub contains_gold: f64,
    /// The number of questions that the book does not cover.
    pub unanswerable: usize,
    /// Of those, the share that were declined.
    pub abstained: f64,
    /// The share of sentences that are supported and cited.
    pub citation_coverage: f64,
    /// The share of quotes that appear word for word in their passage.
    pub verbatim_quotes: f64,
    /// The median response time, in milliseconds.
    pub p50_ms: f64,
    /// The 95th percentile of the response time, in milliseconds.
    pub p95_ms: f64,
}

impl AnswerScore {
    /// Names and values, for a table.
    pub fn figures(&self) -> Vec<(String, String)> {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        [
            ("questions that the book covers", self.answerable.to_string()),
            ("of those, answered", percent(self.answered)),
            ("of those, answered correctly", percent(self.contains_gold)),
            ("questions that it does not cover", self.unanswerable.to_string()),
            ("of those, declined", percent(self.abstained)),
            ("sentences that are supported and cited", percent(self.citation_coverage)),
            ("quotes that are verbatim", percent(self.verbatim_quotes)),
            ("response time, p50", format!("{:.1} ms", self.p50_ms)),
            ("response time, p95", format!("{:.1} ms", self.p95_ms)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// The questions of `qa.jsonl`, if the set has any.
pub fn read_questions(set: &QuestionSet) -> Result<Option<Vec<Asked>>, Failure> {
    let path = set.folder.join("qa.jsonl");
    if path.is_file() { read_lines(&path).map(Some) } else { Ok(None) }
}

/// Out-of-scope questions, optionally restricted to some domains.
pub fn read_others(path: &Path, domains: &[String]) -> Result<Vec<Asked>, Failure> {
    let mut others = read_lines(path)?;
    others.retain(|other| domains.is_empty() || domains.contains(&other.domain));
    others.iter_mut().for_each(|other| other.answerable = false);
    Ok(others)
}

fn read_lines(path: &Path) -> Result<Vec<Asked>, Failure> {
    let parse = |(line, number): (&str, usize)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::new(Exit::Failed, format!("{}, line {number}: {error}", path.display()))
        })
    };
    super::read_text(path)?.lines().zip(1..).map(parse).collect()
}

impl Asked {
    /// Whether the book has an answer.
    pub fn is_answerable(&self) -> bool {
        self.answerable
    }

    fn ask(&self, top_k: usize) -> Ask {
        let query: String = self.question.trim().chars().take(LONGEST_QUESTION).collect();
        Ask::new(query).with_top_k(top_k).with_sources(true)
    }

    fn golds(&self) -> impl Iterator<Item = &String> {
        self.answers.iter().chain(&self.answer)
    }

    /// The question with the response of an agent that always answers. `threshold` decides
    /// whether it counts as answered.
    fn case(&self, response: AgentResponse, threshold: f32) -> Case {
        let judged = self.answerable && self.golds().next().is_some();
        let supports = response.sentences.iter().map(|sentence| sentence.support);
        let passages = response.sources.iter().flatten();
        Case {
            question: self.question.clone(),
            answerable: self.answerable,
            grounded: response.grounded && response.relevance >= threshold,
            correct: judged.then(|| contains_gold(&response, self)),
            relevance: response.relevance,
            support: supports.fold(1.0, f32::min),
            gold: self.golds().cloned().collect(),
            passages: passages
                .map(|source| (source.breadcrumb.clone(), source.similarity_score, source.content.clone()))
                .collect(),
            milliseconds: response.metadata.response_time_ms,
            answer: response.answer,
        }
    }
}

/// Asks every question, with an agent that always answers, for a report.
pub async fn cases(
    agent: &Agent,
    questions: &[Asked],
    top_k: usize,
    threshold: f32,
) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::with_capacity(questions.len());
    for asked in questions {
        let response = agent.ask(&asked.ask(top_k), &|_| {}).await.map_err(compose::ask_failure)?;
        cases.push(asked.case(response, threshold));
    }
    Ok(cases)
}

/// Asks every question and scores the answers.
pub async fn score(agent: &Agent, questions: &[Asked], top_k: usize) -> Result<AnswerScore, Failure> {
    let mut score = AnswerScore::default();
    let (mut sentences, mut cited, mut quotes, mut verbatim) = (0usize, 0usize, 0usize, 0usize);
    let mut times = Vec::with_capacity(questions.len());
    for asked in questions {
        let response = agent.ask(&asked.ask(top_k), &|_| {}).await.map_err(compose::ask_failure)?;
        times.push(response.metadata.response_time_ms);
        sentences += response.sentences.len();
        cited += response
            .sentences
            .iter()
            .filter(|sentence| sentence.supported && !sentence.citations.is_empty())
            .count();
        quotes += response.citations.len();
        verbatim += verbatim_quotes(&response);
        if asked.answerable {
            score.answerable += 1;
            score.answered += f64::from(response.grounded);
            score.contains_gold += f64::from(contains_gold(&response, asked));
        } else {
            score.unanswerable += 1;
            score.abstained += f64::from(!response.grounded);
        }
    }
    let share = |part: f64, whole: usize| if whole == 0 { 0.0 } else { part / whole as f64 };
    times.sort_by(f64::total_cmp);
    let time = |quantile: f64| {
        times.get(((times.len() as f64 - 1.0) * quantile) as usize).copied().unwrap_or_default()
    };
    Ok(AnswerScore {
        answered: share(score.answered, score.answerable),
        contains_gold: share(score.contains_gold, score.answerable),
        abstained: share(score.abstained, score.unanswerable),
        citation_coverage: share(cited as f64, sentences),
        verbatim_quotes: share(verbatim as f64, quotes),
        p50_ms: time(0.5),
        p95_ms: time(0.95),
        ..score
    })
}

fn contains_gold(response: &AgentResponse, asked: &Asked) -> bool {
    let text: Vec<&str> = response.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    let text = plain(&text.join(" "));
    asked.golds().map(|gold| plain(gold)).any(|gold| !gold.is_empty() && text.contains(&gold))
}

/// Normalizes a text as SQuAD does: lower case, only letters and digits, no articles.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !matches!(*word, "" | "a" | "an" | "the"));
    words.collect::<Vec<_>>().join(" ")
}

fn verbatim_quotes(response: &AgentResponse) -> usize {
    let sources = response.sources.as_deref().unwrap_or_default();
    let holds = |citation: &&docent_core::answer::Citation| {
        let source = sources.iter().find(|source| source.chunk_id == citation.chunk_id);
        source.and_then(|source| source.content.get(citation.start..citation.end)) == Some(&citation.quote)
    };
    response.citations.iter().filter(holds).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_without_case_articles_and_punctuation() {
        assert_eq!(plain("The 10th-century, a \"Duke\"!"), "10th century duke");
    }
}
