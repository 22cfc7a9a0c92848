//! Search as you type: pages and sections for words that may be unfinished or misspelled.
//!
//! A typed word stands for terms of the book: itself, the terms it begins, or, if there are none, the terms
//! with the fewest different letters (`vocabulary.rs`). Sections are ranked by where these terms occur:
//! heading, title, text.
//!
//! Invariant: results need no embedder and no reader, and each contains at least one term that a typed word
//! stands for.

mod vocabulary;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use crate::cache::Cache;
use crate::chunk::Chunk;
use crate::index::{Filter, Index, IndexError, IndexQuery, PageOutline, RowId};
use crate::sentence::sentences;
use crate::terms::Analyzer;
use vocabulary::Vocabulary;

/// What a user has typed so far, at most this many words of it.
const MOST_WORDS: usize = 12;

/// Number of passages of the keyword search that are considered.
const PASSAGES: usize = 32;

/// Number of passages whose terms are kept: the next keystroke mostly finds the same ones.
const PASSAGES_KEPT: usize = 2048;

/// Number of terms of a typed word that are searched for in the text.
const TERMS_OF_WORD: usize = 4;

/// Maximum number of sections of a page in a result.
const SECTIONS_OF_PAGE: usize = 3;

/// Maximum length of the text shown for a section, in characters.
const LONGEST_TEXT: usize = 140;

/// How much a match counts in a heading, in a title and in the text.
const IN_HEADING: f32 = 3.0;
const IN_TITLE: f32 = 3.0;
const IN_TEXT: f32 = 1.0;

/// A page that matches.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageMatch {
    /// Title of the page.
    pub title: Vec<Piece>,
    /// URL of the published page.
    pub url: String,
    /// Id of the page.
    pub document_id: String,
    /// Name of the book; omitted if the index has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// Name of the module; omitted if the index has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module_name: String,
    /// Name of the version; null if the book has no versions.
    pub version: Option<String>,
    /// Code of the locale; null if the book has only one.
    pub locale: Option<String>,
    /// The best sections of the page; empty if only its title matches.
    pub sections: Vec<SectionMatch>,
}

/// A section that matches.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SectionMatch {
    /// Heading of the section; empty above the first heading.
    pub heading: Vec<Piece>,
    /// URL of the page with the anchor of the section.
    pub url: String,
    /// The sentence of the section with the most matches; empty if only the heading matches.
    pub text: Vec<Piece>,
}

/// A piece of text, and whether it matches a typed word.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it matches a typed word.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub matched: bool,
}

/// Finds pages and sections while a user is typing. Made once per generation.
#[derive(Debug)]
pub struct Typeahead {
    outline: Arc<Vec<PageOutline>>,
    vocabulary: Vocabulary,
    /// For each term of the vocabulary: the pages whose title contains it.
    titles: HashMap<u32, Vec<u32>>,
    /// For each term: the sections whose heading contains it.
    headings: HashMap<u32, Vec<Place>>,
    /// The number of terms in the heading of a section.
    lengths: HashMap<Place, u32>,
    /// The page and section at a URL.
    places: HashMap<String, Place>,
    /// Whether there is more than one module.
    has_modules: bool,
    /// The passages that were found last.
    loaded: Cache<RowId, Arc<Loaded>>,
}

/// A passage with the terms of its text.
#[derive(Debug)]
struct Loaded {
    passage: Arc<Chunk>,
    terms: HashSet<u32>,
}

/// A section: the numbers of its page and of the section on the page.
type Place = (u32, u32);

/// A typed word: the terms it stands for, with the quality of the match (0–1).
type Meanings = HashMap<u32, f32>;

/// A section that was found: its score, its number on the page, and what was found.
type Scored = (f32, u32, Found);

/// A section that may be shown.
#[derive(Debug, Default)]
struct Found {
    /// For each typed word: how well the section matches it.
    words: Vec<f32>,
    /// Share of its heading's terms that match.
    share: f32,
    /// The best passage of the section.
    passage: Option<Arc<Chunk>>,
    /// Rank of the passage in the keyword search; the number of passages if it is not among them.
    rank: usize,
}

impl Typeahead {
    /// Prepares a generation: `outline` is its outline, and `words` the terms of its text with the number of
    /// passages that contain them.
    pub fn new(outline: Arc<Vec<PageOutline>>, words: Vec<(String, u32)>, analyzer: &Analyzer) -> Self {
        let mut counts: BTreeMap<String, u32> = words.into_iter().collect();
        let mut named: Vec<(Option<Place>, u32, Vec<String>)> = Vec::new();
        let (mut places, mut spellings) = (HashMap::new(), BTreeMap::new());
        let mut distinct = |text: &str| {
            for term in analyzer.terms(text) {
                let spelling = text[term.start..term.end].to_lowercase();
                if spelling != term.text {
                    spellings.insert(spelling, term.text);
                }
            }
            analyzer.distinct(text)
        };
        for (page_number, page) in (0..).zip(outline.iter()) {
            named.push((None, page_number, distinct(&page.title)));
            for (section_number, section) in (0..).zip(&page.sections) {
                let place = (page_number, section_number);
                places.entry(section.url.clone()).or_insert(place);
                if let Some(heading) = section.heading.as_ref().filter(|heading| **heading != page.title) {
                    named.push((Some(place), page_number, distinct(heading)));
                }
            }
        }
        for term in named.iter().flat_map(|(_, _, terms)| terms) {
            *counts.entry(term.clone()).or_default() += 1;
        }
        let vocabulary = Vocabulary::new(counts, spellings);
        let (mut titles, mut headings) = (HashMap::<u32, Vec<u32>>::new(), HashMap::<u32, Vec<Place>>::new());
        let mut lengths = HashMap::new();
        for (place, page, terms) in named {
            let known: Vec<u32> = terms.iter().filter_map(|term| vocabulary.number(term)).collect();
            if let Some(place) = place {
                lengths.insert(place, known.len() as u32);
            }
            for term in known {
                match place {
                    Some(place) => headings.entry(term).or_default().push(place),
                    None => titles.entry(term).or_default().push(page),
                }
            }
        }
        let module = |page: &PageOutline| (page.book_name.clone(), page.module_name.clone());
        let has_modules = outline.iter().map(module).collect::<HashSet<_>>().len() > 1;
        let loaded = Cache::new(PASSAGES_KEPT);
        Self { outline, vocabulary, titles, headings, lengths, places, has_modules, loaded }
    }

    /// At most `limit` pages for what was typed, best first.
    pub async fn find(
        &self,
        typed: &str,
        filter: &Filter,
        limit: usize,
        index: &dyn Index,
        analyzer: &Analyzer,
    ) -> Result<Vec<PageMatch>, IndexError> {
        let words = self.meanings(typed, analyzer);
        if words.iter().all(HashMap::is_empty) {
            return Ok(Vec::new());
        }
        let mut found = self.in_headings(&words, filter);
        for (rank, found_here) in self.passages(&words, filter, index, analyzer).await?.iter().enumerate() {
            let Loaded { passage, terms } = found_here.as_ref();
            let Some(&place) = self.places.get(&passage.url) else { continue };
            let section = found.entry(place).or_insert_with(|| self.blank(place, &words));
            for (score, meanings) in section.words.iter_mut().zip(&words) {
                *score = score.max(IN_TEXT * best(meanings, terms));
            }
            if section.passage.is_none() {
                (section.passage, section.rank) = (Some(passage.clone()), rank);
            }
        }
        Ok(self.shown(found, &words, limit, analyzer))
    }

    /// What each typed word stands for. Only the last word may be unfinished.
    fn meanings(&self, typed: &str, analyzer: &Analyzer) -> Vec<Meanings> {
        let is_open = typed.ends_with(char::is_alphanumeric);
        let words: Vec<&str> =
            typed.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let last = words.len().saturating_sub(1);
        let mut meanings = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let terms = analyzer.distinct(word);
            let is_unfinished = is_open && number == last;
            // A stop word says something only while it may become another word.
            if terms.is_empty() && !(is_unfinished && words.len() == 1) {
                continue;
            }
            meanings.push(self.vocabulary.meanings(&word.to_lowercase(), &terms, is_unfinished));
        }
        meanings.truncate(MOST_WORDS);
        meanings
    }

    /// The sections whose heading or title matches a word.
    fn in_headings(&self, words: &[Meanings], filter: &Filter) -> HashMap<Place, Found> {
        let mut found: HashMap<Place, Found> = HashMap::new();
        for (number, meanings) in words.iter().enumerate() {
            for (term, quality) in meanings {
                let headings = self.headings.get(term).into_iter().flatten().copied();
                let titles = self.titles.get(term).into_iter().flatten().map(|page| (*page, 0));
                for place in headings.chain(titles).filter(|(page, _)| self.is_admitted(*page, filter)) {
                    let section = found.entry(place).or_insert_with(|| self.blank(place, words));
                    section.words[number] = section.words[number].max(IN_HEADING * quality);
                }
            }
        }
        for (place, section) in &mut found {
            let matched = section.words.iter().filter(|score| **score > 0.0).count() as f32;
            section.share = (matched / self.lengths.get(place).map_or(1.0, |length| *length as f32)).min(1.0);
        }
        found
    }

    /// A section of which only the title of its page is known to match.
    fn blank(&self, (page, _): Place, words: &[Meanings]) -> Found {
        let in_title = |meanings: &Meanings| {
            let matching = meanings.iter().filter(|(term, _)| {
                self.titles.get(term).is_some_and(|pages| pages.binary_search(&page).is_ok())
            });
            IN_TITLE * matching.map(|(_, quality)| *quality).fold(0.0, f32::max)
        };
        Found { words: words.iter().map(in_title).collect(), rank: PASSAGES, ..Found::default() }
    }

    fn is_admitted(&self, page: u32, filter: &Filter) -> bool {
        filter.admits_page(&self.outline[page as usize])
    }

    /// The best passages of the keyword search for the likeliest terms of every word.
    async fn passages(
        &self,
        words: &[Meanings],
        filter: &Filter,
        index: &dyn Index,
        analyzer: &Analyzer,
    ) -> Result<Vec<Arc<Loaded>>, IndexError> {
        let mut text = String::new();
        for meanings in words {
            let mut terms: Vec<(u32, f32)> =
                meanings.iter().map(|(term, quality)| (*term, *quality)).collect();
            terms.sort_by(|a, b| {
                b.1.total_cmp(&a.1)
                    .then(Reverse(self.vocabulary.count(a.0)).cmp(&Reverse(self.vocabulary.count(b.0))))
            });
            for (term, _) in terms.into_iter().take(TERMS_OF_WORD) {
                text.push_str(self.vocabulary.term(term));
                text.push(' ');
            }
        }
        let query = IndexQuery { text: &text, vector: None, filter, depth: PASSAGES, analyzed: true };
        let rows: Vec<_> =
            index.search(&query).await?.lexical.into_iter().map(|candidate| candidate.row).collect();
        let mut known: HashMap<RowId, Arc<Loaded>> =
            rows.iter().filter_map(|row| Some((*row, self.loaded.get(row)?))).collect();
        let new: Vec<RowId> = rows.iter().copied().filter(|row| !known.contains_key(row)).collect();
        let passages = if new.is_empty() { Vec::new() } else { index.chunks(&new).await? };
        for (row, passage) in new.iter().zip(passages) {
            let Some(passage) = passage else { continue };
            let terms = analyzer.distinct(&passage.content);
            let terms = terms.iter().filter_map(|term| self.vocabulary.number(term)).collect();
            let loaded = Arc::new(Loaded { passage, terms });
            self.loaded.put(*row, loaded.clone());
            known.insert(*row, loaded);
        }
        Ok(rows.iter().filter_map(|row| known.remove(row)).collect())
    }

    /// The best pages, with their best sections.
    fn shown(
        &self,
        found: HashMap<Place, Found>,
        words: &[Meanings],
        limit: usize,
        analyzer: &Analyzer,
    ) -> Vec<PageMatch> {
        let mut pages: BTreeMap<u32, Vec<Scored>> = BTreeMap::new();
        for ((page, section), found) in found {
            pages.entry(page).or_default().push((found.score(), section, found));
        }
        let mut pages: Vec<(f32, u32, Vec<Scored>)> = pages
            .into_iter()
            .map(|(page, mut sections)| {
                sections.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                (self.title_score(page, words).max(sections[0].0), page, sections)
            })
            .collect();
        pages.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let marked = Marked { typeahead: self, words, analyzer };
        pages
            .into_iter()
            .take(limit)
            .map(|(_, page, sections)| marked.page(&self.outline[page as usize], sections))
            .collect()
    }

    /// The score of a page by its title alone. A title that the words fill is better than a longer one.
    fn title_score(&self, page: u32, words: &[Meanings]) -> f32 {
        let title = self.blank((page, 0), words);
        let matched = title.words.iter().filter(|score| **score > 0.0).count() as f32;
        let length = self.outline[page as usize].title.split_whitespace().count().max(1) as f32;
        Found { share: (matched / length).min(1.0), rank: 0, ..title }.score()
    }
}

impl Found {
    /// Words in headings count most; a section with all words comes before one with some of them.
    fn score(&self) -> f32 {
        const FULL_HEADING: f32 = 1.5;
        const BEST_PASSAGE: f32 = 1.0;
        let matched = self.words.iter().filter(|score| **score > 0.0).count() as f32;
        let coverage = matched / self.words.len().max(1) as f32;
        let passage = BEST_PASSAGE * (1.0 - self.rank as f32 / PASSAGES as f32);
        (self.words.iter().sum::<f32>() + FULL_HEADING * self.share + passage) * coverage * coverage
    }
}

/// The best match of a word among some terms.
fn best(meanings: &Meanings, terms: &HashSet<u32>) -> f32 {
    meanings.iter().filter(|(term, _)| terms.contains(term)).map(|(_, quality)| *quality).fold(0.0, f32::max)
}

/// Makes results with the matching words marked.
struct Marked<'a> {
    typeahead: &'a Typeahead,
    words: &'a [Meanings],
    analyzer: &'a Analyzer,
}

impl Marked<'_> {
    fn page(&self, page: &PageOutline, sections: Vec<Scored>) -> PageMatch {
        let sections = sections
            .into_iter()
            .filter_map(|(_, number, found)| {
                let section = page.sections.get(number as usize)?;
                let heading = section.heading.as_deref().filter(|heading| *heading != page.title);
                let heading = heading.map(|heading| self.pieces(heading)).unwrap_or_default();
                let text = found.passage.map(|passage| self.text(&passage.content)).unwrap_or_default();
                let is_found = heading.iter().chain(&text).any(|piece| piece.matched);
                is_found.then(|| SectionMatch { heading, url: section.url.clone(), text })
            })
            .take(SECTIONS_OF_PAGE)
            .collect();
        PageMatch {
            title: self.pieces(&page.title),
            url: page.url.clone(),
            document_id: page.document_id.clone(),
            book_name: page.book_name.clone(),
            module_name: if self.typeahead.has_modules { page.module_name.clone() } else { String::new() },
            version: page.edition.version.clone(),
            locale: page.edition.locale.clone(),
            sections,
        }
    }

    /// The sentence with the most matches, shortened to begin near the first one; empty without a match.
    fn text(&self, content: &str) -> Vec<Piece> {
        let of_sentence = |sentence: &str| {
            let spans = self.matches(sentence);
            let words: HashSet<usize> = spans.iter().map(|(_, word)| *word).collect();
            words.len()
        };
        let candidates = sentences(content).into_iter().map(|span| &content[span]);
        let most = candidates
            .map(|sentence| (of_sentence(sentence), sentence))
            .rev()
            .max_by_key(|(count, _)| *count);
        match most {
            Some((count, sentence)) if count > 0 => self.pieces(&self.shortened(sentence)),
            _ => Vec::new(),
        }
    }

    fn shortened(&self, sentence: &str) -> String {
        const BEFORE: usize = 50;
        let line = without_markup(sentence);
        if line.chars().count() <= LONGEST_TEXT {
            return line;
        }
        let first = self.matches(&line).first().map_or(0, |((start, _), _)| *start);
        let before = line[..first].chars().count();
        let mut start = 0;
        if before > BEFORE {
            let at = line[..first].char_indices().rev().nth(BEFORE).map_or(0, |(at, _)| at);
            start = at + line[at..].find(' ').map_or(0, |space| space + 1);
        }
        let rest = &line[start..];
        let end = rest.char_indices().nth(LONGEST_TEXT).map_or(rest.len(), |(at, _)| at);
        let end = if end == rest.len() { end } else { rest[..end].rfind(' ').unwrap_or(end) };
        let ellipsis = |needed: bool, mark: &'static str| if needed { mark } else { "" };
        format!("{}{}{}", ellipsis(start > 0, "… "), &rest[..end], ellipsis(end < rest.len(), " …"))
    }

    /// The matching parts of a text, in order, and the number of the typed word they match.
    fn matches(&self, text: &str) -> Vec<((usize, usize), usize)> {
        let mut found = Vec::new();
        for term in self.analyzer.terms(text) {
            let Some(number) = self.typeahead.vocabulary.number(&term.text) else { continue };
            if let Some(word) = self.words.iter().position(|meanings| meanings.contains_key(&number)) {
                found.push(((term.start, term.end), word));
            }
        }
        found.sort_unstable();
        found
    }

    fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut end = 0;
        let mut push = |from: usize, to: usize, matched| {
            if from < to {
                pieces.push(Piece { text: text[from..to].to_owned(), matched });
            }
        };
        for ((start, stop), _) in self.matches(text) {
            if start >= end {
                push(end, start, false);
                push(start, stop, true);
                end = stop;
            }
        }
        push(end, text.len(), false);
        pieces
    }
}

/// A sentence, list item or table row in one line, without the marks of Markdown.
fn without_markup(sentence: &str) -> String {
    let bare = sentence.trim().trim_start_matches(['#', '>', '-', '*', '+', ' ']);
    let cells: Vec<&str> = match bare.strip_prefix('|') {
        Some(row) => row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect(),
        None => vec![bare],
    };
    let line = cells.join(" · ").replace("**", "").replace('`', "");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
