//! Builds the retriever of each generation from the configured reranker, reader and retrieval settings.

use std::sync::Arc;

use docent_backends::clock::SystemClock;
use docent_core::embed::Embedder;
use docent_core::index::{Identity, Index, IndexError};
use docent_core::language::Language;
use docent_core::library::Assemble;
use docent_core::reader::Reader;
use docent_core::rerank::Reranker;
use docent_core::retrieve::{self, Retriever};

use super::{reader, reranker};
use crate::exit::Failure;
use crate::settings::Settings;

/// The configured reranker, reader and retrieval settings.
pub struct Assembly {
    retrieval: retrieve::Settings,
    reranker: Option<Arc<dyn Reranker>>,
    /// The number of passages given to the reranker.
    candidates: usize,
    reader: Option<Arc<dyn Reader>>,
    /// The maximum number of passages the reader judges.
    passages_judged: usize,
}

impl Assembly {
    /// Loads what is configured.
    pub async fn load(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            retrieval: settings.retrieval.settings(),
            reranker: reranker(settings).await?,
            candidates: settings.reranker.candidates,
            reader: reader(settings).await?,
            passages_judged: settings.reader.passages,
        })
    }
}

impl Assemble for Assembly {
    fn retriever(
        &self,
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        language: Language,
    ) -> Retriever {
        let retriever = Retriever::new(index, embedder, language, self.retrieval, Arc::new(SystemClock));
        let retriever = match &self.reranker {
            Some(reranker) => retriever.with_reranker(reranker.clone(), self.candidates),
            None => retriever,
        };
        // The reader only knows English.
        match self.reader.as_ref().filter(|_| language.code() == "en") {
            Some(reader) => retriever.with_reader(reader.clone()).with_passages_judged(self.passages_judged),
            None => retriever,
        }
    }

    fn refused(&self, error: &IndexError, refused: &Identity, still: Option<&Identity>) {
        let still = still.map(|still| still.version.as_str());
        tracing::error!(
            %error,
            refused = refused.version,
            still,
            "the new index does not fit this process's embedder; restart the server to use the new index"
        );
    }
}
