//! Failing ingests and the files they leave behind.

use async_trait::async_trait;
use docent_core::embed::{Purpose, Vector};
use docent_core::testing::LetterEmbedder;

use super::journal::Journal;
use super::*;
use crate::index::contents::{Key, WholeBook};
use crate::index::embedded::FolderTarget;

/// An embedder that omits the last vector of every batch.
struct Forgetful(LetterEmbedder);

#[async_trait]
impl Embedder for Forgetful {
    fn id(&self) -> &EmbedderId {
        self.0.id()
    }

    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.0.count_tokens(text)
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let mut vectors = self.0.embed(texts, purpose).await?;
        vectors.pop();
        Ok(vectors)
    }
}

/// A target on a full disk.
struct Full(FolderTarget);

#[async_trait]
impl IndexTarget for Full {
    async fn published(&self) -> Result<Option<Published>, IndexError> {
        self.0.published().await
    }

    async fn sources(&self) -> Result<Vec<SourceRecord>, IndexError> {
        self.0.sources().await
    }

    async fn vectors(&self) -> Result<HashMap<Key, Vector>, IndexError> {
        self.0.vectors().await
    }

    async fn publish(
        &self,
        _: &BookContents<'_>,
        _: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError> {
        Err(IndexError::Io { context: "cannot write it".into(), source: io::ErrorKind::StorageFull.into() })
    }

    async fn take(&self) -> Result<WholeBook, IndexError> {
        self.0.take().await
    }
}

fn book(folder: &Path, pages: &[&str]) -> Plan {
    for (number, text) in pages.iter().enumerate() {
        fs::write(folder.join(format!("{number}.md")), format!("# Page {number}\n\n{text}\n")).unwrap();
    }
    let location = folder.to_string_lossy().into_owned();
    let source = SourceRecord::new(location);
    Plan { sources: vec![source], language: None, limits: Default::default(), reading: Default::default() }
}

#[tokio::test]
async fn a_missing_vector_aborts_the_ingest() {
    let (pages, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = book(pages.path(), &["A node.", "A topic.", "A service."]);
    let target = FolderTarget { folder: data.path().to_owned() };
    let embedder = Forgetful(LetterEmbedder::default());
    let ended = ingest(data.path(), &target, Some(&embedder), &plan, &()).await;
    assert!(matches!(ended, Err(IngestError::Embed(EmbedError::Unusable(_)))), "{ended:?}");
    assert!(!data.path().join("CURRENT").exists());
}

#[tokio::test]
async fn an_ingest_that_fills_the_disk_removes_its_files() {
    let (pages, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = book(pages.path(), &["A node.", "A topic."]);
    let target = Full(FolderTarget { folder: data.path().to_owned() });
    let embedder = LetterEmbedder::default();
    let ended = ingest(data.path(), &target, Some(&embedder), &plan, &()).await;
    assert!(matches!(ended, Err(IngestError::Index(IndexError::Io { .. }))), "{ended:?}");
    assert!(!data.path().join("journal").exists() && !data.path().join("building").exists());
    // The next ingest has enough space and succeeds.
    assert!(ingest(data.path(), &target.0, Some(&embedder), &plan, &()).await.unwrap().published);
}

#[tokio::test]
async fn a_journal_of_another_book_is_cleared() {
    let (pages, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = data.path().join("journal");
    let stale: Vec<(Key, Vector)> = (0..100).map(|key| (key, vec![0.5; 26])).collect();
    Journal::open(&path, 26).unwrap().append(&stale).unwrap();
    let before = fs::metadata(&path).unwrap().len();
    let plan = book(pages.path(), &["A node."]);
    let target = FolderTarget { folder: data.path().to_owned() };
    let embedder = Forgetful(LetterEmbedder::default());
    ingest(data.path(), &target, Some(&embedder), &plan, &()).await.unwrap_err();
    assert!(fs::metadata(&path).unwrap().len() < before / 10);
}
