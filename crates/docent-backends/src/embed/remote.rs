//! An embedder behind an API: Cohere, OpenAI and compatible servers, Ollama.
//!
//! Invariant: every returned vector has the width of the embedder's id, unit length and finite values; any
//! other response is an error. Errors contain neither the key nor the texts.

mod models;
mod protocol;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use secrecy::SecretString;

use super::estimate;
use super::local::PASSAGE_TOKENS;
use super::prefixes::Prefixes;
use super::unit_length;
use crate::provider::{CallPolicy, Contact, Failure, Provider, base_url};
pub use protocol::Protocol;

/// Embedded once to find out the width of an unknown model.
const A_WORD: &str = "width";

/// Which model to use, its address, and timeouts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteEmbedderSettings {
    /// The protocol of the API.
    pub protocol: Protocol,
    /// The provider's name of the model.
    pub model: String,
    /// The address of the API, if it is not the provider's own.
    pub base_url: Option<String>,
    /// The API key; Cohere and OpenAI require one, other servers may not.
    pub api_key: Option<SecretString>,
    /// The width to request, for models that offer several.
    pub dimensions: Option<usize>,
    /// Maximum number of texts per call, if lower than the provider's limit.
    pub batch_size: Option<usize>,
    /// The prefix of questions, instead of the model's known one.
    pub query_prefix: Option<String>,
    /// The prefix of passages, instead of the model's known one.
    pub passage_prefix: Option<String>,
    /// Timeouts and retries for questions.
    pub questions: CallPolicy,
    /// Timeouts and retries for passages.
    pub passages: CallPolicy,
}

impl RemoteEmbedderSettings {
    /// A model at the provider's own address, with the default timeouts and retries.
    pub fn new(protocol: Protocol, model: impl Into<String>) -> Self {
        Self {
            protocol,
            model: model.into(),
            base_url: None,
            api_key: None,
            dimensions: None,
            batch_size: None,
            query_prefix: None,
            passage_prefix: None,
            questions: CallPolicy::interactive(),
            passages: CallPolicy::ingest(),
        }
    }

    fn contact(&self) -> Result<Contact, Failure> {
        let protocol = self.protocol;
        let own = self.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let (mut base, query) = base_url(own.unwrap_or(protocol.home()), protocol.tails())?;
        // As for `[generator]`, `/v1` is added to a bare host.
        if protocol == Protocol::OpenAi && base.split('/').count() == 3 {
            base += "/v1";
        }
        let (who, key_variable) = match protocol {
            Protocol::Cohere => ("Cohere", "COHERE_API_KEY"),
            Protocol::OpenAi if base == protocol.home() => ("OpenAI", "OPENAI_API_KEY"),
            Protocol::OpenAi => {
                ("the OpenAI-compatible server", "OPENAI_API_KEY or DOCENT_EMBEDDER__API_KEY")
            }
            Protocol::Ollama => ("Ollama", "DOCENT_EMBEDDER__API_KEY"),
        };
        Ok(Contact { who, section: "embedder", key_variable, base, query })
    }
}

/// A model behind an API.
#[derive(Debug)]
pub struct RemoteEmbedder {
    settings: RemoteEmbedderSettings,
    provider: Provider,
    id: EmbedderId,
    prefixes: Prefixes,
    /// The width to request, if it is not the model's default.
    dimensions: Option<usize>,
    batch: usize,
}

impl RemoteEmbedder {
    /// Validates the settings. Sends one request if the width of the model is unknown, otherwise none.
    pub async fn connect(settings: RemoteEmbedderSettings) -> Result<Self, EmbedError> {
        let (protocol, model) = (settings.protocol, settings.model.clone());
        let contact = settings.contact()?;
        let at_home = contact.base == protocol.home();
        // A gateway at another address may add the key itself.
        let needs_key = at_home && protocol != Protocol::Ollama;
        let key = settings.api_key.clone();
        let provider =
            if needs_key { Provider::with_key(contact, key)? } else { Provider::new(contact, key)? };
        let known = protocol.known(&model);
        if let (Some(known), Some(dimensions)) = (known, settings.dimensions)
            && !known.flexible
            && known.width != dimensions
        {
            let width = known.width;
            return Err(EmbedError::Unusable(format!(
                "`{model}` only supports vectors of width {width}; remove embedder.dimensions"
            )));
        }
        let own = known.map(|known| known.width);
        let prefixes =
            if protocol == Protocol::Cohere { Prefixes::default() } else { Prefixes::known(&model) };
        let prefixes = prefixes.or(settings.query_prefix.as_deref(), settings.passage_prefix.as_deref());
        let most = protocol.most_texts();
        let batch = settings.batch_size.unwrap_or_else(|| protocol.usual_texts(at_home)).clamp(1, most);
        let width = settings.dimensions.or(own).unwrap_or(0);
        let mut embedder = Self {
            id: EmbedderId { name: name(protocol, &model, &prefixes), width },
            dimensions: settings.dimensions.filter(|dimensions| own != Some(*dimensions)),
            settings,
            provider,
            prefixes,
            batch,
        };
        if width == 0 {
            let vectors = embedder.embed(&[A_WORD], Purpose::Query).await?;
            embedder.id.width = vectors.first().map_or(0, Vec::len);
        }
        Ok(embedder)
    }

    /// Splits the texts into calls that stay within the provider's limits.
    fn calls(&self, texts: &[&str], purpose: Purpose) -> Vec<Vec<String>> {
        let prefix = self.prefixes.of(purpose);
        let mut calls: Vec<Vec<String>> = Vec::new();
        let mut room = 0;
        for text in texts {
            let text = format!("{prefix}{text}");
            let tokens = estimate::tokens(&text);
            match calls.last_mut() {
                Some(call) if call.len() < self.batch && tokens <= room => {
                    room -= tokens;
                    call.push(text);
                }
                _ => {
                    room = self.settings.protocol.most_tokens().saturating_sub(tokens);
                    calls.push(vec![text]);
                }
            }
        }
        calls
    }

    /// Checks the vectors: one per text, all of the same width, finite and not zero.
    fn checked(&self, vectors: Vec<Vector>, texts: usize) -> Result<Vec<Vector>, Failure> {
        if vectors.len() != texts {
            let count = vectors.len();
            return Err(Failure::unavailable(format!("it returned {count} vectors for {texts} texts")));
        }
        let expected = match self.id.width {
            0 => vectors.first().map_or(0, Vec::len),
            width => width,
        };
        if let Some(odd) = vectors.iter().find(|vector| vector.len() != expected) {
            let actual = odd.len();
            return Err(Failure::refused(format!(
                "it returned vectors of width {actual} instead of {expected}; \
                 check embedder.model and embedder.dimensions"
            )));
        }
        let unit = vectors.into_iter().map(unit_length).collect::<Option<Vec<_>>>();
        unit.ok_or_else(|| Failure::unavailable("it returned a zero or non-finite vector"))
    }
}

/// The name of the embedder: provider, model, and a hash of the prefixes, because they change the vectors.
fn name(protocol: Protocol, model: &str, prefixes: &Prefixes) -> String {
    let name = format!("{}/{model}", protocol.name());
    if prefixes.is_empty() {
        return name;
    }
    let both = format!("{}\u{1f}{}", prefixes.query, prefixes.passage);
    format!("{name}+{:08x}", xxhash_rust::xxh3::xxh3_64(both.as_bytes()) >> 32)
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        PASSAGE_TOKENS
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn count_tokens(&self, text: &str) -> usize {
        estimate::tokens(text)
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let RemoteEmbedderSettings { protocol, model, .. } = &self.settings;
        let call_policy = match purpose {
            Purpose::Query | Purpose::Sentence => &self.settings.questions,
            Purpose::Passage => &self.settings.passages,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for call in self.calls(texts, purpose) {
            let body = protocol.request(model, &call, purpose, self.dimensions);
            let read = |answer: &[u8]| self.checked(protocol.vectors(answer)?, call.len());
            vectors.extend(self.provider.post(protocol.path(), model, &body, call_policy, read).await?);
        }
        Ok(vectors)
    }
}
