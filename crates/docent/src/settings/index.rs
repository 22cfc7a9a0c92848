//! Settings for the index: embedded in the data folder, or on a Qdrant server.

use std::time::Duration;

use docent_backends::index::qdrant::{self, Fields, Quantization, Server};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Settings, out_of_range};
use crate::exit::{Exit, Failure};

/// The default alias of collections that Docent creates.
const COLLECTION: &str = "docent";

/// `[index]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Index {
    /// Which index; by default Qdrant if its URL is set, else the embedded one.
    pub kind: Option<IndexKind>,
}

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// Files in the data folder.
    Embedded,
    /// A Qdrant server.
    Qdrant,
}

/// `[qdrant]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Qdrant {
    /// The URL of the server.
    pub url: Option<String>,
    /// The API key; never printed.
    pub api_key: Option<SecretString>,
    /// The collection of another system, or the alias of Docent's own collection.
    pub collection_name: Option<String>,
    /// The vector to search, for collections with several.
    pub vector: Option<String>,
    /// The payload fields of another system's points: which holds the text, the URL and so on.
    pub fields: Fields,
    /// The number of shards of a new collection.
    pub shards: Option<u32>,
    /// The number of copies of each shard.
    pub replicas: Option<u32>,
    /// How vectors are quantized for the first pass of a search.
    pub quantization: Quantization,
    /// Whether full vectors and texts are kept on disk instead of in memory.
    pub on_disk: bool,
    /// The timeout of a call, in seconds.
    pub timeout: Option<f64>,
}

impl Settings {
    /// Which index is used.
    pub fn index_kind(&self) -> IndexKind {
        match self.index.kind {
            Some(kind) => kind,
            None if self.qdrant.url.is_some() => IndexKind::Qdrant,
            None => IndexKind::Embedded,
        }
    }

    /// The settings of the Qdrant index.
    pub fn qdrant(&self) -> Result<qdrant::Settings, Failure> {
        let configured = &self.qdrant;
        let Some(url) = configured.url.as_ref().filter(|url| !url.trim().is_empty()) else {
            return Err(Failure::new(
                Exit::NotConfigured,
                "index.kind is `qdrant` but qdrant.url is not set",
            )
            .hint("set QDRANT_URL, for example to http://localhost:6334"));
        };
        let mut server = Server::new(url, configured.api_key.clone());
        if let Some(timeout) = configured.timeout {
            server.timeout = Duration::from_secs_f64(timeout);
        }
        let language =
            self.book.language.as_ref().map(|code| code.parse().map_err(Failure::usage)).transpose()?;
        let collection = configured.collection_name.as_deref().unwrap_or(COLLECTION);
        let mut settings = qdrant::Settings::new(server, collection);
        settings.vector.clone_from(&configured.vector);
        settings.fields = configured.fields.clone();
        settings.language = language;
        settings.layout.shards = configured.shards;
        settings.layout.replicas = configured.replicas;
        settings.layout.quantization = configured.quantization;
        settings.layout.on_disk = configured.on_disk;
        Ok(settings)
    }

    pub(super) fn check_index(&self) -> Result<(), Failure> {
        let counts = [("qdrant.shards", self.qdrant.shards), ("qdrant.replicas", self.qdrant.replicas)];
        for (name, count) in counts {
            if let Some(count) = count.filter(|count| !(1..=10_000).contains(count)) {
                return Err(out_of_range(name, "1 and 10000", count));
            }
        }
        if let Some(timeout) = self.qdrant.timeout.filter(|timeout| !(0.1..=600.0).contains(timeout)) {
            return Err(out_of_range("qdrant.timeout", "0.1 and 600 seconds", timeout));
        }
        Ok(())
    }
}
