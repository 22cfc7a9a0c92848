//! An embedder behind somebody's API: Cohere, OpenAI and what speaks like it, Ollama.
//!
//! Invariant: every vector handed out has the width the identity names, unit length and
//! finite numbers; what a server sends instead is an error. Neither key nor text gets into one.

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
use crate::provider::{Contact, Failure, Patience, Provider, base_url};
pub use protocol::Protocol;

/// Asked for when the width of a model is not known.
const A_WORD: &str = "width";

/// Which model, where, and how patiently.
#[derive(Debug, Clone)]
pub struct RemoteEmbedderSettings {
    /// What it speaks.
    pub protocol: Protocol,
    /// The model's name, as the provider calls it.
    pub model: String,
    /// Where to find it, if not at the provider's own address.
    pub base_url: Option<String>,
    /// The key; Cohere and OpenAI need one, servers of one's own may not.
    pub api_key: Option<SecretString>,
    /// The width to ask for, of models that offer several.
    pub dimensions: Option<usize>,
    /// The most texts of one call, if fewer than the provider takes.
    pub batch_size: Option<usize>,
    /// The words before questions, instead of those the model is known to want.
    pub query_prefix: Option<String>,
    /// The words before passages.
    pub passage_prefix: Option<String>,
    /// For questions.
    pub questions: Patience,
    /// For passages.
    pub passages: Patience,
}

impl RemoteEmbedderSettings {
    /// A model at the provider's own address, with the usual patience.
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
            questions: Patience::of_a_reader(),
            passages: Patience::of_an_ingest(),
        }
    }

    fn contact(&self) -> Result<Contact, Failure> {
        let protocol = self.protocol;
        let own = self.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let (mut base, query) = base_url(own.unwrap_or(protocol.home()), protocol.tails())?;
        // As for the model that writes answers: a host alone means its `/v1`.
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
    /// A width to ask for, if it is not the model's own.
    wish: Option<usize>,
    batch: usize,
}

impl RemoteEmbedder {
    /// Checks the settings. A model of unknown width is asked for one vector; otherwise
    /// nothing is sent.
    pub async fn connect(settings: RemoteEmbedderSettings) -> Result<Self, EmbedError> {
        let (protocol, model) = (settings.protocol, settings.model.clone());
        let contact = settings.contact()?;
        let at_home = contact.base == protocol.home();
        // A gateway of one's own may have the key itself.
        let needs_key = at_home && protocol != Protocol::Ollama;
        let key = settings.api_key.clone();
        let provider =
            if needs_key { Provider::with_key(contact, key)? } else { Provider::new(contact, key)? };
        let known = protocol.known(&model);
        if let (Some(known), Some(wish)) = (known, settings.dimensions)
            && !known.flexible
            && known.width != wish
        {
            let width = known.width;
            return Err(EmbedError::Unusable(format!(
                "`{model}` makes vectors {width} wide and no others; remove embedder.dimensions"
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
            wish: settings.dimensions.filter(|wish| own != Some(*wish)),
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

    /// The texts of each call, as many as the provider takes at once.
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

    /// Judges what came: as many vectors as texts, of one width, of finite numbers.
    fn checked(&self, vectors: Vec<Vector>, texts: usize) -> Result<Vec<Vector>, Failure> {
        if vectors.len() != texts {
            return Err(Failure::unavailable(format!("it sent {} vectors for {texts} texts", vectors.len())));
        }
        let expected = match self.id.width {
            0 => vectors.first().map_or(0, Vec::len),
            width => width,
        };
        if let Some(odd) = vectors.iter().find(|vector| vector.len() != expected) {
            let actual = odd.len();
            return Err(Failure::refused(format!(
                "it sent vectors {actual} wide instead of {expected}; check embedder.model and embedder.dimensions"
            )));
        }
        let unit = vectors.into_iter().map(unit_length).collect::<Option<Vec<_>>>();
        unit.ok_or_else(|| Failure::unavailable("it sent a vector that points nowhere"))
    }
}

/// The provider and the model; and the prefixes, because they change the vectors.
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
        let patience = match purpose {
            Purpose::Query => &self.settings.questions,
            Purpose::Passage => &self.settings.passages,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for call in self.calls(texts, purpose) {
            let body = protocol.request(model, &call, purpose, self.wish);
            let read = |answer: &[u8]| self.checked(protocol.vectors(answer)?, call.len());
            vectors.extend(self.provider.post(protocol.path(), model, &body, patience, read).await?);
        }
        Ok(vectors)
    }
}
