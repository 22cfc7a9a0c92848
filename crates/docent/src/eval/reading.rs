//! Reading sets: questions as users ask them, with the words of the book that answer them.
//!
//! A set is a folder with `questions.jsonl` and optionally `followups.jsonl`. A question lists the phrases
//! ("needles") that an answer must quote: all of them, or any one. A set also contains questions that the book
//! does not answer, which should be declined.
//!
//! Invariant: only the answer and its sources are scored, never how they were found.

use std::collections::BTreeMap;
use std::path::Path;

use docent_core::agent::{Agent, Ask};
use docent_core::answer::AgentResponse;
use docent_core::query::LONGEST_QUESTION;
use docent_core::retrieve::Retrieved;
use docent_core::session::Turn;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::write_file;

/// A question, or the second question of a conversation.
#[derive(Debug, Clone, Deserialize)]
pub struct ReadingQuestion {
    /// Its id.
    pub id: String,
    /// The book it is about: the name of a folder with books, or empty for the ingested book.
    #[serde(default)]
    pub book: String,
    /// The kind of question, for the table.
    #[serde(default)]
    kind: String,
    /// The question before it, in a conversation.
    #[serde(default, rename = "turn1")]
    before: Option<String>,
    #[serde(alias = "turn2")]
    question: String,
    #[serde(default = "yes")]
    answerable: bool,
    #[serde(default)]
    needles: Vec<String>,
    /// Whether an answer must contain every needle.
    #[serde(default)]
    all: bool,
}

fn yes() -> bool {
    true
}

/// Whether a folder is a reading set.
pub fn is_set(folder: &Path) -> bool {
    folder.join("questions.jsonl").is_file()
}

/// The questions of a folder, follow-ups last.
pub fn read(folder: &Path) -> Result<Vec<ReadingQuestion>, Failure> {
    let mut questions = read_lines(&folder.join("questions.jsonl"))?;
    let path = folder.join("followups.jsonl");
    if path.is_file() {
        for mut question in read_lines(&path)? {
            question.kind = "follow-up".to_owned();
            questions.push(question);
        }
    }
    Ok(questions)
}

fn read_lines(path: &Path) -> Result<Vec<ReadingQuestion>, Failure> {
    let text = super::read_text(path)?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            serde_json::from_str(line).map_err(|error| {
                Failure::new(Exit::Failed, format!("{}, line {number}: {error}", path.display()))
            })
        })
        .collect()
}

/// The score of one answer.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The question's id.
    pub id: String,
    book: String,
    kind: String,
    answerable: bool,
    answered: bool,
    /// The answer contains the needles.
    hit: bool,
    /// The first piece of the answer contains one.
    first: bool,
    /// A needle is in the first source.
    found_at_1: bool,
    /// A needle is in the first five sources.
    found_at_5: bool,
    words: usize,
    pieces: usize,
    milliseconds: f64,
}

/// Asks every question about one book. Writes each answer to a file in `answers`, if given.
pub async fn ask(
    agent: &Agent,
    questions: &[ReadingQuestion],
    top_k: usize,
    answers: Option<&Path>,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::with_capacity(questions.len());
    for question in questions {
        let mut earlier = Vec::new();
        if let Some(before) = &question.before {
            let response = put(agent, before, top_k, Vec::new()).await?;
            earlier.push(Turn::new(before, response));
        }
        let response = put(agent, &question.question, top_k, earlier).await?;
        if let Some(folder) = answers {
            let text = serde_json::to_string(&response).map_err(anyhow::Error::from)?;
            write_file(&folder.join(format!("{}.json", question.id)), text)?;
        }
        rows.push(question.row(&response));
    }
    Ok(rows)
}

async fn put(agent: &Agent, text: &str, top_k: usize, earlier: Vec<Turn>) -> Result<AgentResponse, Failure> {
    let query: String = text.trim().chars().take(LONGEST_QUESTION).collect();
    let ask = Ask::new(query).with_top_k(top_k).with_earlier(earlier).with_sources(true);
    agent.ask(&ask, &|_| {}).await.map_err(compose::ask_failure)
}

impl ReadingQuestion {
    /// The text of the question.
    pub fn text(&self) -> &str {
        &self.question
    }

    /// Whether the book has an answer.
    pub fn is_answerable(&self) -> bool {
        self.answerable
    }

    /// Whether it is not part of a conversation.
    pub fn stands_alone(&self) -> bool {
        self.before.is_none()
    }

    /// The question with what a search found for it.
    pub fn recorded(&self, found: &Retrieved) -> serde_json::Value {
        let passages: Vec<_> = found
            .hits
            .iter()
            .map(|hit| {
                let chunk = &hit.chunk;
                json!({"page": chunk.document_id, "section": chunk.section, "heading": chunk.breadcrumb(),
                       "content": chunk.content, "score": hit.score, "answers": hit.rerank_score})
            })
            .collect();
        let statements: Vec<_> = found
            .read
            .iter()
            .map(|read| {
                json!({"passage": read.passage, "start": read.span.start, "end": read.span.end, "part": read.part,
                       "kind": format!("{:?}", read.kind), "chance": read.chance})
            })
            .collect();
        let unmentioned: Vec<&str> = found.unmentioned.iter().map(|found| found.word.as_str()).collect();
        json!({"id": self.id, "book": self.book, "kind": self.kind, "question": self.question,
               "answerable": self.answerable, "needles": self.needles, "all": self.all, "relevance": found.relevance,
               "by_signals": found.by_signals, "answers": found.answers, "signals": found.signals,
               "unmentioned": unmentioned, "terms": found.terms, "parts": found.parts, "passages": passages,
               "statements": statements})
    }

    /// Whether a text contains a needle.
    pub fn is_answered_by(&self, text: &str) -> bool {
        self.is_in(text, false)
    }

    fn row(&self, response: &AgentResponse) -> Row {
        let pieces: Vec<&str> = match response.grounded {
            true => response.sentences.iter().map(|sentence| sentence.text.as_str()).collect(),
            false => Vec::new(),
        };
        let said = pieces.join("\n");
        let sources = response.sources.as_deref().unwrap_or_default();
        let found = |most: usize| sources.iter().take(most).any(|source| self.is_in(&source.content, false));
        Row {
            id: self.id.clone(),
            book: self.book.clone(),
            kind: self.kind.clone(),
            answerable: self.answerable,
            answered: response.grounded,
            hit: self.is_in(&said, self.all),
            first: pieces.first().is_some_and(|piece| self.is_in(piece, false)),
            found_at_1: found(1),
            found_at_5: found(5),
            words: said.split_whitespace().count(),
            pieces: pieces.len(),
            milliseconds: response.metadata.response_time_ms,
        }
    }

    /// Whether a text contains the needles: all of them, or any one.
    fn is_in(&self, text: &str, all: bool) -> bool {
        let text = plain(text);
        let mut needles = self.needles.iter().map(|needle| text.contains(&plain(needle)));
        if self.needles.is_empty() {
            false
        } else if all {
            needles.all(|found| found)
        } else {
            needles.any(|found| found)
        }
    }
}

/// Normalizes a text: lower case, plain quotes and dashes, no code or emphasis marks, single spaces.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match c {
            '`' | '*' => continue,
            // An underscore inside a word is part of a name; at its ends it is emphasis.
            '_' if !is_word(before) && !next.is_whitespace() || !is_word(next) && !before.is_whitespace() => {
                continue;
            }
            '\u{2018}' | '\u{2019}' => plain.push('\''),
            '\u{201c}' | '\u{201d}' => plain.push('"'),
            '\u{2013}' | '\u{2014}' | '\u{2011}' => plain.push('-'),
            '\u{2026}' => plain.push_str("..."),
            '\u{b6}' => plain.push(' '),
            c if c.is_whitespace() => plain.push(' '),
            c => plain.extend(c.to_lowercase()),
        }
        before = c;
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The scores of a group of questions.
#[derive(Debug, PartialEq, Serialize)]
pub struct ReadingScore {
    /// The number of questions.
    pub questions: usize,
    /// Of the answerable questions, the share whose answer contains the needles.
    pub hit: f64,
    /// The share whose first piece contains one.
    pub first: f64,
    /// The share with a needle in the first source.
    pub found_at_1: f64,
    /// The share with a needle in the first five sources.
    pub found_at_5: f64,
    /// Median length of answers, in words.
    pub words: usize,
    /// Median number of pieces.
    pub pieces: usize,
    /// Unanswerable questions that were declined.
    pub silent: usize,
    /// All unanswerable questions.
    pub unanswerable: usize,
    /// Answerable questions that were declined.
    pub wrongly_silent: usize,
    /// The p50 of the response time, in milliseconds.
    pub p50_ms: f64,
    /// The p95 of the response time, in milliseconds.
    pub p95_ms: f64,
}

impl ReadingScore {
    fn of(rows: &[&Row]) -> Self {
        let asked: Vec<&&Row> = rows.iter().filter(|row| row.answerable).collect();
        let others: Vec<&&Row> = rows.iter().filter(|row| !row.answerable).collect();
        let share = |holds: fn(&Row) -> bool| {
            asked.iter().filter(|row| holds(row)).count() as f64 / asked.len().max(1) as f64
        };
        let median = |value: fn(&Row) -> usize| {
            let mut values: Vec<usize> =
                asked.iter().filter(|row| row.answered).map(|row| value(row)).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let mut times: Vec<f64> = rows.iter().map(|row| row.milliseconds).collect();
        times.sort_by(f64::total_cmp);
        let time = |quantile: f64| {
            times.get(((times.len() as f64 - 1.0) * quantile) as usize).copied().unwrap_or_default()
        };
        Self {
            questions: rows.len(),
            hit: share(|row| row.hit),
            first: share(|row| row.first),
            found_at_1: share(|row| row.found_at_1),
            found_at_5: share(|row| row.found_at_5),
            words: median(|row| row.words),
            pieces: median(|row| row.pieces),
            silent: others.iter().filter(|row| !row.answered).count(),
            unanswerable: others.len(),
            wrongly_silent: asked.iter().filter(|row| !row.answered).count(),
            p50_ms: time(0.5),
            p95_ms: time(0.95),
        }
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name:<28}{:>4}{:>6.0}%{:>6.0}%{:>8.0}%{:>8.0}%{:>7}{:>12}{:>9}",
            self.questions,
            100.0 * self.hit,
            100.0 * self.first,
            100.0 * self.found_at_1,
            100.0 * self.found_at_5,
            self.words,
            format!("{} of {}", self.silent, self.unanswerable),
            self.wrongly_silent,
        )
    }
}

/// The scores of all questions, then of each book and each kind, sorted by name.
pub fn scores(rows: &[Row]) -> Vec<(String, ReadingScore)> {
    let mut groups: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        for (group, name) in [("book", &row.book), ("kind", &row.kind)] {
            if !name.is_empty() {
                groups.entry(format!("{group} {name}")).or_default().push(row);
            }
        }
    }
    let all = ("all".to_owned(), ReadingScore::of(&rows.iter().collect::<Vec<_>>()));
    std::iter::once(all)
        .chain(groups.into_iter().map(|(name, rows)| (name, ReadingScore::of(&rows))))
        .collect()
}

/// The table for a terminal.
pub fn table(scores: &[(String, ReadingScore)]) -> String {
    let header = format!(
        "{:<28}{:>4}{:>7}{:>7}{:>9}{:>9}{:>7}{:>12}{:>9}",
        "", "n", "hit", "first", "found@1", "found@5", "words", "declined", "wrongly"
    );
    let lines = scores.iter().map(|(name, score)| score.line(name));
    std::iter::once(header).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needles_are_compared_without_markup_case_and_typography() {
        let compared = plain("Use **`cargo test`** — it’s\n_fast_, not my_test … ");
        assert_eq!(compared, "use cargo test - it's fast, not my_test ...");
    }

    #[test]
    fn a_needle_may_span_lines_and_all_needles_may_be_required() {
        let question = |all| ReadingQuestion {
            id: "q".to_owned(),
            book: String::new(),
            kind: String::new(),
            before: None,
            question: String::new(),
            answerable: true,
            needles: vec!["one two".to_owned(), "three".to_owned()],
            all,
        };
        assert!(question(false).is_in("One\ntwo", false));
        assert!(!question(true).is_in("One\ntwo", true));
        assert!(question(true).is_in("One\ntwo three", true));
    }
}
