//! Suggest questions for a new conversation or after an answer, generated from the headings of the book.
//!
//! Invariant: the book covers every suggested question. Each candidate is searched at most once per
//! generation, however many users ask for suggestions; those of the pages that were used least recently may be
//! searched again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures_util::lock::Mutex;

use super::{Confidence, RetrieveError, Retriever};
use crate::cache::Cache;
use crate::index::{Filter, PageOutline};
use crate::query::Question;

/// Number of candidates tried per suggestion.
const TRIED: usize = 4;

/// Maximum length of a heading that is suggested unchanged, in characters.
const LONGEST_HEADING: usize = 80;

/// Maximum number of questions about a page.
const MOST_ABOUT_PAGE: usize = 4;

/// Number of pages whose questions are kept.
const MOST_PAGES: usize = 512;

/// A hit on the page among the best `NEAR_TOP` means that the page answers the question.
const NEAR_TOP: usize = 3;

/// The suggestions of one generation, computed as needed for each part of the book.
#[derive(Debug)]
pub(super) struct Suggested {
    parts: std::sync::Mutex<HashMap<Filter, Arc<Mutex<Progress>>>>,
    /// By page: whether it answers the questions tried so far.
    near: Cache<String, Arc<Mutex<HashMap<String, bool>>>>,
}

impl Default for Suggested {
    fn default() -> Self {
        Self { parts: std::sync::Mutex::default(), near: Cache::new(MOST_PAGES) }
    }
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
                let covered = is_covered(&candidate, filter, None, book).await?;
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

    /// At most `limit` questions that `page` answers: from the headings after `heading`, then from those before it.
    pub(super) async fn near(
        &self,
        page: &PageOutline,
        heading: Option<&str>,
        limit: usize,
        book: &Retriever,
    ) -> Result<Vec<String>, RetrieveError> {
        // The page may be of a version that is not the default.
        let filter = Filter::of_edition(&page.edition);
        let tried = self.near.get_or_put(page.document_id.clone(), Arc::default);
        let mut tried = tried.lock().await;
        let mut found = Vec::new();
        for candidate in candidates_on(page, heading).into_iter().take(MOST_ABOUT_PAGE * TRIED) {
            if found.len() == limit.min(MOST_ABOUT_PAGE) {
                break;
            }
            let covered = match tried.get(&candidate) {
                Some(covered) => *covered,
                None => is_covered(&candidate, &filter, Some(&page.document_id), book).await?,
            };
            tried.insert(candidate.clone(), covered);
            if covered {
                found.push(candidate);
            }
        }
        Ok(found)
    }
}

/// Whether the book covers a question, on this page if one is given.
async fn is_covered(
    candidate: &str,
    filter: &Filter,
    page: Option<&str>,
    book: &Retriever,
) -> Result<bool, RetrieveError> {
    let Ok(question) = Question::new(candidate, NEAR_TOP, 0.0, filter.clone()) else { return Ok(false) };
    let found = book.search(&question).await?;
    let is_on = |page: &str| found.hits.iter().any(|hit| hit.chunk.document_id == page);
    Ok(found.confidence == Confidence::High && page.is_none_or(is_on))
}

/// Questions from the headings of a page, starting after `heading`.
fn candidates_on(page: &PageOutline, heading: Option<&str>) -> Vec<String> {
    let headings: Vec<&str> = page.sections.iter().filter_map(|one| one.heading.as_deref()).collect();
    let here = heading.and_then(|heading| headings.iter().position(|one| *one == heading));
    let (before, after) = headings.split_at(here.map_or(0, |here| here + 1));
    let mut questions = Vec::new();
    for heading in after.iter().chain(before).filter(|one| Some(**one) != heading && **one != page.title) {
        if heading.chars().count() <= LONGEST_HEADING
            && let Some(question) = about(heading)
            && !questions.contains(&question)
        {
            questions.push(question);
        }
    }
    questions
}

/// At most `most` candidates: headings that are questions, then one question per page, alternating between
/// modules.
fn candidates<'a>(outline: impl Iterator<Item = &'a PageOutline> + Clone, most: usize) -> Vec<String> {
    let headings =
        outline.clone().flat_map(|page| &page.sections).filter_map(|section| section.heading.as_ref());
    let asked = headings
        .filter(|heading| heading.ends_with('?') && heading.chars().count() <= LONGEST_HEADING)
        .filter_map(|heading| about(heading));
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
            let Some(page) = pages.get(place) else { continue };
            let is_asked = questions.iter().any(|question| names(question, &page.title));
            if let Some(question) = about(&page.title).filter(|_| !is_asked) {
                questions.push(question);
            }
        }
    }
    questions
}

/// Whether a question contains a title, in any case and as whole words.
fn names(question: &str, title: &str) -> bool {
    let (question, title) = (question.to_lowercase(), title.to_lowercase());
    let is_whole = |at: usize| {
        !question[..at].ends_with(char::is_alphanumeric)
            && !question[at + title.len()..].starts_with(char::is_alphanumeric)
    };
    question.match_indices(&title).any(|(at, _)| is_whole(at))
}

/// Headings that begin with these words name no subject.
const NO_SUBJECT: [&str; 24] = [
    "introduction",
    "overview",
    "index",
    "preface",
    "summary",
    "contents",
    "glossary",
    "conclusion",
    "exercises",
    "exercise",
    "quiz",
    "questions",
    "references",
    "resources",
    "further",
    "see",
    "next",
    "recap",
    "prerequisites",
    "changelog",
    "example",
    "examples",
    "notes",
    "appendix",
];

/// Questions begin with these words.
const ASKING: [&str; 27] = [
    "what", "which", "who", "whose", "why", "when", "where", "how", "can", "could", "do", "does", "did",
    "is", "are", "was", "were", "should", "will", "would", "must", "may", "has", "have", "what's", "how's",
    "who's",
];

/// A heading with one of these words needs the sections around it.
const POINTS_BACK: [&str; 9] = ["it", "its", "this", "that", "these", "those", "one", "them", "they"];

/// Headings that begin with these words tell what to do.
const IMPERATIVES: [&str; 47] = [
    "add",
    "attach",
    "avoid",
    "build",
    "change",
    "check",
    "choose",
    "compare",
    "configure",
    "connect",
    "convert",
    "create",
    "customize",
    "debug",
    "define",
    "delete",
    "deploy",
    "disable",
    "enable",
    "find",
    "generate",
    "handle",
    "import",
    "inspect",
    "install",
    "launch",
    "load",
    "make",
    "migrate",
    "open",
    "prepare",
    "publish",
    "read",
    "remove",
    "replace",
    "run",
    "select",
    "send",
    "set",
    "start",
    "stop",
    "understand",
    "update",
    "upgrade",
    "use",
    "verify",
    "write",
];

/// A question about a page or a section; none if its title does not name a subject.
fn about(title: &str) -> Option<String> {
    let title = title.trim().trim_end_matches(['.', ':', '!']);
    let words: Vec<&str> = title.split_whitespace().collect();
    let first = words.first()?.trim_end_matches(',').to_lowercase();
    match title {
        // Without the sections around it, nobody knows what "it" is.
        _ if words
            .iter()
            .any(|word| POINTS_BACK.contains(&word.trim_matches('?').to_lowercase().as_str())) =>
        {
            None
        }
        // "Something missing?" is addressed to the user.
        _ if title.ends_with('?') => {
            (words.len() > 1 && ASKING.contains(&first.as_str())).then(|| title.to_owned())
        }
        _ if NO_SUBJECT.contains(&first.as_str()) || words.len() > 8 => None,
        _ if IMPERATIVES.contains(&first.as_str()) && words.len() > 1 => {
            Some(format!("How do I {}?", lowered(title)))
        }
        _ if first.ends_with("ing") && words.len() > 1 && !title.ends_with('s') => {
            Some(format!("How does {} work?", lowered(title)))
        }
        _ if ["how", "why", "what", "when", "where"].contains(&first.as_str()) => Some(asked(title, &words)),
        _ if words.len() == 1 && is_plural(&first) => Some(format!("What are {}?", lowered(title))),
        _ if ["a", "an", "the"].contains(&first.as_str()) => {
            Some(format!("What does the book say about {first}{}?", &title[first.len()..]))
        }
        _ => Some(format!("What does the book say about {title}?")),
    }
}

/// The question for a heading that begins like one: "What a node is" becomes "What is a node?".
fn asked(title: &str, words: &[&str]) -> String {
    let (first, rest) = (words[0].to_lowercase(), words.get(1..).unwrap_or_default());
    let second = rest.first().map(|word| word.to_lowercase()).unwrap_or_default();
    let (last, middle) =
        rest.split_last().map_or(("", String::new()), |(last, middle)| (*last, middle.join(" ")));
    match (first.as_str(), last) {
        _ if rest.is_empty() || second == "to" || ASKING.contains(&second.as_str()) => format!("{title}?"),
        ("what", "is" | "are") if !middle.is_empty() => format!("What {last} {middle}?"),
        ("how", "works") if !middle.is_empty() => format!("How does {middle} work?"),
        ("how", "work") if !middle.is_empty() => format!("How do {middle} work?"),
        ("when", _) => format!("What happens {}?", lowered(title)),
        _ => format!("What does the book say about {}?", lowered(title)),
    }
}

/// A URL without what does not name the page: scheme, query, anchor and the usual endings.
pub(super) fn bare_url(url: &str) -> &str {
    let url = url.split(['#', '?']).next().unwrap_or_default();
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.strip_suffix("index.html").unwrap_or(url);
    url.strip_suffix(".html").unwrap_or(url).trim_end_matches('/')
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
            ("Problems?", None),
            ("Something missing?", None),
            ("Can I use MDX?", Some("Can I use MDX?")),
            ("How to walk", Some("How to walk?")),
            ("What a node is", Some("What is a node?")),
            ("How DDS works", Some("How does DDS work?")),
            ("When the sea comes back", Some("What happens when the sea comes back?")),
            ("What is new", Some("What is new?")),
            ("Isaac Sim", Some("What does the book say about Isaac Sim?")),
            ("docusaurus.config.js", Some("What does the book say about docusaurus.config.js?")),
            ("Docusaurus", Some("What does the book say about Docusaurus?")),
            ("Glass", Some("What does the book say about Glass?")),
            ("Introduction", None),
            ("Next steps", None),
            ("Which one should I use?", None),
            ("Install Docker", Some("How do I install Docker?")),
            ("Run, rename and remap", Some("How do I run, rename and remap?")),
            ("A minimal node in Python", Some("What does the book say about a minimal node in Python?")),
            ("Set", Some("What does the book say about Set?")),
        ] {
            assert_eq!(about(title).as_deref(), question);
        }
    }

    #[test]
    fn a_page_is_not_suggested_twice() {
        let page = |title: &str, heading: &str| {
            let mut chunk = chunk(title, 0, "Words.");
            (chunk.page_title, chunk.heading) = (title.to_owned(), Some(heading.to_owned()));
            chunk
        };
        let chunks =
            [page("Pumps", "What goes into the pumps?"), page("Pump", "Parts"), page("Mills", "Stones")];
        let outline = PageOutline::of(&chunks);
        assert_eq!(
            candidates(outline.iter(), 9),
            ["What goes into the pumps?", "What does the book say about Pump?", "What are mills?"]
        );
    }

    #[test]
    fn spellings_of_a_url_name_the_same_page() {
        for url in [
            "http://x.org/a/b",
            "https://x.org/a/b/?q=1#c",
            "https://x.org/a/b.html",
            "https://x.org/a/b/index.html",
        ] {
            assert_eq!(bare_url(url), "x.org/a/b");
        }
        assert_ne!(bare_url("https://x.org/a/b"), bare_url("https://x.org/a/c"));
    }

    #[test]
    fn questions_about_a_page_begin_after_the_heading() {
        let mut chunks: Vec<Chunk> = ["Nodes", "Create a node", "Why graphs?", "Summary", "Executors"]
            .iter()
            .enumerate()
            .map(|(at, heading)| Chunk {
                heading: Some((*heading).to_owned()),
                ..chunk("nodes", at as u32, "Words.")
            })
            .collect();
        chunks.iter_mut().for_each(|chunk| chunk.page_title = "Nodes".to_owned());
        let page = &PageOutline::of(&chunks)[0];
        assert_eq!(
            candidates_on(page, Some("Why graphs?")),
            ["What are executors?", "How do I create a node?"]
        );
        assert_eq!(candidates_on(page, None).len(), 3);
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
