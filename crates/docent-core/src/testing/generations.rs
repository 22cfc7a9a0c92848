//! Indexes whose generations change, and the contract for indexes that wrap another one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::{LetterEmbedder, MemoryIndex, chunk, load};
use crate::chunk::Chunk;
use crate::embed::Embedder;
use crate::index::{
    Candidates, Description, Filter, Identity, Index, IndexError, IndexQuery, PageOutline, RowId,
};
use crate::language::Language;

/// An index that counts the calls to the one inside it.
#[derive(Debug)]
pub struct Counting<I> {
    index: I,
    searches: AtomicUsize,
    rows_loaded: AtomicUsize,
    outlines: AtomicUsize,
    descriptions: AtomicUsize,
}

impl<I> Counting<I> {
    /// Wraps an index, with all counts at zero.
    pub fn new(index: I) -> Self {
        let none = AtomicUsize::default;
        Self { index, searches: none(), rows_loaded: none(), outlines: none(), descriptions: none() }
    }

    /// Number of searches.
    pub fn searches(&self) -> usize {
        self.searches.load(Ordering::SeqCst)
    }

    /// Number of rows whose chunks were loaded.
    pub fn rows_loaded(&self) -> usize {
        self.rows_loaded.load(Ordering::SeqCst)
    }

    /// Number of calls of `outline`.
    pub fn outlines(&self) -> usize {
        self.outlines.load(Ordering::SeqCst)
    }

    /// Number of calls of `describe`.
    pub fn descriptions(&self) -> usize {
        self.descriptions.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl<I: Index + 'static> Index for Counting<I> {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        self.searches.fetch_add(1, Ordering::SeqCst);
        self.index.search(query).await
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        self.rows_loaded.fetch_add(rows.len(), Ordering::SeqCst);
        self.index.chunks(rows).await
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        self.index.page(document_id).await
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        self.outlines.fetch_add(1, Ordering::SeqCst);
        self.index.outline().await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        self.index.vocabulary().await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        self.descriptions.fetch_add(1, Ordering::SeqCst);
        self.index.describe().await
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        self.index.identity().await
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        Ok(self)
    }
}

/// An index whose generations are published by a test.
pub struct Published {
    current: Mutex<Option<(Identity, Arc<MemoryIndex>)>>,
    pins: AtomicUsize,
}

impl Published {
    /// An index without a published generation.
    pub fn nothing() -> Self {
        Self { current: Mutex::new(None), pins: AtomicUsize::default() }
    }

    /// Publishes a generation.
    pub fn publish(&self, identity: Identity, index: MemoryIndex) {
        *self.current.lock().unwrap() = Some((identity, Arc::new(index)));
    }

    /// Number of calls of `pinned`.
    pub fn pins(&self) -> usize {
        self.pins.load(Ordering::SeqCst)
    }

    fn current(&self) -> Result<(Identity, Arc<MemoryIndex>), IndexError> {
        self.current.lock().unwrap().clone().ok_or(IndexError::Empty)
    }
}

#[async_trait]
impl Index for Published {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let (identity, index) = self.current()?;
        Ok(Candidates { version: identity.version, ..index.search(query).await? })
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        self.current()?.1.chunks(rows).await
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        self.current()?.1.page(document_id).await
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        self.current()?.1.outline().await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        self.current()?.1.vocabulary().await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        let (Identity { version, embedder, language }, index) = self.current()?;
        Ok(Description { version, embedder, language, ..index.describe().await? })
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        Ok(self.current()?.0)
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        self.pins.fetch_add(1, Ordering::SeqCst);
        let fixed = Mutex::new(Some(self.current()?));
        Ok(Arc::new(Self { current: fixed, pins: AtomicUsize::default() }))
    }
}

/// Checks what every index that wraps another one must do in addition to [`index_contract`]: return the
/// identity without calling `describe`, and pin the inner index when it is pinned itself.
pub async fn decorator_contract(decorate: impl Fn(Arc<dyn Index>) -> Arc<dyn Index>) {
    let identity = |version: &str| Identity {
        version: version.to_owned(),
        embedder: LetterEmbedder::default().id().clone(),
        language: Language::default(),
    };
    let page = |content: &str| {
        let chunk = chunk("page", 0, content);
        MemoryIndex::new(vec![(chunk.clone(), LetterEmbedder::vector(&chunk.embedded_text()))])
    };
    let counted = Arc::new(Counting::new(page("a node")));
    let decorated = decorate(counted.clone());
    assert_eq!(decorated.identity().await.unwrap().version, "memory");
    assert_eq!((counted.descriptions(), counted.outlines()), (0, 0), "the identity is cheap");

    let published = Arc::new(Published::nothing());
    let decorated = decorate(published.clone());
    assert!(matches!(decorated.identity().await, Err(IndexError::Empty)));
    published.publish(identity("g1"), page("old node"));
    let pinned = decorated.clone().pinned().await.unwrap();
    published.publish(identity("g2"), page("new node"));
    for (index, version, content) in [(pinned, "g1", "old node"), (decorated, "g2", "new node")] {
        assert_eq!(index.identity().await.unwrap(), identity(version));
        assert_eq!(index.describe().await.unwrap().version, version);
        assert_eq!(index.page("page").await.unwrap()[0].content, content);
        let everything = Filter::default();
        let query = IndexQuery { text: "node", vector: None, filter: &everything, depth: 1, analyzed: false };
        let found = index.search(&query).await.unwrap();
        assert_eq!(load(&*index, &found.lexical).await.unwrap()[0].content, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_decorator_that_forwards_everything_fulfills_the_contract() {
        struct Through(Arc<dyn Index>);

        #[async_trait]
        impl Index for Through {
            async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
                self.0.search(query).await
            }

            async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
                self.0.chunks(rows).await
            }

            async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
                self.0.page(document_id).await
            }

            async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
                self.0.outline().await
            }

            async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
                self.0.vocabulary().await
            }

            async fn describe(&self) -> Result<Description, IndexError> {
                self.0.describe().await
            }

            async fn identity(&self) -> Result<Identity, IndexError> {
                self.0.identity().await
            }

            async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
                Ok(Arc::new(Self(self.0.clone().pinned().await?)))
            }
        }

        decorator_contract(|index| Arc::new(Through(index))).await;
    }
}
