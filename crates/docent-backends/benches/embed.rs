//! Benchmarks of the local embedder: `cargo bench -p docent-backends --bench embed`.
//!
//! Set `DOCENT_BENCH_MODEL=FOLDER` to measure another model.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use docent_backends::embed::local::LocalEmbedder;
use docent_core::embed::Embedder;

static EMBEDDER: LazyLock<LocalEmbedder> = LazyLock::new(load);

fn load() -> LocalEmbedder {
    match std::env::var("DOCENT_BENCH_MODEL") {
        Ok(folder) => LocalEmbedder::from_folder(Path::new(&folder), None, None).unwrap(),
        Err(_) => LocalEmbedder::bundled().unwrap(),
    }
}

fn main() {
    divan::main();
}

/// A passage of about 225 tokens.
fn passage(number: usize) -> String {
    let sentence =
        "A node publishes sensor messages on a topic, and every subscriber of that topic receives a copy. ";
    let text = format!("Chapter {number}. {}", sentence.repeat(11));
    let tokens = EMBEDDER.count_tokens(&text);
    assert!((210..240).contains(&tokens), "{tokens} tokens");
    text
}

/// Items per second are passages per second, on all cores.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn passages_of_225_tokens(bencher: Bencher<'_, '_>) {
    let passages: Vec<String> = (0..64).map(passage).collect();
    let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
    bencher.counter(ItemsCount::new(texts.len())).bench(|| EMBEDDER.embed_now(&texts).unwrap());
}

#[divan::bench(sample_count = 200)]
fn a_short_question() -> Vec<Vec<f32>> {
    EMBEDDER.embed_now(&["How does a robot publish velocity commands?"]).unwrap()
}

#[divan::bench(sample_count = 10)]
fn load_the_model() -> LocalEmbedder {
    load()
}
