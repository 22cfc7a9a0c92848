//! Pieces of a draft become checked sentences with citations.
//!
//! Invariant: a citation's quote is `content[start..end]` of the passage it names.

use std::collections::HashMap;
use std::ops::Range;

use super::{Listener, NO_INFORMATION, Settings, TurnEvent, Verify};
use crate::answer::{Citation, Sentence};
use crate::cite::{deep_link, label};
use crate::extract::Extract;
use crate::retrieve::{Hit, Retriever};
use crate::sources::SourceChunk;
use crate::verify::{SUPPORTED, Verifier};

/// A sentence of a draft, or a list or code block.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// What stands between it and the piece before.
    pub separator: String,
    /// Its words, without pointers.
    pub text: String,
    /// The passages it points at, as indexes into the hits.
    pub passages: Vec<usize>,
    /// Its place in the one passage it points at, when it was copied from there.
    pub copied: Option<Range<usize>>,
}

/// The pieces of an extractive answer: neighbours share a paragraph, others stand apart.
pub fn extracted(extracts: &[Extract], hits: &[Hit]) -> Vec<Piece> {
    let mut before: Option<&Extract> = None;
    let mut pieces = Vec::with_capacity(extracts.len());
    for extract in extracts {
        let together = before
            .is_some_and(|before| before.passage == extract.passage && before.paragraph == extract.paragraph);
        pieces.push(Piece {
            separator: if together { " " } else { "\n\n" }.to_owned(),
            text: hits[extract.passage].chunk.content[extract.span.clone()].to_owned(),
            passages: vec![extract.passage],
            copied: Some(extract.span.clone()),
        });
        before = Some(extract);
    }
    pieces
}

/// Checks pieces one by one and keeps what passes.
pub struct Writer<'a> {
    retriever: &'a Retriever,
    verifier: &'a Verifier,
    settings: &'a Settings,
    listener: Listener<'a>,
    pages: HashMap<String, String>,
    written: Written,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// The answer, sentence by sentence.
    pub sentences: Vec<Sentence>,
    /// The words it rests on.
    pub citations: Vec<Citation>,
    separators: Vec<String>,
}

impl<'a> Writer<'a> {
    /// A blank sheet.
    pub fn new(
        retriever: &'a Retriever,
        verifier: &'a Verifier,
        settings: &'a Settings,
        listener: Listener<'a>,
    ) -> Self {
        Self { retriever, verifier, settings, listener, pages: HashMap::new(), written: Written::default() }
    }

    /// Checks a piece against the passages it points at, or all when it points nowhere.
    pub async fn write(&mut self, piece: Piece, hits: &[Hit]) {
        if piece.text.contains(NO_INFORMATION) || !piece.text.contains(char::is_alphanumeric) {
            return;
        }
        let pointed: Vec<usize> =
            if piece.passages.is_empty() { (0..hits.len()).collect() } else { piece.passages.clone() };
        let found: Vec<(usize, f32, Range<usize>)> = match &piece.copied {
            Some(span) => pointed.iter().map(|passage| (*passage, 1.0, span.clone())).collect(),
            None => self.supports(&piece.text, &pointed, hits).await,
        };
        let best = found.iter().map(|(_, score, _)| *score).fold(0.0, f32::max);
        let supported =
            best >= SUPPORTED || (self.settings.verify == Verify::Off && !piece.passages.is_empty());
        if !supported && self.settings.verify == Verify::Drop {
            return;
        }
        let mut ids = Vec::new();
        if supported {
            // A sentence that points nowhere gets its best passage; otherwise all that hold.
            let least = if piece.passages.is_empty() { best } else { SUPPORTED.min(best) };
            for (passage, _, span) in found.iter().filter(|(_, score, _)| *score >= least) {
                let id = self.cite(&hits[*passage], span.clone()).await;
                if !ids.contains(&id) {
                    ids.push(id);
                }
                if piece.passages.is_empty() {
                    break;
                }
            }
        }
        let new_paragraph = self.written.sentences.is_empty() || piece.separator.contains("\n\n");
        let sentence = Sentence {
            text: piece.text,
            citations: ids,
            support: best,
            supported,
            new_paragraph,
            html: None,
        };
        let cited =
            self.written.citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
        (self.listener)(TurnEvent::Sentence(sentence.clone(), cited.cloned().collect()));
        self.written.sentences.push(sentence);
        self.written.separators.push(piece.separator);
    }

    async fn supports(&self, text: &str, pointed: &[usize], hits: &[Hit]) -> Vec<(usize, f32, Range<usize>)> {
        let passages: Vec<&str> =
            pointed.iter().map(|passage| hits[*passage].chunk.content.as_str()).collect();
        let found = self.verifier.support(text, &passages).await;
        found.into_iter().map(|support| (pointed[support.passage], support.score, support.span)).collect()
    }

    /// The id of the citation of these words, new or known.
    async fn cite(&mut self, hit: &Hit, span: Range<usize>) -> usize {
        let chunk = &hit.chunk;
        let chunk_id = chunk.id.to_string();
        let same = |citation: &&Citation| {
            citation.chunk_id == chunk_id && (citation.start, citation.end) == (span.start, span.end)
        };
        if let Some(known) = self.written.citations.iter().find(same) {
            return known.id;
        }
        let page = match self.pages.get(&chunk.document_id) {
            Some(page) => page,
            None => {
                // A page that cannot be read costs the precision of the link, not the answer.
                let page = self.retriever.page(&chunk.document_id).await.unwrap_or_default();
                // Headings stand on the page as well, and in its table of contents.
                let text = page.iter().map(|chunk| {
                    let heading = chunk.heading.as_deref().unwrap_or_else(|| chunk.title());
                    format!("{heading}\n\n{}", chunk.content)
                });
                let text = text.collect::<Vec<_>>().join("\n\n");
                self.pages.entry(chunk.document_id.clone()).or_insert(text)
            }
        };
        let quote = &chunk.content[span.clone()];
        let id = self.written.citations.len() + 1;
        self.written.citations.push(Citation {
            id,
            page_title: chunk.title().to_owned(),
            heading: chunk.heading.clone(),
            url: deep_link(&chunk.url, quote, page),
            book_name: chunk.book_name.clone(),
            module_name: chunk.module_name.clone(),
            chunk_id,
            quote: quote.to_owned(),
            start: span.start,
            end: span.end,
        });
        id
    }

    /// Forgets what was written, its citations too, and says so to whoever heard it.
    pub fn clear(&mut self) {
        if !self.written.sentences.is_empty() {
            (self.listener)(TurnEvent::Restart);
        }
        self.written = Written::default();
    }

    /// What was written.
    pub fn finish(self) -> Written {
        self.written
    }
}

impl Written {
    /// The answer as Markdown, with its citations as configured.
    pub fn answer(&self, settings: &Settings) -> String {
        let style = settings.citation_style;
        let mut answer = String::new();
        for (number, (sentence, separator)) in self.sentences.iter().zip(&self.separators).enumerate() {
            if number > 0 {
                answer.push_str(separator);
            }
            answer.push_str(&rendered(sentence, &self.citations, settings));
        }
        if let Some(list) = style.list(&self.citations) {
            answer.push_str("\n\n");
            answer.push_str(&list);
        }
        answer
    }
}

/// A sentence with its citations as configured, and a mark when the book does not support it.
pub fn rendered(sentence: &Sentence, citations: &[Citation], settings: &Settings) -> String {
    let mut text = sentence.text.clone();
    // Nothing may follow a closing fence or a table row on its line.
    let stands_alone = sentence.text.ends_with("```") || sentence.text.ends_with('|');
    let gap = if stands_alone { "\n\n" } else { " " };
    let cited = citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
    for (place, mark) in cited.map(|citation| settings.citation_style.mark(citation)).enumerate() {
        text.push_str(if place == 0 { gap } else { " " });
        text.push_str(&mark);
    }
    if !sentence.supported && settings.verify == Verify::Mark {
        text.push_str(gap);
        text.push_str(UNSUPPORTED_MARK);
    }
    text
}

/// Stands behind a sentence the book does not support.
pub const UNSUPPORTED_MARK: &str = "*(not supported by the book)*";

/// Sections named in an abstention.
const NEAREST: usize = 3;

/// An answer that says there is none, and where to look.
pub fn abstention(sources: &[SourceChunk]) -> String {
    let mut answer = format!("{NO_INFORMATION}.");
    let mut shown: Vec<&str> = Vec::new();
    for source in sources {
        if shown.len() == NEAREST || shown.contains(&source.url.as_str()) {
            continue;
        }
        if shown.is_empty() {
            answer.push_str("\n\nThe nearest sections are:\n");
        }
        shown.push(&source.url);
        answer.push_str(&format!(
            "\n- [{}]({}) ({:.2})",
            label(&source.breadcrumb),
            source.url,
            source.similarity_score
        ));
    }
    answer
}
