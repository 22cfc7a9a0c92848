//! The settings: `docent.toml`, overridden by the environment, overridden by flags.
//!
//! Invariant: settings are resolved once, before anything runs. Unknown keys and values out of range
//! are errors that name the setting and where it was set.

mod answering;
mod chat;
mod embedding;
mod index;
mod serving;
mod site;
mod sources;

use std::path::{Path, PathBuf};

use docent_core::fuse::Weights;
use docent_core::language::Language;
use docent_core::query::{DEFAULT_HITS, MOST_HITS};
use docent_core::retrieve;
use docent_parse::layout::Layout;
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure, nearest};
pub use answering::{Agent, Generator, Sessions, SessionsKind};
pub use chat::Chat;
pub use embedding::{Embedder, EmbedderKind, Reader, ReaderKind, Reranker, RerankerKind};
pub use index::{Index, IndexKind, Qdrant};
pub use serving::{ADDRESS_HINT, LogFormat, Rights, Serve, period};
pub use site::Site;
pub use sources::{Source, is_web};

/// All settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The folder for the index and the conversations.
    pub data_dir: Option<PathBuf>,
    /// About the book.
    pub book: Book,
    /// The sources of the book.
    pub sources: Vec<Source>,
    /// How sites are crawled.
    pub site: Site,
    /// The model that turns text into vectors.
    pub embedder: Embedder,
    /// Where passages and vectors are stored.
    pub index: Index,
    /// An optional model that reorders the best passages.
    pub reranker: Reranker,
    /// The model that reads the best passages together with the question.
    pub reader: Reader,
    /// How passages are found.
    pub retrieval: Retrieval,
    /// How questions are answered.
    pub agent: Agent,
    /// The model that writes the answers.
    pub generator: Generator,
    /// Where conversations are stored.
    pub sessions: Sessions,
    /// The server.
    pub serve: Serve,
    /// Looks and wording of the chat page.
    pub chat: Chat,
    /// OpenAI, as set by `OPENAI_*` variables.
    pub openai: Service,
    /// Cohere, as set by `COHERE_*` variables.
    pub cohere: Service,
    /// Qdrant, as set by `QDRANT_*` variables.
    pub qdrant: Qdrant,
}

/// `[book]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Book {
    /// The URL at which the book is published.
    pub base_url: Option<String>,
    /// The site generator.
    pub layout: Option<String>,
    /// The language of the book, as a two-letter code.
    pub language: Option<String>,
}

/// `[retrieval]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retrieval {
    /// The number of passages returned.
    pub top_k: usize,
    /// The minimum score of a passage.
    pub threshold: f32,
    /// The minimum relevance for high confidence.
    pub min_relevance_score: f32,
    /// The weight of keywords in the ranking; vectors have the rest.
    pub lexical_weight: f32,
    /// The weight of the page's score in a passage's score.
    pub page_weight: f32,
    /// The number of candidates from each ranking.
    pub depth: usize,
}

impl Default for Retrieval {
    fn default() -> Self {
        let settings = retrieve::Settings::default();
        Self {
            top_k: DEFAULT_HITS,
            threshold: 0.0,
            min_relevance_score: settings.min_relevance,
            lexical_weight: settings.weights.lexical,
            page_weight: settings.weights.page,
            depth: settings.depth,
        }
    }
}

impl Retrieval {
    /// The settings of the retriever.
    pub fn settings(&self) -> retrieve::Settings {
        retrieve::Settings {
            weights: Weights { lexical: self.lexical_weight, page: self.page_weight },
            depth: self.depth,
            min_relevance: self.min_relevance_score,
        }
    }
}

/// `[openai]` and `[cohere]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Service {
    /// The API key; never printed.
    pub api_key: Option<SecretString>,
    /// The model.
    pub model: Option<String>,
    /// The base URL, if it is not the provider's.
    pub base_url: Option<String>,
}

/// Variables that other programs use, too, and the settings they set.
const FOREIGN_VARIABLES: [(&str, &str); 8] = [
    ("OPENAI_API_KEY", "openai.api_key"),
    ("OPENAI_MODEL", "openai.model"),
    ("OPENAI_BASE_URL", "openai.base_url"),
    ("COHERE_API_KEY", "cohere.api_key"),
    ("COHERE_MODEL", "cohere.model"),
    ("QDRANT_URL", "qdrant.url"),
    ("QDRANT_API_KEY", "qdrant.api_key"),
    ("QDRANT_COLLECTION_NAME", "qdrant.collection_name"),
];

/// The configuration file that is read unless `--config` names another.
pub const DEFAULT_FILE: &str = "docent.toml";

impl Settings {
    /// Combines the file, the environment and the data folder given as a flag.
    pub fn resolve(config: Option<&Path>, data_dir: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = config.filter(|file| !file.is_file()) {
            let message = format!("the configuration file {} does not exist", file.display());
            return Err(Failure::new(Exit::NotConfigured, message));
        }
        let file = config.unwrap_or(Path::new(DEFAULT_FILE));
        let mut figment = Figment::new();
        if file.is_file() {
            figment = figment.merge(Toml::file_exact(file));
        }
        for (variable, setting) in FOREIGN_VARIABLES {
            if let Some(value) = std::env::var(variable).ok().filter(|value| !value.trim().is_empty()) {
                figment = figment.merge(Serialized::default(setting, value));
            }
        }
        // `DOCENT_TEST_*` variables are for this project's tests; they are not settings.
        let own = Env::prefixed("DOCENT_").filter(|key| !key.starts_with("test_")).split("__");
        figment = figment.merge(own);
        if let Some(folder) = data_dir {
            figment = figment.merge(Serialized::default("data_dir", folder));
        }
        let mut settings: Self = figment.extract().map_err(|error| explain(&error, file))?;
        settings.sessions.or_database_url();
        settings.check()?;
        let folder = file.parent().unwrap_or(Path::new(""));
        settings.sources.iter_mut().for_each(|source| source.anchor(folder));
        settings.chat.anchor(folder);
        settings.chat.check()?;
        Ok(settings)
    }

    /// The data folder.
    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.data_dir {
            return Ok(folder.clone());
        }
        directories::ProjectDirs::from("", "", "docent")
            .map(|folders| folders.data_dir().to_owned())
            .ok_or_else(|| {
                Failure::new(Exit::NotConfigured, "cannot find a home folder for the index")
                    .hint("choose a folder with --data-dir")
            })
    }

    /// The folder of the embedded index.
    pub fn index_folder(&self) -> Result<PathBuf, Failure> {
        Ok(self.data_dir()?.join("index"))
    }

    fn check(&self) -> Result<(), Failure> {
        let retrieval = &self.retrieval;
        let shares = [
            ("retrieval.threshold", retrieval.threshold),
            ("retrieval.min_relevance_score", retrieval.min_relevance_score),
            ("retrieval.lexical_weight", retrieval.lexical_weight),
            ("retrieval.page_weight", retrieval.page_weight),
        ];
        for (name, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(out_of_range(name, "0.0 and 1.0", value));
            }
        }
        if !(1..=MOST_HITS).contains(&retrieval.top_k) {
            return Err(out_of_range("retrieval.top_k", "1 and 100", retrieval.top_k));
        }
        if !(1..=10_000).contains(&retrieval.depth) {
            return Err(out_of_range("retrieval.depth", "1 and 10000", retrieval.depth));
        }
        if let Some(code) = &self.book.language {
            code.parse::<Language>()
                .map_err(|error| Failure::new(Exit::NotConfigured, format!("book.language: {error}")))?;
        }
        self.agent.check()?;
        self.serve.check()?;
        self.check_index()?;
        self.sessions.check()?;
        if let Some(attempts) = self.generator.attempts.filter(|attempts| !(1..=10).contains(attempts)) {
            return Err(out_of_range("generator.attempts", "1 and 10", attempts));
        }
        sources::check(&self.sources)?;
        let layouts = self.sources.iter().filter_map(|source| source.layout.as_ref());
        for layout in layouts.chain(&self.book.layout) {
            layout.parse::<Layout>().map_err(|error| Failure::new(Exit::NotConfigured, error))?;
        }
        self.site.check()?;
        self.embedder.check()?;
        self.reranker.check()?;
        self.reader.check()?;
        Ok(())
    }
}

fn out_of_range(name: &str, range: &str, value: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::NotConfigured, format!("{name} must be between {range}, got {value}"))
}

/// Says where a bad setting is and suggests a correction if its name is misspelled.
fn explain(error: &figment::Error, file: &Path) -> Failure {
    use figment::error::Kind;
    let path = error.path.join(".");
    let at = match error.metadata.as_ref().map(|metadata| metadata.name.to_string()) {
        Some(name) if name.contains("TOML") => file.display().to_string(),
        Some(name) if name.contains("environment") => "the environment".to_owned(),
        _ => "the settings".to_owned(),
    };
    match &error.kind {
        Kind::UnknownField(name, known) => {
            let failure = Failure::new(Exit::NotConfigured, format!("unknown setting `{path}` in {at}"));
            match nearest(name, known.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("expected one of {}", known.join(", "))),
            }
        }
        // The value is not printed: it may be a secret.
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            Failure::new(Exit::NotConfigured, format!("`{path}` in {at} must be {}", wanted(expected)))
        }
        Kind::UnknownVariant(_, known) => {
            Failure::new(Exit::NotConfigured, format!("`{path}` in {at} must be one of {}", known.join(", ")))
        }
        Kind::Message(message) => {
            Failure::new(Exit::NotConfigured, format!("{at}: {}", message.lines().next().unwrap_or_default()))
        }
        other => Failure::new(Exit::NotConfigured, format!("`{path}` in {at}: {other}")),
    }
}

/// Describes a Rust type in words.
fn wanted(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" | "a boolean" => "true or false",
        other => other,
    }
}
