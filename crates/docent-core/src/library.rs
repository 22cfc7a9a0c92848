//! Provide consistent snapshots of the book while new generations are published.
//!
//! A [`Snapshot`] is one generation of the index, with its embedder, its language and everything computed
//! from it. A turn takes one snapshot and uses it to the end, even if a new generation is published
//! meanwhile.
//!
//! Invariant: a generation becomes current only if the configured embedder made its vectors. Otherwise it is
//! rejected, which is logged once, and the previous generation stays in use.

use std::sync::{Arc, Mutex, PoisonError};

use crate::embed::{Embedder, EmbedderId};
use crate::index::{Identity, Index, IndexError};
use crate::language::Language;
use crate::retrieve::Retriever;

/// One generation of the index, ready to be searched.
pub struct Snapshot {
    identity: Identity,
    /// Whether this is the sample book.
    pub is_sample: bool,
    /// Searches the generation.
    pub retriever: Retriever,
}

/// What the program provides to a library.
pub trait Assemble: Send + Sync {
    /// Creates the retriever for a generation. `index` is pinned to it, and `embedder` made its vectors.
    fn retriever(
        &self,
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        language: Language,
    ) -> Retriever;

    /// Called once for each generation that cannot be used; `still` is the generation that stays in use.
    fn refused(&self, _error: &IndexError, _refused: &Identity, _still: Option<&Identity>) {}
}

/// Provides the current snapshot of a book.
#[derive(Clone)]
pub struct Library {
    parts: Arc<Parts>,
}

struct Parts {
    source: Source,
    held: Mutex<Held>,
    /// Locked by the request that builds the next snapshot.
    moving: futures_util::lock::Mutex<()>,
}

enum Source {
    /// A single snapshot that never changes.
    Fixed,
    /// The latest generation of the index.
    Following { index: Arc<dyn Index>, embedder: Option<Arc<dyn Embedder>>, assembly: Box<dyn Assemble> },
}

#[derive(Default)]
struct Held {
    current: Option<Arc<Snapshot>>,
    /// Used until a book is published.
    sample: Option<Arc<Snapshot>>,
    /// The rejected generation, so that it is checked only once.
    refused: Option<Identity>,
}

impl From<Retriever> for Library {
    /// A library of one book that never changes.
    fn from(retriever: Retriever) -> Self {
        let identity =
            Identity { version: String::new(), embedder: EmbedderId::none(), language: retriever.language() };
        let current = Some(Arc::new(Snapshot { identity, is_sample: false, retriever }));
        Self::new_with(Source::Fixed, Held { current, ..Held::default() })
    }
}

impl Library {
    /// Follows the generations of `index`. Queries are embedded with `embedder`; without one, only keywords
    /// are searched.
    pub fn new(
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        assembly: impl Assemble + 'static,
    ) -> Self {
        Self::new_with(Source::Following { index, embedder, assembly: Box::new(assembly) }, Held::default())
    }

    fn new_with(source: Source, held: Held) -> Self {
        Self { parts: Arc::new(Parts { source, held: Mutex::new(held), moving: Default::default() }) }
    }

    /// Adds a sample book that is used until the first book is published.
    pub async fn with_sample(self, sample: Arc<dyn Index>) -> Result<Self, IndexError> {
        if let Source::Following { embedder, assembly, .. } = &self.parts.source {
            let sample = snapshot(sample.pinned().await?, embedder.as_ref(), assembly.as_ref(), true).await?;
            self.held().sample = Some(Arc::new(sample));
        }
        Ok(self)
    }

    /// The snapshot returned last; none if there was no request yet.
    pub fn last(&self) -> Option<Arc<Snapshot>> {
        let held = self.held();
        held.current.clone().or_else(|| held.sample.clone())
    }

    /// The snapshot of the current generation.
    ///
    /// The first request that sees a new generation builds its snapshot; meanwhile, other requests get the
    /// old one.
    pub async fn current(&self) -> Result<Arc<Snapshot>, IndexError> {
        let Source::Following { index, embedder, assembly } = &self.parts.source else {
            return self.last().ok_or(IndexError::Empty);
        };
        let published = match index.identity().await {
            Err(IndexError::Empty) => return self.held().sample.clone().ok_or(IndexError::Empty),
            published => published?,
        };
        if let Some(known) = self.known(&published, embedder.as_ref()) {
            return known;
        }
        let before = self.held().current.clone();
        let _moving = match (self.parts.moving.try_lock(), before) {
            (Some(moving), _) => moving,
            (None, Some(before)) => return Ok(before),
            (None, None) => self.parts.moving.lock().await,
        };
        // Another request may have built the snapshot meanwhile, or an even newer generation was published.
        let pinned = index.clone().pinned().await?;
        let identity = pinned.identity().await?;
        if let Some(known) = self.known(&identity, embedder.as_ref()) {
            return known;
        }
        match snapshot(pinned, embedder.as_ref(), assembly.as_ref(), false).await {
            Ok(next) => {
                let next = Arc::new(next);
                let mut held = self.held();
                *held = Held { current: Some(next.clone()), sample: None, refused: None };
                Ok(next)
            }
            Err(error @ IndexError::OtherEmbedder { .. }) => {
                let mut held = self.held();
                assembly.refused(&error, &identity, held.current.as_ref().map(|current| &current.identity));
                held.refused = Some(identity);
                held.current.clone().ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The result for a generation that was checked before.
    fn known(
        &self,
        published: &Identity,
        embedder: Option<&Arc<dyn Embedder>>,
    ) -> Option<Result<Arc<Snapshot>, IndexError>> {
        let held = self.held();
        match &held.current {
            Some(current) if current.identity == *published => Some(Ok(current.clone())),
            current if held.refused.as_ref() == Some(published) => match (current, embedder) {
                (Some(current), _) => Some(Ok(current.clone())),
                (None, embedder) => Some(Err(other_embedder(published, embedder))),
            },
            _ => None,
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.parts.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the snapshot of a pinned index.
async fn snapshot(
    index: Arc<dyn Index>,
    embedder: Option<&Arc<dyn Embedder>>,
    assembly: &dyn Assemble,
    is_sample: bool,
) -> Result<Snapshot, IndexError> {
    let identity = index.identity().await?;
    let fitting = match embedder {
        // An index without vectors is searched by keywords only, whatever the embedder.
        Some(embedder) if identity.embedder.width > 0 => {
            if !identity.embedder.accepts(embedder.id()) {
                return Err(other_embedder(&identity, Some(embedder)));
            }
            Some(embedder.clone())
        }
        _ => None,
    };
    let retriever = assembly.retriever(index, fitting, identity.language);
    Ok(Snapshot { identity, is_sample, retriever })
}

fn other_embedder(index: &Identity, running: Option<&Arc<dyn Embedder>>) -> IndexError {
    IndexError::OtherEmbedder {
        made_with: index.embedder.clone(),
        running: running.map_or_else(EmbedderId::none, |embedder| embedder.id().clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;

    use super::*;
    use crate::index::Filter;
    use crate::query::Question;
    use crate::testing::{LetterEmbedder, MemoryIndex, Published, StoppedClock, chunk};

    #[derive(Clone, Default)]
    struct Assembly {
        rejections: Arc<AtomicUsize>,
        made: Arc<AtomicUsize>,
    }

    impl Assemble for Assembly {
        fn retriever(
            &self,
            index: Arc<dyn Index>,
            embedder: Option<Arc<dyn Embedder>>,
            language: Language,
        ) -> Retriever {
            self.made.fetch_add(1, Ordering::SeqCst);
            Retriever::new(index, embedder, language, Default::default(), Arc::new(StoppedClock))
        }

        fn refused(&self, _: &IndexError, _: &Identity, _: Option<&Identity>) {
            self.rejections.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Fixture {
        published: Arc<Published>,
        assembly: Assembly,
        library: Library,
    }

    fn fixture() -> Fixture {
        let (published, assembly) = (Arc::new(Published::nothing()), Assembly::default());
        let embedder: Arc<dyn Embedder> = Arc::new(LetterEmbedder::default());
        let library = Library::new(published.clone(), Some(embedder), assembly.clone());
        Fixture { published, assembly, library }
    }

    fn page(content: &str) -> MemoryIndex {
        let chunk = chunk("page", 0, content);
        let vector = LetterEmbedder::vector(&chunk.embedded_text());
        MemoryIndex::new(vec![(chunk, vector)])
    }

    impl Fixture {
        fn publish(&self, version: &str, embedder: &str) {
            let identity = Identity {
                version: version.to_owned(),
                embedder: EmbedderId { name: embedder.to_owned(), width: 26 },
                language: Language::default(),
            };
            self.published.publish(identity, page(&format!("a node of {version}")));
        }

        async fn answer(&self) -> Result<String, IndexError> {
            let question = Question::new("node", 1, 0.0, Filter::default()).unwrap();
            let found = self.library.current().await?.retriever.search(&question).await.unwrap();
            Ok(found.hits[0].chunk.content.clone())
        }
    }

    #[tokio::test]
    async fn a_snapshot_does_not_change_when_a_new_generation_is_published() {
        let fixture = fixture();
        fixture.publish("g1", "test/letters");
        let before = fixture.library.current().await.unwrap();
        fixture.publish("g2", "test/letters");
        assert_eq!(fixture.answer().await.unwrap(), "a node of g2");
        assert_eq!(before.retriever.version().await.unwrap(), "g1");
        assert_eq!(before.retriever.page("page").await.unwrap()[0].content, "a node of g1");
    }

    #[tokio::test]
    async fn a_generation_from_another_embedder_is_rejected_once_and_the_old_one_stays() {
        let fixture = fixture();
        fixture.publish("g1", "test/letters");
        assert_eq!(fixture.answer().await.unwrap(), "a node of g1");
        fixture.publish("g2", "test/others-of-the-same-width");
        for _ in 0..3 {
            assert_eq!(fixture.answer().await.unwrap(), "a node of g1");
        }
        assert_eq!((fixture.assembly.rejections.load(Ordering::SeqCst), fixture.published.pins()), (1, 2));
        fixture.publish("g3", "test/letters");
        assert_eq!(fixture.answer().await.unwrap(), "a node of g3");
    }

    #[tokio::test]
    async fn without_an_older_generation_a_rejected_one_is_an_error() {
        let fixture = fixture();
        fixture.publish("g1", "test/others-of-the-same-width");
        for _ in 0..2 {
            assert!(matches!(fixture.answer().await, Err(IndexError::OtherEmbedder { .. })));
        }
        assert_eq!(fixture.assembly.rejections.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn the_sample_book_is_used_until_a_book_is_published() {
        let mut fixture = fixture();
        fixture.library = fixture.library.with_sample(Arc::new(page("a sample node"))).await.unwrap();
        assert_eq!(fixture.answer().await.unwrap(), "a sample node");
        assert!(fixture.library.current().await.unwrap().is_sample);
        // If the published book is rejected, the sample book is not used instead.
        fixture.publish("g1", "test/others-of-the-same-width");
        assert!(matches!(fixture.answer().await, Err(IndexError::OtherEmbedder { .. })));
        fixture.publish("g2", "test/letters");
        assert_eq!(fixture.answer().await.unwrap(), "a node of g2");
        assert!(!fixture.library.current().await.unwrap().is_sample);
    }

    #[tokio::test]
    async fn one_request_builds_the_snapshot_and_the_others_do_not_wait() {
        let fixture = fixture();
        fixture.publish("g1", "test/letters");
        fixture.answer().await.unwrap();
        fixture.publish("g2", "test/letters");
        let moving = fixture.library.parts.moving.lock().await;
        let meanwhile = fixture.library.current().now_or_never().expect("it does not wait").unwrap();
        assert_eq!(meanwhile.identity.version, "g1");
        drop(moving);
        let all = futures_util::future::join_all((0..8).map(|_| fixture.library.current())).await;
        assert!(all.into_iter().all(|one| one.unwrap().identity.version == "g2"));
        assert_eq!(fixture.assembly.made.load(Ordering::SeqCst), 2, "one snapshot per generation");
    }
}
