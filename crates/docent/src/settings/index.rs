//! Where the index is: in the data folder, or on a Qdrant server.

use std::time::Duration;

use docent_backends::index::qdrant::{self, Fields, Layout, Quantization, Server};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Settings, out_of_range};
use crate::exit::{Exit, Failure};

/// The alias new books get when nothing is configured.
const COLLECTION: &str = "docent";

/// `[index]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Index {
    /// Which one; Qdrant as soon as its address is known.
    pub kind: Option<IndexKind>,
}

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// In the data folder.
    Embedded,
    /// On a server.
    Qdrant,
}

/// `[qdrant]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Qdrant {
    /// The address.
    pub url: Option<String>,
    /// The key; never printed.
    pub api_key: Option<SecretString>,
    /// The collection of another system, or the alias of Docent's own.
    pub collection_name: Option<String>,
    /// The vector to search, where a collection has several.
    pub vector: Option<String>,
    /// Which fields of another system's points play which role.
    pub fields: Fields,
    /// Parts a new collection is split into.
    pub shards: Option<u32>,
    /// Copies of each part.
    pub replicas: Option<u32>,
    /// How vectors are made smaller for the first look.
    pub quantization: Quantization,
    /// Whether full vectors and texts stay on the disk.
    pub on_disk: bool,
    /// The longest a call may take, in seconds.
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

    /// How to use Qdrant.
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
        Ok(qdrant::Settings {
            server,
            collection: configured.collection_name.clone().unwrap_or_else(|| COLLECTION.to_owned()),
            vector: configured.vector.clone(),
            fields: configured.fields.clone(),
            language,
            layout: Layout {
                shards: configured.shards,
                replicas: configured.replicas,
                quantization: configured.quantization,
                on_disk: configured.on_disk,
            },
        })
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
