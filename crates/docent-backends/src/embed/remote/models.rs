//! Models whose width is known without a request.
//!
//! Invariant: each width is the provider's published default; other models are queried for theirs.

/// A known model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// The default width of its vectors.
    pub(super) width: usize,
    /// Whether another width can be requested.
    pub(super) flexible: bool,
}

const fn fixed(width: usize) -> Known {
    Known { width, flexible: false }
}

const fn flexible(width: usize) -> Known {
    Known { width, flexible: true }
}

const COHERE: [(&str, Known); 5] = [
    ("embed-v4.0", flexible(1536)),
    ("embed-multilingual-v3.0", fixed(1024)),
    ("embed-english-v3.0", fixed(1024)),
    ("embed-multilingual-light-v3.0", fixed(384)),
    ("embed-english-light-v3.0", fixed(384)),
];

const OPENAI: [(&str, Known); 3] = [
    ("text-embedding-3-small", flexible(1536)),
    ("text-embedding-3-large", flexible(3072)),
    ("text-embedding-ada-002", fixed(1536)),
];

const OLLAMA: [(&str, Known); 8] = [
    ("nomic-embed-text", flexible(768)),
    ("mxbai-embed-large", flexible(1024)),
    ("all-minilm", fixed(384)),
    ("bge-m3", fixed(1024)),
    ("bge-large", fixed(1024)),
    ("snowflake-arctic-embed2", flexible(1024)),
    ("embeddinggemma", flexible(768)),
    ("paraphrase-multilingual", fixed(768)),
];

pub(super) fn cohere(model: &str) -> Option<Known> {
    find(&COHERE, model)
}

pub(super) fn openai(model: &str) -> Option<Known> {
    find(&OPENAI, model)
}

/// Ollama models have tags; the known width is that of `latest`.
pub(super) fn ollama(model: &str) -> Option<Known> {
    find(&OLLAMA, model.strip_suffix(":latest").unwrap_or(model))
}

fn find(table: &[(&str, Known)], model: &str) -> Option<Known> {
    table.iter().find(|(name, _)| *name == model).map(|(_, known)| *known)
}
