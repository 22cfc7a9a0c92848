//! The keyword index: a tantivy index with one segment, whose document numbers are the rows of the vectors.
//!
//! Invariant: passages and queries are split into terms by the same [`Analyzer`].

use std::collections::HashSet;
use std::sync::Arc;

use docent_core::chunk::Chunk;
use docent_core::index::IndexQuery;
use docent_core::language::Language;
use docent_core::terms::{Analyzer, Term as AnalyzedTerm};
use tantivy::collector::TopDocs;
use tantivy::directory::Directory;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::store::{Compressor, StoreReader};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{
    Index, IndexSettings, ReloadPolicy, Searcher, SingleSegmentIndexWriter, TantivyDocument, Term,
};

/// The name under which the analyzer is registered with tantivy.
const ANALYZER: &str = "docent";

/// Bytes of memory tantivy may use while writing a segment.
const WRITER_MEMORY: usize = 64 << 20;

/// Number of blocks of chunk records that an open store caches.
const CACHED_BLOCKS: usize = 64;

struct Fields {
    /// Title, headings and text, which BM25 ranks together.
    body: Field,
    book: Field,
    module: Field,
    /// The chunk itself, as JSON.
    record: Field,
    /// The number of the edition. Generations of older versions do not have the field, and no editions either.
    edition: Field,
}

impl Fields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqs);
        let fields = Self {
            body: schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing)),
            book: schema.add_text_field("book", STRING),
            module: schema.add_text_field("module", STRING),
            record: schema.add_bytes_field("record", STORED),
            edition: schema.add_text_field("edition", STRING),
        };
        (schema.build(), fields)
    }
}

/// Writes the keyword index of a generation.
pub struct LexicalWriter {
    writer: SingleSegmentIndexWriter,
    fields: Fields,
}

impl LexicalWriter {
    /// An empty index in `directory`.
    pub fn create(directory: impl Into<Box<dyn Directory>>, language: Language) -> tantivy::Result<Self> {
        let (schema, fields) = Fields::schema();
        // Records are small and read at random; decompressing blocks would take longer than reading them.
        let settings = IndexSettings { docstore_compression: Compressor::None, ..IndexSettings::default() };
        let tokenizers = TokenizerManager::default();
        tokenizers.register(ANALYZER, ChunkTokenizer::new(language));
        let writer = Index::builder()
            .schema(schema)
            .settings(settings)
            .tokenizers(tokenizers)
            .single_segment_index_writer(directory, WRITER_MEMORY)?;
        Ok(Self { writer, fields })
    }

    /// Adds the next row, with the number of its edition if the book has editions.
    pub fn add(&mut self, chunk: &Chunk, edition: Option<u16>) -> tantivy::Result<()> {
        let mut document = TantivyDocument::default();
        document.add_text(self.fields.body, chunk.embedded_text());
        document.add_text(self.fields.book, &chunk.book_name);
        document.add_text(self.fields.module, &chunk.module_name);
        if let Some(edition) = edition {
            document.add_text(self.fields.edition, edition.to_string());
        }
        document.add_bytes(self.fields.record, &serde_json::to_vec(chunk).map_err(std::io::Error::other)?);
        self.writer.add_document(document)
    }

    /// Writes everything and closes the index.
    pub fn finish(self) -> tantivy::Result<Index> {
        self.writer.finalize()
    }
}

/// The keyword index of an open generation.
pub struct Lexical {
    searcher: Searcher,
    fields: Fields,
    store: Option<StoreReader>,
    analyzer: Analyzer,
}

/// The keyword ranking of a query.
#[derive(Debug, Default)]
pub struct Ranking {
    /// The rows with the best BM25 scores, best first.
    pub rows: Vec<(u32, f32)>,
    /// The query's terms with their weights.
    pub terms: Vec<(String, f32)>,
    /// Those terms that no chunk contains.
    pub absent: HashSet<String>,
}

impl Lexical {
    /// Opens what a [`LexicalWriter`] wrote.
    pub fn open(index: &Index, language: Language) -> tantivy::Result<Self> {
        index.tokenizers().register(ANALYZER, ChunkTokenizer::new(language));
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).num_warming_threads(1).try_into()?;
        let searcher = reader.searcher();
        let store = match searcher.segment_readers() {
            [] => None,
            [segment] => Some(segment.get_store_reader(CACHED_BLOCKS)?),
            more => {
                let message = format!("expected one segment, found {}", more.len());
                return Err(tantivy::TantivyError::InvalidArgument(message));
            }
        };
        let (_, fields) = Fields::schema();
        Ok(Self { searcher, fields, store, analyzer: Analyzer::new(language) })
    }

    /// Number of chunks.
    pub fn rows(&self) -> usize {
        self.searcher.num_docs() as usize
    }

    /// Ranks the rows that the query's filter admits by BM25. `editions` has the numbers of the editions it admits; none
    /// admits all.
    pub fn best(&self, query: &IndexQuery<'_>, editions: Option<&[u16]>) -> tantivy::Result<Ranking> {
        let terms = query.terms(&self.analyzer);
        let (filter, depth) = (query.filter, query.depth);
        let rows = self.searcher.num_docs() as f32;
        let mut ranking = Ranking::default();
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::with_capacity(terms.len() + 1);
        for text in terms {
            let term = Term::from_field_text(self.fields.body, &text);
            let holding = self.searcher.doc_freq(&term)? as f32;
            if holding > 0.0 {
                clauses.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
            } else {
                ranking.absent.insert(text.clone());
            }
            ranking.terms.push((text, (1.0 + (rows - holding + 0.5) / (holding + 0.5)).ln()));
        }
        if clauses.is_empty() {
            return Ok(ranking);
        }
        let mut query: Box<dyn Query> = Box::new(BooleanQuery::new(clauses));
        let named = |field, name: &str| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_text(field, name), IndexRecordOption::Basic))
        };
        let of_editions = |numbers: &[u16]| -> Box<dyn Query> {
            let any = numbers.iter().map(|number| named(self.fields.edition, &number.to_string()));
            Box::new(BooleanQuery::new(any.map(|one| (Occur::Should, one)).collect()))
        };
        let conditions = [
            filter.book.as_ref().map(|book| named(self.fields.book, book)),
            filter.module.as_ref().map(|module| named(self.fields.module, module)),
            editions.map(of_editions),
        ];
        for only in conditions.into_iter().flatten() {
            query = Box::new(BooleanQuery::new(vec![
                (Occur::Must, query),
                (Occur::Must, Box::new(ConstScoreQuery::new(only, 0.0))),
            ]));
        }
        let found = self.searcher.search(&*query, &TopDocs::with_limit(depth).order_by_score())?;
        ranking.rows = found.into_iter().map(|(score, address)| (address.doc_id, score)).collect();
        ranking.rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(ranking)
    }

    /// All terms of the text, with the number of chunks that contain each.
    pub fn vocabulary(&self) -> tantivy::Result<Vec<(String, u32)>> {
        let mut found = Vec::new();
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(self.fields.body)?;
            let mut terms = index.terms().stream()?;
            while terms.advance() {
                let text = String::from_utf8_lossy(terms.key()).into_owned();
                found.push((text, terms.value().doc_freq));
            }
        }
        Ok(found)
    }

    /// The chunk in a row.
    pub fn chunk(&self, row: u32) -> tantivy::Result<Arc<Chunk>> {
        let missing = || tantivy::TantivyError::InternalError(format!("row {row} has no record"));
        let store = self.store.as_ref().ok_or_else(missing)?;
        let document: TantivyDocument = store.get(row)?;
        let record =
            document.get_first(self.fields.record).and_then(|value| value.as_bytes()).ok_or_else(missing)?;
        let chunk = serde_json::from_slice(record)
            .map_err(|error| tantivy::TantivyError::InternalError(format!("row {row}: {error}")))?;
        Ok(Arc::new(chunk))
    }
}

/// The analyzer as a tantivy tokenizer.
#[derive(Clone)]
struct ChunkTokenizer {
    analyzer: Arc<Analyzer>,
}

impl ChunkTokenizer {
    fn new(language: Language) -> Self {
        Self { analyzer: Arc::new(Analyzer::new(language)) }
    }
}

impl Tokenizer for ChunkTokenizer {
    type TokenStream<'a> = ChunkTokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> ChunkTokens {
        ChunkTokens {
            terms: self.analyzer.terms(text).into_iter(),
            token: Token::default(),
            next_position: 0,
        }
    }
}

struct ChunkTokens {
    terms: std::vec::IntoIter<AnalyzedTerm>,
    token: Token,
    next_position: usize,
}

impl TokenStream for ChunkTokens {
    fn advance(&mut self) -> bool {
        let Some(term) = self.terms.next() else { return false };
        self.token = Token {
            offset_from: term.start,
            offset_to: term.end,
            position: self.next_position,
            text: term.text,
            position_length: 1,
        };
        self.next_position += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
