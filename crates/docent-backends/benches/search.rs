//! Benchmarks of search over 100,000 chunks: `cargo bench -p docent-backends --bench search`.
//!
//! A search ranks the candidates of both kinds, merges them and loads the best passages.
//!
//! The book is synthetic: words with the distribution of real text (Zipf), vectors around a thousand topics.
//! It is built once and kept in the target folder. Memory use is printed at the end.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::LazyLock;

use divan::Bencher;
use docent_backends::index::contents::{BookContents, PageRecord};
use docent_backends::index::embedded::EmbeddedIndex;
use docent_backends::index::embedded::build::build;
use docent_backends::index::embedded::generation::FORMAT;
use docent_core::chunk::Chunk;
use docent_core::embed::EmbedderId;
use docent_core::fuse::{Weights, fuse};
use docent_core::index::{Filter, IndexQuery, RowId};
use docent_core::language::Language;
use docent_core::read::PASSAGES_READ;
use docent_core::testing::chunk;

const CHUNKS: usize = 100_000;
const CHUNKS_PER_PAGE: usize = 20;
const WORDS_PER_CHUNK: usize = 120;
const VOCABULARY: usize = 40_000;
const TOPICS: usize = 1_000;
const WIDTH: usize = 384;
const QUERIES: usize = 200;

fn main() {
    LazyLock::force(&BOOK);
    divan::main();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("RssAnon")) {
        println!("{line}");
    }
}

/// A small, fast pseudorandom generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random word with a Zipf distribution: the n-th word has a probability of about 1/n.
    fn word(&mut self) -> String {
        let rank = (VOCABULARY as f64).powf(self.unit()) as usize;
        // Only letters, so that no word is taken for an identifier.
        let letters = |mut number: usize| {
            let mut word = String::new();
            loop {
                word.push((b'a' + (number % 26) as u8) as char);
                number /= 26;
                if number == 0 {
                    return word;
                }
            }
        };
        format!("w{}", letters(rank))
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn near(&mut self, topic: &[f32], spread: f32) -> Vec<f32> {
        let noisy: Vec<f32> = topic.iter().map(|value| value + spread * (self.unit() as f32 - 0.5)).collect();
        let length = noisy.iter().map(|value| value * value).sum::<f32>().sqrt();
        noisy.into_iter().map(|value| value / length).collect()
    }
}

fn topics() -> Vec<Vec<f32>> {
    let mut random = Random(7);
    (0..TOPICS).map(|_| random.near(&[0.0; WIDTH], 1.0)).collect()
}

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{CHUNKS}-{FORMAT}")));

static BOOK: LazyLock<EmbeddedIndex> = LazyLock::new(|| {
    if let Ok(index) = EmbeddedIndex::open(&FOLDER) {
        return index;
    }
    std::fs::create_dir_all(&*FOLDER).unwrap();
    write_book();
    // Memory used for building would distort the measurement.
    println!("book built; run again to measure memory");
    EmbeddedIndex::open(&FOLDER).unwrap()
});

fn write_book() {
    let (mut random, topics) = (Random(42), topics());
    let mut vectors = Vec::with_capacity(CHUNKS * WIDTH);
    let mut chunks: Vec<Chunk> = Vec::with_capacity(CHUNKS);
    for number in 0..CHUNKS {
        let page = number / CHUNKS_PER_PAGE;
        let mut chunk =
            chunk(&format!("page{page}"), (number % CHUNKS_PER_PAGE) as u32, &random.text(WORDS_PER_CHUNK));
        chunk.module_name = format!("module{}", page % 8);
        chunks.push(chunk);
        vectors.extend(random.near(&topics[page % TOPICS], 0.1));
    }
    let pages: Vec<PageRecord> = chunks
        .chunks(CHUNKS_PER_PAGE)
        .map(|chunks| PageRecord {
            id: chunks[0].document_id.clone(),
            url: chunks[0].url.clone(),
            title: chunks[0].page_title.clone(),
            book: String::new(),
            module: chunks[0].module_name.clone(),
            edition: Default::default(),
            chunks: chunks.len(),
            sections: Default::default(),
        })
        .collect();
    let contents = BookContents {
        embedder: EmbedderId { name: "bench".into(), width: WIDTH },
        language: Language::default(),
        pages: &pages,
        chunks: &chunks,
        vectors: &vectors,
        keys: &vec![0; CHUNKS],
        labels: Default::default(),
        sources: Vec::new(),
        created_at: String::new(),
    };
    build(&FOLDER, &contents).unwrap();
}

fn queries() -> Vec<(String, Vec<f32>)> {
    let (mut random, topics) = (Random(99), topics());
    (0..QUERIES).map(|number| (random.text(9), random.near(&topics[number % TOPICS], 0.1))).collect()
}

fn measure(bencher: Bencher<'_, '_>, words: bool, vector: bool, filter: &Filter) {
    let queries = queries();
    let next = std::sync::atomic::AtomicUsize::new(0);
    bencher.bench(|| {
        let (text, query_vector) =
            &queries[next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % QUERIES];
        let query = IndexQuery {
            text: if words { text } else { "" },
            vector: vector.then_some(query_vector.as_slice()),
            filter,
            depth: 400,
            analyzed: false,
        };
        let generation = BOOK.generation().unwrap();
        let ranking = fuse(&generation.search(&query).unwrap(), Weights::default());
        let best: Vec<RowId> = ranking.iter().take(PASSAGES_READ).map(|hit| hit.row).collect();
        (ranking, generation.chunks(&best).unwrap())
    });
}

#[divan::bench(sample_count = 400)]
fn hybrid(bencher: Bencher<'_, '_>) {
    measure(bencher, true, true, &Filter::default());
}

#[divan::bench(sample_count = 400)]
fn hybrid_in_one_module(bencher: Bencher<'_, '_>) {
    measure(bencher, true, true, &Filter::of_module(Some("module3".into())));
}

#[divan::bench(sample_count = 400)]
fn keywords_alone(bencher: Bencher<'_, '_>) {
    measure(bencher, true, false, &Filter::default());
}

#[divan::bench(sample_count = 400)]
fn vectors_alone(bencher: Bencher<'_, '_>) {
    measure(bencher, false, true, &Filter::default());
}

#[divan::bench(sample_count = 20)]
fn open() -> EmbeddedIndex {
    EmbeddedIndex::open(&FOLDER).unwrap()
}
