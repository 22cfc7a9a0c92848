//! Builds the parts of the program from the settings: embedder, index, stores, agent. Commands get their parts and the
//! wording of their errors from here.
//!
//! Invariant: no other module chooses implementations.

mod assembly;
mod failures;
mod question_set;
mod stores;

use std::sync::Arc;

use docent_backends::clock::SystemClock;
use docent_backends::embed::local::LocalEmbedder;
use docent_backends::embed::remote::RemoteEmbedder;
use docent_backends::generate::remote::RemoteGenerator;
use docent_backends::index::embedded::{EmbeddedIndex, FolderTarget, generation};
use docent_backends::index::qdrant::QdrantIndex;
use docent_backends::index::target::IndexTarget;
use docent_backends::reader::local::LocalReader;
use docent_backends::rerank::cohere::CohereReranker;
use docent_backends::rerank::onnx::OnnxReranker;
use docent_core::agent::Agent;
use docent_core::embed::{Embedder, EmbedderId};
use docent_core::generate::Generator;
use docent_core::index::{Description, Identity, Index, IndexError};
use docent_core::library::Library;
use docent_core::reader::Reader;
use docent_core::rerank::Reranker;
use docent_core::retrieve::Retriever;
use docent_core::session::SessionStore;

pub use assembly::Assembly;
pub use failures::{
    ask_failure, embed_failure, index_failure, no_such_part, rerank_failure, retrieve_failure,
    session_failure,
};
pub use question_set::{eval_agent, eval_index, eval_target};
pub use stores::{
    Stores, examine_sessions, sessions, sessions_place, sql_sessions, stores, stores_of_server,
};

use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output};
use crate::readable::Readable;
use crate::sample;
use crate::settings::{EmbedderKind, IndexKind, ReaderKind, RerankerKind, Settings};
use crate::title::Title;

/// A book that can be searched.
pub struct Book {
    /// Its contents when it was opened.
    pub description: Arc<Description>,
    /// Whether it was the sample book when it was opened.
    pub is_sample: bool,
    /// Searches the generation that was current when it was opened.
    pub retriever: Retriever,
    /// The book with all generations published later.
    pub library: Library,
    /// The title that users see.
    pub title: Title,
    /// The embedder that compares meanings when answers are verified.
    pub meaning: Option<Arc<dyn Embedder>>,
}

impl Book {
    /// Prints a note if the sample book is used.
    pub fn announce(&self, output: &Output) {
        if self.is_sample {
            output.note(format!(
                "{FAINT}no book ingested yet; using the built-in sample book (run `docent ingest FOLDER` to add yours){FAINT:#}"
            ));
        }
    }
}

/// The configured embedder; without one, search uses keywords only.
pub async fn embedder(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    if let Some(remote) = settings.remote_embedder() {
        let embedder = RemoteEmbedder::connect(remote).await.map_err(embed_failure)?;
        return Ok(Some(Arc::new(embedder)));
    }
    if settings.embedder.kind() == EmbedderKind::None {
        return Ok(None);
    }
    // Loading a model takes a while and must not block other tasks.
    let own = settings.embedder.clone();
    let read = tokio::task::spawn_blocking(move || {
        match own.folder.clone().filter(|_| own.kind() == EmbedderKind::Onnx) {
            Some(folder) => LocalEmbedder::from_folder(
                &folder,
                own.query_prefix.as_deref(),
                own.passage_prefix.as_deref(),
            ),
            None => LocalEmbedder::bundled(),
        }
    });
    let embedder = read.await.map_err(|_| Failure::new(Exit::Failed, "could not load the embedder"))?;
    Ok(Some(Arc::new(embedder.map_err(embed_failure)?)))
}

/// The embedder that compares meanings when answers are verified: the local one, because a remote one would be called
/// for every sentence.
pub fn meaning(settings: &Settings, embedder: Option<Arc<dyn Embedder>>) -> Option<Arc<dyn Embedder>> {
    embedder.filter(|_| settings.embedder.kind() == EmbedderKind::Local)
}

/// The configured reranker, if any.
pub async fn reranker(settings: &Settings) -> Result<Option<Arc<dyn Reranker>>, Failure> {
    Ok(match settings.reranker.kind {
        RerankerKind::None => None,
        RerankerKind::Cohere => {
            let reranker = CohereReranker::new(settings.cohere_reranker());
            Some(Arc::new(reranker.map_err(rerank_failure)?))
        }
        RerankerKind::Onnx => {
            let folder = settings.reranker.folder.clone().unwrap_or_default();
            let read = tokio::task::spawn_blocking(move || OnnxReranker::from_folder(&folder));
            let read = read.await.map_err(|_| Failure::new(Exit::Failed, "could not load the reranker"))?;
            Some(Arc::new(read.map_err(rerank_failure)?))
        }
    })
}

/// The configured reader, if any; it only reads English.
pub async fn reader(settings: &Settings) -> Result<Option<Arc<dyn Reader>>, Failure> {
    if settings.reader.kind == ReaderKind::None {
        return Ok(None);
    }
    let loaded = tokio::task::spawn_blocking(LocalReader::bundled).await;
    let reader = loaded.map_err(|_| Failure::new(Exit::Failed, "could not load the reader"))?;
    Ok(Some(Arc::new(reader.map_err(|error| Failure::new(Exit::Failed, error))?)))
}

/// The ingested book, or the sample book if there is none.
pub async fn book(settings: &Settings) -> Result<Book, Failure> {
    book_read_at(settings, None).await
}

/// The same for a server at `base`, which also shows pages that are not published elsewhere.
pub async fn book_read_at(settings: &Settings, base: Option<String>) -> Result<Book, Failure> {
    let Opened { index, identity, embedder } = match settings.index_kind() {
        IndexKind::Embedded => embedded(settings).await?,
        IndexKind::Qdrant => on_server(settings).await?,
    };
    let readable = |index: Arc<dyn Index>| -> Arc<dyn Index> {
        match &base {
            Some(base) => Arc::new(Readable::new(index, base.clone())),
            None => index,
        }
    };
    let library = Library::new(readable(index), embedder.clone(), Assembly::load(settings).await?);
    let library = match identity {
        Ok(identity) => {
            matching(embedder.clone(), &identity.embedder)?;
            library
        }
        Err(IndexError::Empty) => {
            let sample = readable(Arc::new(sample_index(embedder.as_deref())?));
            library.with_sample(sample).await.map_err(index_failure)?
        }
        Err(error) => return Err(index_failure(error)),
    };
    let snapshot = library.current().await.map_err(index_failure)?;
    let title = Title::new(settings, library.clone());
    title.now().await;
    Ok(Book {
        description: snapshot.retriever.describe().await.map_err(retrieve_failure)?,
        is_sample: snapshot.is_sample,
        retriever: snapshot.retriever.clone(),
        library,
        title,
        meaning: meaning(settings, embedder),
    })
}

/// Describes the index, or the sample book if there is none. Needs no embedder, so it works whatever embedder is
/// configured. The flag says whether it is the sample book.
pub async fn description(settings: &Settings) -> Result<(Description, bool), Failure> {
    let described = match settings.index_kind() {
        IndexKind::Embedded => generation::describe(&settings.index_folder()?),
        IndexKind::Qdrant => qdrant(settings)?.describe().await,
    };
    match described {
        Ok(description) => Ok((description, false)),
        Err(IndexError::Empty) => match settings.qdrant.collection_name.as_ref() {
            Some(name) if settings.index_kind() == IndexKind::Qdrant => {
                Err(missing_collection(name, &qdrant(settings)?).await)
            }
            _ => Ok((sample::description()?, true)),
        },
        Err(error) => Err(index_failure(error)),
    }
}

/// An index, the identity of its current generation, and the embedder for it.
struct Opened {
    index: Arc<dyn Index>,
    identity: Result<Identity, IndexError>,
    embedder: Option<Arc<dyn Embedder>>,
}

async fn embedded(settings: &Settings) -> Result<Opened, Failure> {
    let index = EmbeddedIndex::follow(&settings.index_folder()?);
    // Load the model and the index in parallel, for a fast cold start.
    let opening = {
        let index = index.clone();
        tokio::spawn(async move { index.identity().await })
    };
    let embedder = embedder(settings).await?;
    let identity = opening.await.map_err(|_| Failure::new(Exit::Failed, "could not open the index"))?;
    Ok(Opened { index: Arc::new(index), identity, embedder })
}

/// On Qdrant the collection is opened first: its vectors may decide which embedder is needed.
async fn on_server(settings: &Settings) -> Result<Opened, Failure> {
    let index = qdrant(settings)?;
    let identity = index.identity().await;
    if let (Err(IndexError::Empty), Some(name)) = (&identity, &settings.qdrant.collection_name) {
        // A collection that is configured by name must exist; the sample book does not replace it.
        return Err(missing_collection(name, &index).await);
    }
    let embedder = match &identity {
        Ok(identity) => embedder(&settings.fitting(&identity.embedder)?).await?,
        Err(_) => embedder(settings).await?,
    };
    if let (Ok(identity), Some(embedder)) = (&identity, &embedder) {
        check_maker(settings, &index, &identity.embedder, embedder.as_ref()).await?;
    }
    Ok(Opened { index: Arc::new(index), identity, embedder })
}

/// The minimum similarity of vectors from the same model, allowing for rounding and white space. Vectors from different
/// models are not similar at all.
const SAME_MAKER: f32 = 0.8;

/// Checks whether a local embedder made the vectors of a collection that does not name its embedder. For remote
/// embedders only the width is compared, because embedding texts again costs money.
async fn check_maker(
    settings: &Settings,
    index: &QdrantIndex,
    maker: &EmbedderId,
    embedder: &dyn Embedder,
) -> Result<(), Failure> {
    let is_remote = settings.fitting(maker)?.remote_embedder().is_some();
    if is_remote || !maker.is_unknown() || maker.width != embedder.id().width {
        return Ok(());
    }
    match index.similarity(embedder).await.map_err(index_failure)? {
        Some(similarity) if similarity < SAME_MAKER => {
            let message = format!(
                "the collection contains vectors of width {}, but {} did not make them: embedding its texts again \
                 gives a similarity of {similarity:.2} (the same model gives 1.00)",
                maker.width,
                embedder.id().name
            );
            Err(Failure::new(Exit::NotConfigured, message).hint(
                "set embedder.kind and embedder.model, or embedder.kind = \"onnx\" and embedder.folder, to the embedder \
                 that made them; vectors of width 384 are often from all-MiniLM-L6-v2",
            ))
        }
        _ => Ok(()),
    }
}

/// The index on the configured Qdrant server.
pub fn qdrant(settings: &Settings) -> Result<QdrantIndex, Failure> {
    QdrantIndex::new(settings.qdrant()?).map_err(index_failure)
}

async fn missing_collection(name: &str, index: &QdrantIndex) -> Failure {
    let there = index.collections().await.unwrap_or_default();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let message = format!("Qdrant has no collection or alias `{name}`, or it is empty (available: {there})");
    Failure::new(Exit::NotConfigured, message)
        .hint("run `docent ingest FOLDER`, or set QDRANT_COLLECTION_NAME")
}

/// The embedder that made the vectors, if the collection does not name it itself.
pub async fn maker(settings: &Settings) -> Result<Option<EmbedderId>, Failure> {
    let maker = qdrant(settings)?.identity().await.map_err(index_failure)?.embedder;
    if !maker.is_unknown() {
        return Ok(None);
    }
    let embedder = embedder(&settings.fitting(&maker)?).await?;
    Ok(matching(embedder, &maker)?.map(|embedder| embedder.id().clone()))
}

/// The index that an ingest writes to.
pub fn index_target(settings: &Settings) -> Result<Box<dyn IndexTarget>, Failure> {
    index_target_of(settings, settings.index_kind())
}

/// The same for a given kind of index, which may differ from the configured one.
pub fn index_target_of(settings: &Settings, kind: IndexKind) -> Result<Box<dyn IndexTarget>, Failure> {
    Ok(match kind {
        IndexKind::Embedded => Box::new(FolderTarget { folder: settings.index_folder()? }),
        IndexKind::Qdrant => Box::new(qdrant(settings)?),
    })
}

fn sample_index(embedder: Option<&dyn Embedder>) -> Result<EmbeddedIndex, Failure> {
    match embedder {
        Some(embedder) => sample::index(Some(embedder), embedder),
        // The bundled model counts the tokens of passages even if it does not embed them.
        None => sample::index(None, &LocalEmbedder::bundled().map_err(embed_failure)?),
    }
}

/// Checks that the embedder is the one that made the vectors; `None` if the index has no vectors.
pub fn matching(
    embedder: Option<Arc<dyn Embedder>>,
    maker: &EmbedderId,
) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    match embedder {
        Some(embedder) if maker.width > 0 => {
            if maker.accepts(embedder.id()) {
                return Ok(Some(embedder));
            }
            let running = embedder.id().clone();
            Err(index_failure(IndexError::OtherEmbedder { made_with: maker.clone(), running }))
        }
        // No vectors or no embedder: search uses keywords only.
        _ => Ok(None),
    }
}

/// The model that writes answers; `None` if answers are extractive.
pub fn generator(settings: &Settings) -> Result<Option<Arc<dyn Generator>>, Failure> {
    let Some(remote) = settings.remote_model() else { return Ok(None) };
    let generator = RemoteGenerator::new(remote).map_err(|error| Failure::new(Exit::NotConfigured, error))?;
    Ok(Some(Arc::new(generator)))
}

/// An agent for a book and a store of conversations.
pub fn agent(
    book: &Book,
    settings: &Settings,
    sessions: Option<Arc<dyn SessionStore>>,
) -> Result<Agent, Failure> {
    let generator = generator(settings)?;
    Ok(Agent::builder(book.library.clone(), Arc::new(SystemClock))
        .generator(generator)
        .sessions(sessions)
        .meaning(book.meaning.clone())
        .settings(settings.agent.settings())
        .build())
}
