//! Suggest questions to start with, generated from the headings of the book.
//!
//! Invariant: the book covers every suggested question. Each candidate is searched at most once per
//! generation, however many users ask for suggestions.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures_util::lock::Mutex;

use super::{Confidence, RetrieveError, Retriever};
use crate::index::{Filter, PageOutline};
use crate::query::Question;

/// Number of candidates tried per suggestion.
const TRIED: usize = 4;

/// Maximum length of a heading that is suggested unchanged, in characters.
const LONGEST_HEADING: usize = 80;

/// The suggestions of one generation, computed as needed for each part of the book.
#[derive(Debug, Default)]
pub(super) struct Suggested {
    parts: std::sync::Mutex<HashMap<Filter, Arc<Mutex<Progress>>>>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Number of candidates tried so far.
    tried: usize,
    /// Candidates that the book covers.
    found: Vec<String>,
}

impl Suggested {
    /// At most `limit` questions. A request for more than are known continues where the last one stopped;
    /// concurrent requests wait for the result instead of repeating the searches.
    pub(super) async fn up_to(
        &self,
        limit: usize,
        filter: &Filter,
        book: &Retriever,
    ) -> Result<Vec<String>, RetrieveError> {
        let progress = {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.entry(filter.clone()).or_default().clone()
        };
        let mut progress = progress.lock().await;
        let most = limit.saturating_mul(TRIED);
        if progress.found.len() < limit && progress.tried < most {
            let outline = book.outline().await?;
            let pages = outline.iter().filter(|page| filter.admits_page(page));
            for candidate in candidates(pages, most).into_iter().skip(progress.tried) {
                if progress.found.len() == limit {
                    break;
                }
                let covered = match Question::new(&candidate, 1, 0.0, filter.clone()) {
                    Ok(question) => book.search(&question).await?.confidence == Confidence::High,
                    Err(_) => false,
                };
                progress.tried += 1;
                if covered {
                    progress.found.push(candidate);
                }
            }
            if progress.found.len() < limit {
                // All candidates have been tried.
                progress.tried = progress.tried.max(most);
            }
        }
        Ok(progress.found.iter().take(limit).cloned().collect())
    }
}

/// At most `most` candidates: headings that are questions, then one question per page, alternating between
/// modules.
fn candidates<'a>(outline: impl Iterator<Item = &'a PageOutline> + Clone, most: usize) -> Vec<String> {
    let headings =
        outline.clone().flat_map(|page| &page.sections).filter_map(|section| section.heading.as_ref());
    let asked = headings
        .filter(|heading| heading.ends_with('?') && heading.chars().count() <= LONGEST_HEADING)
        .cloned();
    let mut questions: Vec<String> = asked.take(2).collect();
    let mut modules: Vec<(&str, Vec<&PageOutline>)> = Vec::new();
    for page in outline {
        match modules.iter_mut().find(|(name, _)| *name == page.module_name) {
            Some((_, pages)) => pages.push(page),
            None => modules.push((&page.module_name, vec![page])),
        }
    }
    let deepest = modules.iter().map(|(_, pages)| pages.len()).max().unwrap_or(0);
    for place in 0..deepest {
        for (_, pages) in &modules {
            if questions.len() >= most {
                questions.truncate(most);
                return questions;
            }
            if let Some(question) = pages.get(place).and_then(|page| about(&page.title))
                && !questions.contains(&question)
            {
                questions.push(question);
            }
        }
    }
    questions
}

/// A question about a page; none if its title does not name a subject.
fn about(title: &str) -> Option<String> {
    let title = title.trim().trim_end_matches(['.', ':', '!']);
    let words: Vec<&str> = title.split_whitespace().collect();
    let first = words.first()?.to_lowercase();
    let no_subject = ["introduction", "overview", "index", "preface", "summary", "contents", "glossary"];
    match title {
        _ if title.ends_with('?') => Some(title.to_owned()),
        _ if no_subject.contains(&first.as_str()) || words.len() > 8 => None,
        _ if first.ends_with("ing") && words.len() > 1 && !title.ends_with('s') => {
            Some(format!("How does {} work?", lowered(title)))
        }
        _ if ["how", "why", "what", "when", "where"].contains(&first.as_str()) => Some(format!("{title}?")),
        _ if words.len() == 1 && is_plural(&first) => Some(format!("What are {}?", lowered(title))),
        _ => Some(format!("What does the book say about {title}?")),
    }
}

/// Whether a word is the plural of a common noun. File names and names such as "Docusaurus" are not.
fn is_plural(word: &str) -> bool {
    let is_plain = word.chars().all(char::is_alphabetic);
    is_plain && word.ends_with('s') && !["ss", "us", "is", "as"].iter().any(|end| word.ends_with(end))
}

/// Lower-cases the first letter, unless the title begins with an abbreviation.
fn lowered(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chunk::Chunk;
    use crate::language::Language;
    use crate::testing::{Counting, LetterEmbedder, MemoryIndex, StoppedClock, chunk};

    #[test]
    fn a_title_becomes_a_question() {
        for (title, question) in [
            ("Nodes", Some("What are nodes?")),
            ("Installing ROS 2", Some("How does installing ROS 2 work?")),
            ("Why simulate?", Some("Why simulate?")),
            ("How to walk", Some("How to walk?")),
            ("Isaac Sim", Some("What does the book say about Isaac Sim?")),
            ("docusaurus.config.js", Some("What does the book say about docusaurus.config.js?")),
            ("Docusaurus", Some("What does the book say about Docusaurus?")),
            ("Glass", Some("What does the book say about Glass?")),
            ("Introduction", None),
        ] {
            assert_eq!(about(title).as_deref(), question);
        }
    }

    #[tokio::test]
    async fn each_candidate_is_searched_once() {
        let chunks = [
            chunk("nodes", 0, "Nodes are participants in the graph."),
            chunk("topics", 0, "Topics carry messages between nodes."),
            chunk("pasta", 0, "Pasta is boiled in salted water."),
        ];
        let vector = |chunk: &Chunk| LetterEmbedder::vector(&chunk.embedded_text());
        let counted = Arc::new(Counting::new(MemoryIndex::new(
            chunks.iter().map(|chunk| (chunk.clone(), vector(chunk))).collect(),
        )));
        let book = Retriever::new(
            counted.clone(),
            None,
            Language::default(),
            Default::default(),
            Arc::new(StoppedClock),
        );
        let all = book.suggestions(20, &Filter::default()).await.unwrap();
        assert!(all.len() <= 3, "{all:?}");
        let searches = counted.searches();
        assert!(searches <= 3, "{searches}");
        let everything = Filter::default();
        let (some, again) =
            futures_util::future::join(book.suggestions(1, &everything), book.suggestions(20, &everything))
                .await;
        assert_eq!((some.unwrap(), again.unwrap()), (all.iter().take(1).cloned().collect(), all));
        assert_eq!((counted.searches(), counted.outlines()), (searches, 1));
    }
}
