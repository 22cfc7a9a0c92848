//! Verify the pieces of a draft and turn them into sentences with citations.
//!
//! Invariant: a citation's quote is `content[start..end]` of the passage it names.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{Listener, NO_INFORMATION, Settings, Transcript, TurnEvent, Verify};
use crate::answer::{Citation, CitedFigure, Sentence, Verdict};
use crate::cite::{deep_link, label};
use crate::extract::Extract;
use crate::retrieve::{Hit, Retrieved, Retriever, Unmentioned};
use crate::search_response::SourceChunk;
use crate::verify::parts::claims_something;
use crate::verify::{Evidence, SUPPORTED, Verifier};

/// A sentence, list, table or code block of a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The white space between this piece and the one before.
    pub separator: String,
    /// The text, without pointers such as `[1]`.
    pub text: String,
    /// The passages the piece points at, as indexes into the hits.
    pub passages: Vec<usize>,
    /// If the text was copied from a passage: its position there.
    pub copied: Option<Range<usize>>,
}

/// The pieces of an extractive answer; each is a paragraph.
pub fn extracted(extracts: Vec<Extract>) -> impl Iterator<Item = Piece> {
    extracts.into_iter().map(|extract| Piece {
        separator: "\n\n".to_owned(),
        text: extract.text,
        passages: vec![extract.passage],
        copied: Some(extract.span),
    })
}

/// Verifies pieces one by one and keeps those that pass.
pub struct Writer<'a> {
    retriever: &'a Retriever,
    verifier: &'a Verifier,
    settings: &'a Settings,
    listener: Listener<'a>,
    pages: HashMap<String, String>,
    /// Page and section of each citation.
    sections: Vec<(String, u32)>,
    written: Written,
    /// The longest separator of the pieces dropped since the last sentence.
    gap: String,
}

/// A written answer.
#[derive(Debug, Default)]
pub struct Written {
    /// The answer, sentence by sentence.
    pub sentences: Vec<Sentence>,
    /// The citations of the sentences.
    pub citations: Vec<Citation>,
    /// Number of unsupported sentences that were left out.
    pub rejected: usize,
    /// Whether the model said that the book does not cover the question.
    pub declined: bool,
}

impl<'a> Writer<'a> {
    /// Creates an empty writer.
    pub fn new(
        retriever: &'a Retriever,
        verifier: &'a Verifier,
        settings: &'a Settings,
        listener: Listener<'a>,
    ) -> Self {
        Self {
            retriever,
            verifier,
            settings,
            listener,
            pages: HashMap::new(),
            sections: Vec::new(),
            written: Written::default(),
            gap: String::new(),
        }
    }

    /// Verifies a piece against the passages it points at, or against all hits if it points at none.
    pub async fn write(&mut self, piece: Piece, hits: &[Hit]) {
        // Only a model can decline; text copied from the book is kept whatever it says.
        let declines = piece.copied.is_none() && piece.text.contains(NO_INFORMATION);
        self.written.declined |= declines;
        if declines || !piece.text.contains(char::is_alphanumeric) {
            self.leave_out(&piece);
            return;
        }
        let pointed: Vec<usize> =
            if piece.passages.is_empty() { (0..hits.len()).collect() } else { piece.passages.clone() };
        let is_off = self.settings.verify == Verify::Off;
        let claims = piece.copied.is_some() || claims_something(&piece.text);
        let found: Vec<(usize, f32, Range<usize>)> = match &piece.copied {
            Some(span) => pointed.iter().map(|passage| (*passage, 1.0, span.clone())).collect(),
            None if !claims || (is_off && piece.passages.is_empty()) => Vec::new(),
            None => self.supports(&piece.text, &pointed, hits).await,
        };
        // Sentences that are not verified, or that claim nothing, pass without a citation.
        let unchecked = !claims || is_off;
        let best = found.iter().map(|(_, score, _)| *score).fold(if unchecked { 1.0 } else { 0.0 }, f32::max);
        let verdict = match () {
            () if piece.copied.is_some() => Verdict::Supported,
            () if !claims => Verdict::None,
            () if is_off => Verdict::Unverified,
            () if best >= SUPPORTED => Verdict::Supported,
            () if self.is_in_another_language(&piece.text, &pointed, hits) => Verdict::Unverified,
            () => Verdict::Unsupported,
        };
        if verdict == Verdict::Unsupported && self.settings.verify == Verify::Drop {
            self.written.rejected += 1;
            self.leave_out(&piece);
            return;
        }
        let points = !piece.passages.is_empty();
        let is_cited = verdict == Verdict::Supported || (verdict == Verdict::Unverified && points);
        let citations = if is_cited { self.cite_found(&found, points, best, hits).await } else { Vec::new() };
        self.push(piece, citations, verdict, best);
    }

    /// Cites the passages that support a sentence: one without pointers cites its best passage, one with pointers cites
    /// all that support it.
    async fn cite_found(
        &mut self,
        found: &[(usize, f32, Range<usize>)],
        points: bool,
        best: f32,
        hits: &[Hit],
    ) -> Vec<usize> {
        let (least, most) = if points { (SUPPORTED.min(best), usize::MAX) } else { (best, 1) };
        let mut ids = Vec::new();
        for (passage, _, span) in found.iter().filter(|(_, score, _)| *score >= least).take(most) {
            let id = self.cite(&hits[*passage], span.clone()).await;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// Appends a sentence to the answer and tells the listener.
    fn push(&mut self, piece: Piece, citations: Vec<usize>, verdict: Verdict, support: f32) {
        let is_first = self.written.sentences.is_empty();
        let gap = std::mem::take(&mut self.gap);
        let separator = match () {
            () if is_first => String::new(),
            () if line_breaks(&gap) > line_breaks(&piece.separator) => gap,
            () => piece.separator,
        };
        let new_paragraph = is_first || separator.contains("\n\n");
        let sentence = Sentence {
            text: piece.text,
            citations,
            support,
            supported: verdict == Verdict::Supported,
            verdict,
            new_paragraph,
            separator,
            html: None,
        };
        let cited =
            self.written.citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
        (self.listener)(TurnEvent::Sentence(sentence.clone(), cited.cloned().collect()));
        self.written.sentences.push(sentence);
    }

    /// Whether a sentence is in another language than the passages it points at, so that it cannot be
    /// verified. It must also share few words with them, since language detection is unreliable for short
    /// sentences.
    fn is_in_another_language(&self, text: &str, pointed: &[usize], hits: &[Hit]) -> bool {
        let analyzer = self.retriever.analyzer();
        if !analyzer.language().differs_from(text) {
            return false;
        }
        let words = analyzer.distinct(text);
        let passages: HashSet<String> = pointed
            .iter()
            .flat_map(|passage| analyzer.distinct(&hits[*passage].chunk.embedded_text()))
            .collect();
        let shared = words.iter().filter(|word| passages.contains(*word)).count();
        2 * shared < words.len()
    }

    /// Drops a piece but remembers its separator, so that the next sentence still begins the paragraph.
    fn leave_out(&mut self, piece: &Piece) {
        if line_breaks(&piece.separator) > line_breaks(&self.gap) {
            self.gap.clone_from(&piece.separator);
        }
    }

    async fn supports(&self, text: &str, pointed: &[usize], hits: &[Hit]) -> Vec<(usize, f32, Range<usize>)> {
        let headings: Vec<String> = pointed.iter().map(|passage| hits[*passage].chunk.breadcrumb()).collect();
        let evidence: Vec<Evidence<'_>> = pointed
            .iter()
            .zip(&headings)
            .map(|(passage, heading)| Evidence { heading, content: &hits[*passage].chunk.content })
            .collect();
        let found = match self.settings.verify {
            Verify::Off => self.verifier.nearest(text, &evidence),
            Verify::Mark | Verify::Drop => self.verifier.support(text, &evidence).await,
        };
        found.into_iter().map(|support| (pointed[support.passage], support.score, support.span)).collect()
    }

    /// The id of the citation for this quote, new or existing.
    async fn cite(&mut self, hit: &Hit, span: Range<usize>) -> usize {
        let chunk = &hit.chunk;
        let chunk_id = chunk.id.to_string();
        // All quotes from one section share one citation number.
        let section = (chunk.document_id.clone(), chunk.section);
        let known = self.sections.iter().position(|known| *known == section);
        if let Some(known) = known {
            let citation = &mut self.written.citations[known];
            if citation.chunk_id == chunk_id && !(citation.start <= span.start && span.end <= citation.end) {
                (citation.start, citation.end) = (citation.start.min(span.start), citation.end.max(span.end));
                citation.quote = chunk.content[citation.start..citation.end].to_owned();
                citation.figures = CitedFigure::beside(chunk, &(citation.start..citation.end));
            }
            return citation.id;
        }
        let page = match self.pages.get(&chunk.document_id) {
            Some(page) => page,
            None => {
                // If the page cannot be read, the link is less precise, but the answer stands.
                let page = self.retriever.page(&chunk.document_id).await.unwrap_or_default();
                // Headings are part of the published page too, so include them when checking for unique text.
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
        self.sections.push(section);
        self.written.citations.push(Citation {
            id,
            page_title: chunk.title().to_owned(),
            heading: chunk.heading.clone(),
            url: deep_link(&chunk.url, quote, page),
            book_name: chunk.book_name.clone(),
            module_name: chunk.module_name.clone(),
            version: chunk.edition.version.clone(),
            locale: chunk.edition.locale.clone(),
            chunk_id,
            quote: quote.to_owned(),
            html: None,
            start: span.start,
            end: span.end,
            figures: CitedFigure::beside(chunk, &span),
        });
        id
    }

    /// Discards everything written so far and tells the listener to restart.
    pub fn clear(&mut self) {
        if !self.written.sentences.is_empty() {
            (self.listener)(TurnEvent::Restart);
        }
        self.written = Written::default();
        self.gap.clear();
        self.sections.clear();
    }

    /// Returns the written answer.
    pub fn finish(self) -> Written {
        self.written
    }
}

impl Written {
    /// Number of unsupported sentences, left out or not.
    pub fn unsupported(&self) -> usize {
        let marked = self.sentences.iter().filter(|sentence| sentence.verdict == Verdict::Unsupported);
        self.rejected + marked.count()
    }

    /// The answer as Markdown, with citations in the configured style.
    pub fn answer(&self, settings: &Settings) -> String {
        let mut transcript = Transcript::default();
        for sentence in &self.sentences {
            transcript.add(sentence, &self.citations, settings);
        }
        let mut answer = transcript.into_text();
        if let Some(list) = settings.citation_style.list(&self.citations) {
            answer.push_str("\n\n");
            answer.push_str(&list);
        }
        answer
    }
}

fn line_breaks(gap: &str) -> usize {
    gap.matches('\n').count()
}

/// Maximum number of sections named in an abstention.
const NEAREST: usize = 3;

/// Sections with a lower score are not named in an abstention; they would only mislead.
pub const NEAR: f32 = 0.05;

/// Maximum number of modules or pages named if no section is close.
const MOST_CONTENTS: usize = 8;

/// The text of an abstention: the reason, and either the closest sections or, if none is close, the
/// `contents` of the book.
pub fn abstention(retrieved: &Retrieved, sources: &[SourceChunk], contents: &[String]) -> String {
    let mut answer = format!("{NO_INFORMATION}.");
    if let Some(reason) = reason(&retrieved.unmentioned) {
        answer.push(' ');
        answer.push_str(&reason);
    }
    let mut shown: Vec<&str> = Vec::new();
    for source in sources.iter().filter(|source| source.similarity_score >= NEAR) {
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
    if shown.is_empty() && !contents.is_empty() {
        let some = &contents[..contents.len().min(MOST_CONTENTS)];
        let more = if some.len() < contents.len() { " and more" } else { "" };
        answer.push_str(&format!("\n\nThe book covers: {}{more}.", some.join(", ")));
    }
    answer
}

/// The reason for an abstention: words of the question that the book, or the passages found, do not mention.
fn reason(unmentioned: &[Unmentioned]) -> Option<String> {
    let (elsewhere, nowhere): (Vec<_>, Vec<_>) = unmentioned.iter().partition(|missing| missing.is_elsewhere);
    let names = |missing: &[&Unmentioned]| {
        missing.iter().map(|missing| format!("“{}”", missing.word)).collect::<Vec<_>>().join(" or ")
    };
    match (nowhere.as_slice(), elsewhere.as_slice()) {
        ([], []) => None,
        ([], elsewhere) => {
            Some(format!("The book mentions {}, but not in connection with your question.", names(elsewhere)))
        }
        (nowhere, _) => Some(format!("The book does not mention {}.", names(nowhere))),
    }
}

/// A note on the parts of the question that the book does not cover, if it covers other parts.
pub fn not_covered(retrieved: &Retrieved) -> Option<String> {
    let missing: Vec<String> = retrieved.uncovered.iter().map(|part| format!("“{part}”")).collect();
    (!missing.is_empty())
        .then(|| format!("The book does not seem to answer this part: {}", missing.join(", ")))
}

/// A note that the citations are from several versions, which may contradict each other. Versions of different books
/// are not compared.
pub fn different_versions(citations: &[Citation]) -> Option<String> {
    let mut books: Vec<(&str, Vec<&str>)> = Vec::new();
    for citation in citations {
        let Some(version) = citation.version.as_deref() else { continue };
        match books.iter_mut().find(|(book, _)| *book == citation.book_name) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version),
            None => books.push((&citation.book_name, vec![version])),
        }
    }
    let (_, versions) = books.into_iter().find(|(_, versions)| versions.len() > 1)?;
    let (last, others) = versions.split_last()?;
    Some(format!("The quoted passages are from different versions: {} and {last}", others.join(", ")))
}
