//! Puts the parts together as configured. The only file that names concrete types.

use std::sync::Arc;

use docent_backends::clock::SystemClock;
use docent_backends::embed::local::LocalEmbedder;
use docent_backends::embed::remote::RemoteEmbedder;
use docent_backends::generate::remote::RemoteGenerator;
use docent_backends::index::embedded::{EmbeddedIndex, FolderShelf};
use docent_backends::index::qdrant::QdrantIndex;
use docent_backends::index::shelf::Shelf;
use docent_backends::rerank::cohere::CohereReranker;
use docent_backends::rerank::onnx::OnnxReranker;
use docent_backends::session::memory::MemorySessions;
use docent_backends::session::sql::{Examination, Place, SqlSessions};
use docent_core::agent::{Agent, AskError};
use docent_core::embed::{EmbedError, Embedder, EmbedderId};
use docent_core::generate::Generator;
use docent_core::index::{Description, Index, IndexError, NoSuchPart};
use docent_core::log::TurnLog;
use docent_core::rerank::{RerankError, Reranker};
use docent_core::retrieve::{RetrieveError, Retriever};
use docent_core::session::{SessionError, SessionStore};

use crate::exit::{Exit, Failure, nearest};
use crate::http::read::Readable;
use crate::output::{FAINT, Output};
use crate::sample;
use crate::settings::{EmbedderKind, IndexKind, RerankerKind, SessionsKind, Settings};

/// A book that can be searched.
pub struct Book {
    /// What it holds.
    pub description: Description,
    /// Whether it is the sample book.
    pub is_sample: bool,
    /// Finds passages.
    pub retriever: Retriever,
    /// Compares meanings when answers are checked.
    pub meaning: Option<Arc<dyn Embedder>>,
}

impl Book {
    /// Says so when it is the sample book that answers.
    pub fn announce(&self, output: &Output) {
        if self.is_sample {
            output.note(format!(
                "{FAINT}no book ingested yet: the sample book answers (docent ingest FOLDER reads yours){FAINT:#}"
            ));
        }
    }

    /// What readers see as its name.
    pub fn title(&self, settings: &Settings) -> String {
        if let Some(title) = settings.serve.title.as_ref().filter(|title| !title.is_empty()) {
            return title.clone();
        }
        if self.is_sample {
            return "Physical AI, the sample book".to_owned();
        }
        let books: Vec<&str> = self.description.books.keys().map(String::as_str).collect();
        if let [others @ .., last] = books.as_slice() {
            return if others.is_empty() {
                (*last).to_owned()
            } else {
                format!("{} and {last}", others.join(", "))
            };
        }
        let location = self.description.sources.first().map(String::as_str).unwrap_or_default();
        let folder = location.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        let host =
            settings.book.base_url.as_deref().and_then(|url| url.split("://").nth(1)?.split('/').next());
        host.or(folder).filter(|name| !name.is_empty()).unwrap_or("The book").to_owned()
    }
}

/// The embedder that is configured; none searches by keywords alone.
pub async fn embedder(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    if let Some(remote) = settings.remote_embedder() {
        let embedder = RemoteEmbedder::connect(remote).await.map_err(embed_failure)?;
        return Ok(Some(Arc::new(embedder)));
    }
    if settings.embedder.kind() == EmbedderKind::None {
        return Ok(None);
    }
    // Reading a model takes a while; what else is under way goes on.
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
    let embedder = read.await.map_err(|_| Failure::new(Exit::Failed, "the embedder could not be loaded"))?;
    Ok(Some(Arc::new(embedder.map_err(embed_failure)?)))
}

/// The reranker that is configured; none leaves the ranking as it is.
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
            let read =
                read.await.map_err(|_| Failure::new(Exit::Failed, "the reranker could not be loaded"))?;
            Some(Arc::new(read.map_err(rerank_failure)?))
        }
    })
}

/// A retriever with the reranker that is configured.
pub async fn reranked(retriever: Retriever, settings: &Settings) -> Result<Retriever, Failure> {
    Ok(match reranker(settings).await? {
        Some(reranker) => retriever.with_reranker(reranker, settings.reranker.candidates),
        None => retriever,
    })
}

/// The ingested book, or the sample book when there is none.
pub async fn book(settings: &Settings) -> Result<Book, Failure> {
    book_read_at(settings, None).await
}

/// The same for a server at `base`, where pages that are published nowhere can be read.
pub async fn book_read_at(settings: &Settings, base: Option<String>) -> Result<Book, Failure> {
    let (opened, embedder) = match settings.index_kind() {
        IndexKind::Embedded => embedded(settings).await?,
        IndexKind::Qdrant => on_server(settings).await?,
    };
    let (index, description, is_sample) = match opened {
        Ok((index, description)) => (index, description, false),
        Err(IndexError::Empty) => {
            let index: Arc<dyn Index> = Arc::new(sample_index(embedder.as_deref())?);
            let description = index.describe().await.map_err(index_failure)?;
            (index, description, true)
        }
        Err(error) => return Err(index_failure(error)),
    };
    let meaning = embedder.clone().filter(|_| settings.embedder.kind() == EmbedderKind::Local);
    let embedder = matching(embedder, &description)?;
    let index: Arc<dyn Index> = match base {
        Some(base) => Arc::new(Readable::new(index, base)),
        None => index,
    };
    let retriever = Retriever::new(
        index,
        embedder,
        description.language,
        settings.retrieval.settings(),
        Arc::new(SystemClock),
    );
    let retriever = reranked(retriever, settings).await?;
    Ok(Book { description, is_sample, retriever, meaning })
}

/// An index that may not be there, and the embedder for it.
type Opened = (Result<(Arc<dyn Index>, Description), IndexError>, Option<Arc<dyn Embedder>>);

async fn embedded(settings: &Settings) -> Result<Opened, Failure> {
    let folder = settings.index_folder()?;
    // The model and the index are read at the same time: both matter to a cold start.
    let opening = tokio::task::spawn_blocking(move || EmbeddedIndex::open(&folder));
    let embedder = embedder(settings).await?;
    let opened = opening.await.map_err(|_| Failure::new(Exit::Failed, "the index could not be opened"))?;
    let described = match opened {
        Ok(index) => {
            index.describe().await.map(|description| (Arc::new(index) as Arc<dyn Index>, description))
        }
        Err(error) => Err(error),
    };
    Ok((described, embedder))
}

/// On a server the collection comes first: its vectors may say which embedder they want.
async fn on_server(settings: &Settings) -> Result<Opened, Failure> {
    let index = qdrant(settings)?;
    let described = index.describe().await;
    if let (Err(IndexError::Empty), Some(name)) = (&described, &settings.qdrant.collection_name) {
        // The sample book would not do for a collection that was asked for by name.
        return Err(missing_collection(name, &index).await);
    }
    let embedder = match &described {
        Ok(description) => embedder(&settings.fitting(&description.embedder)?).await?,
        Err(_) => embedder(settings).await?,
    };
    Ok((described.map(|description| (Arc::new(index) as Arc<dyn Index>, description)), embedder))
}

/// The index on the configured server.
pub fn qdrant(settings: &Settings) -> Result<QdrantIndex, Failure> {
    QdrantIndex::new(settings.qdrant()?).map_err(index_failure)
}

async fn missing_collection(name: &str, index: &QdrantIndex) -> Failure {
    let there = index.collections().await.unwrap_or_default();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let message = format!("Qdrant has no collection or alias `{name}`, or it is empty (there are: {there})");
    Failure::new(Exit::NotConfigured, message)
        .hint("run `docent ingest FOLDER`, or set QDRANT_COLLECTION_NAME")
}

/// Who made the vectors of a collection that does not say; none where it does.
pub async fn maker(settings: &Settings) -> Result<Option<EmbedderId>, Failure> {
    let description = qdrant(settings)?.describe().await.map_err(index_failure)?;
    if !description.embedder.is_unknown() {
        return Ok(None);
    }
    let embedder = embedder(&settings.fitting(&description.embedder)?).await?;
    Ok(matching(embedder, &description)?.map(|embedder| embedder.id().clone()))
}

/// Where an ingest puts the book.
pub fn shelf(settings: &Settings) -> Result<Box<dyn Shelf>, Failure> {
    shelf_of(settings, settings.index_kind())
}

/// The same for an index that may not be the one that is configured.
pub fn shelf_of(settings: &Settings, kind: IndexKind) -> Result<Box<dyn Shelf>, Failure> {
    Ok(match kind {
        IndexKind::Embedded => Box::new(FolderShelf { folder: settings.index_folder()? }),
        IndexKind::Qdrant => Box::new(qdrant(settings)?),
    })
}

fn sample_index(embedder: Option<&dyn Embedder>) -> Result<EmbeddedIndex, Failure> {
    match embedder {
        Some(embedder) => sample::index(Some(embedder), embedder),
        // Passages are cut by the bundled model's tokens whether or not it embeds them.
        None => sample::index(None, &LocalEmbedder::bundled().map_err(embed_failure)?),
    }
}

/// The embedder, if it is the one that made the index's vectors.
pub fn matching(
    embedder: Option<Arc<dyn Embedder>>,
    index: &Description,
) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    match embedder {
        Some(embedder) if index.embedder.width > 0 => {
            if index.embedder.accepts(embedder.id()) {
                return Ok(Some(embedder));
            }
            let message =
                format!("the index was made with {}, but {} is configured", index.embedder, embedder.id());
            let hint = match index.embedder.is_unknown() {
                true => "set embedder.kind and embedder.model to what made the vectors".to_owned(),
                false => {
                    let way_back = way_back(&index.embedder);
                    format!("run `docent ingest` to embed the book again, or set {way_back}")
                }
            };
            Err(Failure::new(Exit::NotConfigured, message).hint(hint))
        }
        // An index without vectors, or no embedder: keywords alone.
        _ => Ok(None),
    }
}

/// The settings an index was made with.
fn way_back(id: &EmbedderId) -> String {
    let (kind, model) = id.name.split_once('/').unwrap_or((&id.name, ""));
    // After a plus comes what prefixes there were.
    let model = model.split('+').next().unwrap_or_default();
    match kind {
        "local" => "embedder.kind = \"local\"".to_owned(),
        "onnx" => "embedder.kind = \"onnx\" and the folder it was made with".to_owned(),
        kind => format!("embedder.kind = \"{kind}\" and embedder.model = \"{model}\""),
    }
}

/// What is remembered: conversations for readers, turns for the owner.
pub struct Stores {
    /// Conversations.
    pub sessions: Arc<dyn SessionStore>,
    /// Turns without their readers.
    pub log: Arc<dyn TurnLog>,
}

/// The stores, which are one place.
pub async fn stores(settings: &Settings) -> Result<Stores, Failure> {
    match settings.sessions.kind {
        SessionsKind::Memory => {
            let memory = Arc::new(MemorySessions::default());
            Ok(Stores { sessions: memory.clone(), log: memory })
        }
        SessionsKind::Sqlite | SessionsKind::Postgres => {
            let place = sessions_place(settings, settings.sessions.kind)?;
            let sql = Arc::new(sql_sessions(&place).await?);
            Ok(Stores { sessions: sql.clone(), log: sql })
        }
    }
}

/// Where conversations of this kind are kept.
pub fn sessions_place(settings: &Settings, kind: SessionsKind) -> Result<Place, Failure> {
    match kind {
        SessionsKind::Sqlite => Ok(Place::File(settings.data_dir()?.join("sessions.sqlite"))),
        SessionsKind::Postgres => Ok(Place::Postgres(settings.sessions.address()?)),
        SessionsKind::Memory => Err(Failure::usage("conversations in memory go with the program")),
    }
}

/// The store at a place.
pub async fn sql_sessions(place: &Place) -> Result<SqlSessions, Failure> {
    SqlSessions::open_at(place).await.map_err(session_failure)
}

/// What can be said of the store at a place without changing it.
pub async fn examine_sessions(place: &Place) -> Result<Examination, Failure> {
    SqlSessions::examine(place).await.map_err(session_failure)
}

/// The store of conversations.
pub async fn sessions(settings: &Settings) -> Result<Arc<dyn SessionStore>, Failure> {
    Ok(stores(settings).await?.sessions)
}

/// The model that writes answers; none when answers are extractive.
pub fn generator(settings: &Settings) -> Result<Option<Arc<dyn Generator>>, Failure> {
    let Some(remote) = settings.remote_model() else { return Ok(None) };
    let generator = RemoteGenerator::new(remote).map_err(|error| Failure::new(Exit::NotConfigured, error))?;
    Ok(Some(Arc::new(generator)))
}

/// An agent over a book, with the conversations it remembers.
pub fn agent(
    book: &Book,
    settings: &Settings,
    sessions: Option<Arc<dyn SessionStore>>,
) -> Result<Agent, Failure> {
    let generator = generator(settings)?;
    Ok(Agent::new(
        book.retriever.clone(),
        generator,
        sessions,
        book.meaning.clone(),
        Arc::new(SystemClock),
        settings.agent.settings(),
    ))
}

/// A session error as the user sees it.
pub fn session_failure(error: SessionError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        SessionError::NotFound(_) => failure.hint("`docent sessions list` shows those there are"),
        SessionError::Unavailable(_) => Failure { exit: Exit::Unavailable, ..failure },
        _ => failure,
    }
}

/// A failed turn as the user sees it.
pub fn ask_failure(error: AskError) -> Failure {
    match error {
        AskError::Invalid(error) => Failure::usage(error),
        AskError::NoSuchPart(error) => no_such_part(error),
        AskError::Retrieve(error) => retrieve_failure(error),
        AskError::Session(error) => session_failure(error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// A book or module that is not there is a slip; names the one that was meant.
pub fn no_such_part(error: NoSuchPart) -> Failure {
    let failure = Failure::usage(&error);
    let (name, known, what) = match error {
        NoSuchPart::Module { name, known, .. } => (name, known, "modules"),
        NoSuchPart::Book { name, known } => (name, known, "books"),
    };
    match nearest(&name, known.iter().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => failure.hint("the index has one book, without a name"),
        None if known.len() > MOST_NAMED => {
            let some = known[..MOST_NAMED].join(", ");
            failure.hint(format!("its {what} are {some} and others; `docent modules` shows all"))
        }
        None => failure.hint(format!("its {what} are {}", known.join(", "))),
    }
}

/// Names in a hint.
const MOST_NAMED: usize = 12;

/// An index error as the user sees it.
pub fn index_failure(error: IndexError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        IndexError::Empty => {
            Failure { exit: Exit::NotConfigured, ..failure }.hint("run `docent ingest FOLDER`")
        }
        IndexError::Damaged(_) | IndexError::OtherFormat { .. } => {
            failure.hint("`docent ingest` reads the same sources again and builds it anew")
        }
        IndexError::Unavailable(_) => Failure { exit: Exit::Unavailable, ..failure },
        IndexError::Unusable(_) | IndexError::Gone(_) => Failure { exit: Exit::NotConfigured, ..failure },
        IndexError::WrongWidth { .. } => Failure { exit: Exit::NotConfigured, ..failure }
            .hint("run `docent ingest` to embed the book again"),
        IndexError::Io { source, .. } => disk_hint(failure, &source),
        _ => failure,
    }
}

fn disk_hint(failure: Failure, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => failure
            .hint("free some space and run the same command again: what was done is kept, and the old index still answers"),
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint("check who may write there, or choose another folder with --data-dir")
        }
        _ => failure,
    }
}

/// An embedder error as the user sees it.
pub fn embed_failure(error: EmbedError) -> Failure {
    let exit = match error {
        EmbedError::Unavailable(_) => Exit::Unavailable,
        EmbedError::Unusable(_) => Exit::NotConfigured,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// A reranker error as the user sees it.
pub fn rerank_failure(error: RerankError) -> Failure {
    let exit = match error {
        RerankError::Unavailable(_) => Exit::Unavailable,
        _ => Exit::NotConfigured,
    };
    Failure::new(exit, error)
}

/// A retrieval error as the user sees it.
pub fn retrieve_failure(error: RetrieveError) -> Failure {
    match error {
        RetrieveError::Embed(error) => embed_failure(error),
        RetrieveError::Index(error) => index_failure(error),
        other => Failure::new(Exit::Failed, other),
    }
}
