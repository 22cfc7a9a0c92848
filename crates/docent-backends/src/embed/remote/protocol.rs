//! The three protocols: paths, requests and responses.
//!
//! Invariant: a request never exceeds the provider's limits.

use docent_core::embed::{Purpose, Vector};
use serde::Deserialize;
use serde_json::{Value, json};

use super::models::{self, Known};
use crate::provider::Failure;

/// The protocol of an embedding API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Cohere's API, version 2.
    Cohere,
    /// OpenAI's API, which many servers support.
    OpenAi,
    /// Ollama's native API.
    Ollama,
}

impl Protocol {
    /// The prefix of embedder names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cohere => "cohere",
            Self::OpenAi => "openai",
            Self::Ollama => "ollama",
        }
    }

    /// The provider's default address.
    pub(super) fn home(self) -> &'static str {
        match self {
            Self::Cohere => "https://api.cohere.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// Suffixes that are removed from a base URL.
    pub(super) fn tails(self) -> &'static [&'static str] {
        match self {
            Self::Cohere => &["/embed", "/v1", "/v2"],
            Self::OpenAi => &["/embeddings"],
            Self::Ollama => &["/embed", "/api", "/v1"],
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Cohere => "/v2/embed",
            Self::OpenAi => "/embeddings",
            Self::Ollama => "/api/embed",
        }
    }

    pub(super) fn known(self, model: &str) -> Option<Known> {
        match self {
            Self::Cohere => models::cohere(model),
            Self::OpenAi => models::openai(model),
            Self::Ollama => models::ollama(model),
        }
    }

    /// Maximum number of texts per call.
    pub(super) fn most_texts(self) -> usize {
        match self {
            Self::Cohere => 96,
            Self::OpenAi => 2048,
            Self::Ollama => 512,
        }
    }

    /// Default number of texts per call: few enough to lose little if it fails. Servers compatible with
    /// OpenAI often accept no more than 32.
    pub(super) fn usual_texts(self, at_home: bool) -> usize {
        match self {
            Self::Cohere => 96,
            Self::OpenAi if at_home => 256,
            Self::OpenAi | Self::Ollama => 32,
        }
    }

    /// Maximum number of estimated tokens per call; OpenAI's own limit is twice as high.
    pub(super) fn most_tokens(self) -> usize {
        match self {
            Self::OpenAi => 150_000,
            Self::Cohere | Self::Ollama => usize::MAX,
        }
    }

    /// The body of a request; `dimensions` is set if it differs from the model's default width.
    pub(super) fn request(
        self,
        model: &str,
        texts: &[String],
        purpose: Purpose,
        dimensions: Option<usize>,
    ) -> Value {
        let (mut body, wish) = match self {
            Self::Cohere => {
                let kind = match purpose {
                    Purpose::Query => "search_query",
                    Purpose::Passage | Purpose::Sentence => "search_document",
                };
                let body = json!({
                    "model": model, "texts": texts, "input_type": kind,
                    "embedding_types": ["float"], "truncate": "END",
                });
                (body, "output_dimension")
            }
            Self::OpenAi => {
                (json!({"model": model, "input": texts, "encoding_format": "float"}), "dimensions")
            }
            Self::Ollama => (json!({"model": model, "input": texts, "truncate": true}), "dimensions"),
        };
        if let Some(dimensions) = dimensions {
            body[wish] = json!(dimensions);
        }
        body
    }

    /// The vectors in a response, in the order of the texts.
    pub(super) fn vectors(self, answer: &[u8]) -> Result<Vec<Vector>, Failure> {
        match self {
            Self::Cohere => Ok(read::<CohereAnswer>(answer)?.embeddings.float),
            Self::Ollama => Ok(read::<OllamaAnswer>(answer)?.embeddings),
            Self::OpenAi => {
                let mut data = read::<OpenAiAnswer>(answer)?.data;
                data.sort_by_key(|entry| entry.index);
                if data.iter().enumerate().any(|(place, entry)| place != entry.index) {
                    return Err(Failure::unreadable());
                }
                Ok(data.into_iter().map(|entry| entry.embedding).collect())
            }
        }
    }
}

fn read<T: for<'a> Deserialize<'a>>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(|_| Failure::unreadable())
}

#[derive(Deserialize)]
struct CohereAnswer {
    embeddings: ByType,
}

#[derive(Deserialize)]
struct ByType {
    float: Vec<Vector>,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    embedding: Vector,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vector>,
}
