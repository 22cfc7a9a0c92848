//! Settings for the embedder, the reranker and the reader.

use std::path::PathBuf;

use docent_backends::embed::remote::{Protocol, RemoteEmbedderSettings};
use docent_backends::rerank::cohere::CohereRerankerSettings;
use docent_core::embed::EmbedderId;
use docent_core::read::PASSAGES_READ;
use docent_core::retrieve::PASSAGES_JUDGED;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Settings, out_of_range};
use crate::exit::{Exit, Failure};

/// `[embedder]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Embedder {
    /// Which embedder; by default the bundled model, or the one that fits the vectors of another system's collection.
    pub kind: Option<EmbedderKind>,
    /// The provider's model.
    pub model: Option<String>,
    /// The base URL, if it is not the provider's.
    pub base_url: Option<String>,
    /// The API key, if it is not in the provider's variable; never printed.
    pub api_key: Option<SecretString>,
    /// The requested width, for models that offer several.
    pub dimensions: Option<usize>,
    /// The maximum number of texts per call.
    pub batch_size: Option<usize>,
    /// The maximum number of attempts per call.
    pub attempts: Option<u32>,
    /// The prefix of questions; overrides the known prefix of the model.
    pub query_prefix: Option<String>,
    /// The prefix of passages; overrides the known prefix of the model.
    pub passage_prefix: Option<String>,
    /// The folder of an `onnx` model.
    pub folder: Option<PathBuf>,
}

/// Which embedder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedderKind {
    /// The bundled model.
    #[default]
    Local,
    /// Cohere.
    Cohere,
    /// OpenAI, or a compatible API.
    OpenAi,
    /// Ollama.
    Ollama,
    /// A sentence embedding model in a folder.
    Onnx,
    /// No embedder: search by keywords only.
    None,
}

/// `[reranker]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reranker {
    /// Which reranker.
    pub kind: RerankerKind,
    /// The provider's model.
    pub model: String,
    /// The base URL, if it is not the provider's.
    pub base_url: Option<String>,
    /// The API key, if it is not in `COHERE_API_KEY`; never printed.
    pub api_key: Option<SecretString>,
    /// The folder of an `onnx` model.
    pub folder: Option<PathBuf>,
    /// The number of top passages that are reranked.
    pub candidates: usize,
}

/// Which reranker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RerankerKind {
    /// No reranker: the fused ranking is used as it is.
    #[default]
    None,
    /// Cohere, or a compatible API.
    Cohere,
    /// A cross-encoder in a folder.
    Onnx,
}

/// `[reader]`
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reader {
    /// Which reader.
    pub kind: ReaderKind,
    /// The maximum number of passages it reads per question.
    pub passages: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self { kind: ReaderKind::Local, passages: PASSAGES_JUDGED }
    }
}

impl Reader {
    pub(super) fn check(self) -> Result<(), Failure> {
        if (1..=PASSAGES_READ).contains(&self.passages) {
            Ok(())
        } else {
            Err(out_of_range("reader.passages", &format!("1 and {PASSAGES_READ}"), self.passages))
        }
    }
}

/// Which reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReaderKind {
    /// The bundled model, for English only.
    #[default]
    Local,
    /// No reader: only keywords and vectors decide.
    None,
}

impl Default for Reranker {
    fn default() -> Self {
        Self {
            kind: RerankerKind::None,
            model: "rerank-v3.5".to_owned(),
            base_url: None,
            api_key: None,
            folder: None,
            candidates: 30,
        }
    }
}

impl Reranker {
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.kind == RerankerKind::Onnx && self.folder.is_none() {
            let message = "reranker.kind is `onnx` but reranker.folder is not set";
            return Err(Failure::new(Exit::NotConfigured, message)
                .hint("set reranker.folder to a folder with model.onnx and tokenizer.json"));
        }
        if !(1..=200).contains(&self.candidates) {
            return Err(out_of_range("reranker.candidates", "1 and 200", self.candidates));
        }
        Ok(())
    }
}

impl Embedder {
    /// The configured kind, or the default.
    pub fn kind(&self) -> EmbedderKind {
        self.kind.unwrap_or_default()
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.kind() == EmbedderKind::Onnx && self.folder.is_none() {
            let message = "embedder.kind is `onnx` but embedder.folder is not set";
            return Err(Failure::new(Exit::NotConfigured, message)
                .hint("set embedder.folder to a folder with model.onnx and tokenizer.json"));
        }
        if let Some(width) = self.dimensions.filter(|width| !(1..=16_384).contains(width)) {
            return Err(out_of_range("embedder.dimensions", "1 and 16384", width));
        }
        if let Some(size) = self.batch_size.filter(|size| !(1..=2048).contains(size)) {
            return Err(out_of_range("embedder.batch_size", "1 and 2048", size));
        }
        if let Some(attempts) = self.attempts.filter(|attempts| !(1..=10).contains(attempts)) {
            return Err(out_of_range("embedder.attempts", "1 and 10", attempts));
        }
        Ok(())
    }
}

impl Settings {
    /// The same settings with the embedder that made `vectors`, guessed from their width. A configured embedder
    /// wins; whether it fits is checked when it is used.
    pub fn fitting(&self, vectors: &EmbedderId) -> Result<Self, Failure> {
        let mut settings = self.clone();
        if self.embedder.kind.is_some() || !vectors.is_unknown() {
            return Ok(settings);
        }
        let (kind, model, missing) = match vectors.width {
            384 => (EmbedderKind::Local, None, None),
            1024 => (EmbedderKind::Cohere, None, self.cohere.api_key.is_none().then_some("COHERE_API_KEY")),
            1536 => (EmbedderKind::OpenAi, None, self.openai.api_key.is_none().then_some("OPENAI_API_KEY")),
            3072 => {
                let missing = self.openai.api_key.is_none().then_some("OPENAI_API_KEY");
                (EmbedderKind::OpenAi, Some("text-embedding-3-large"), missing)
            }
            width => {
                let message = format!(
                    "the collection contains vectors of width {width} but does not say which embedder made them"
                );
                return Err(Failure::new(Exit::NotConfigured, message)
                    .hint("set embedder.kind and embedder.model to the embedder that made the vectors"));
            }
        };
        settings.embedder.kind = Some(kind);
        settings.embedder.model = settings.embedder.model.or(model.map(str::to_owned));
        if let Some(variable) = missing {
            let maker = settings.remote_embedder().map(|remote| remote.model).unwrap_or_default();
            let message = format!(
                "the collection contains vectors of width {}, probably from {maker}, but {variable} is not set",
                vectors.width
            );
            return Err(Failure::new(Exit::NotConfigured, message).hint(format!(
                "set {variable}, or set embedder.kind to the embedder that made the vectors"
            )));
        }
        Ok(settings)
    }

    /// The settings of a remote embedder; `None` if the embedder is local or disabled.
    pub fn remote_embedder(&self) -> Option<RemoteEmbedderSettings> {
        let (embedder, openai, cohere) = (&self.embedder, &self.openai, &self.cohere);
        // OPENAI_MODEL is the model that writes answers; COHERE_MODEL is the embedder.
        let (protocol, model, base_url, key) = match embedder.kind() {
            EmbedderKind::Cohere => {
                let model = cohere.model.as_deref().unwrap_or("embed-multilingual-v3.0");
                (Protocol::Cohere, model, &cohere.base_url, &cohere.api_key)
            }
            EmbedderKind::OpenAi => {
                (Protocol::OpenAi, "text-embedding-3-small", &openai.base_url, &openai.api_key)
            }
            EmbedderKind::Ollama => (Protocol::Ollama, "nomic-embed-text", &None, &None),
            EmbedderKind::Local | EmbedderKind::Onnx | EmbedderKind::None => return None,
        };
        let mut remote = RemoteEmbedderSettings::new(protocol, embedder.model.as_deref().unwrap_or(model));
        remote.base_url = embedder.base_url.clone().or_else(|| base_url.clone());
        remote.api_key = embedder.api_key.clone().or_else(|| key.clone());
        remote.dimensions = embedder.dimensions;
        remote.batch_size = embedder.batch_size;
        remote.query_prefix.clone_from(&embedder.query_prefix);
        remote.passage_prefix.clone_from(&embedder.passage_prefix);
        for call_policy in [&mut remote.questions, &mut remote.passages] {
            call_policy.policy.attempts = embedder.attempts.unwrap_or(call_policy.policy.attempts);
        }
        Some(remote)
    }

    /// The settings of Cohere's reranker.
    pub fn cohere_reranker(&self) -> CohereRerankerSettings {
        let mut remote = CohereRerankerSettings::new(&self.reranker.model);
        remote.base_url = self.reranker.base_url.clone().or_else(|| self.cohere.base_url.clone());
        remote.api_key = self.reranker.api_key.clone().or_else(|| self.cohere.api_key.clone());
        remote
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Service;

    fn remote(kind: EmbedderKind) -> Settings {
        let service = |key: &str, model: &str, url: &str| Service {
            api_key: Some(key.into()),
            model: Some(model.to_owned()),
            base_url: Some(url.to_owned()),
        };
        Settings {
            embedder: Embedder { kind: Some(kind), ..Embedder::default() },
            openai: service("sk-openai", "gpt-4", "http://openai"),
            cohere: service("cohere", "embed-english-v3.0", "http://cohere"),
            ..Settings::default()
        }
    }

    #[test]
    fn variables_apply_to_their_own_provider_only() {
        let cohere = remote(EmbedderKind::Cohere).remote_embedder().unwrap();
        assert_eq!(cohere.model, "embed-english-v3.0");
        assert_eq!(cohere.base_url.as_deref(), Some("http://cohere"));
        let openai = remote(EmbedderKind::OpenAi).remote_embedder().unwrap();
        assert_eq!(openai.model, "text-embedding-3-small", "OPENAI_MODEL is not an embedder");
        assert_eq!(openai.base_url.as_deref(), Some("http://openai"));
        let ollama = remote(EmbedderKind::Ollama).remote_embedder().unwrap();
        assert!(ollama.api_key.is_none() && ollama.base_url.is_none(), "other providers' keys are not used");
    }

    #[test]
    fn the_embedders_own_settings_win() {
        let mut settings = remote(EmbedderKind::OpenAi);
        settings.embedder.base_url = Some("http://own".to_owned());
        settings.embedder.model = Some("own".to_owned());
        let own = settings.remote_embedder().unwrap();
        assert_eq!((own.base_url.as_deref(), own.model.as_str()), (Some("http://own"), "own"));
    }

    #[test]
    fn a_key_alone_does_not_enable_a_remote_embedder() {
        assert!(remote(EmbedderKind::Local).remote_embedder().is_none());
    }
}
