//! Gives the pages of a book that is not published on the web URLs on this server, so that its citations can be opened.
//!
//! A book without a base URL has no URLs that a browser could open. The server shows its pages under `/read`
//! (`http/read.rs`), and [`Readable`] makes the URLs of its passages point there.
//!
//! The same goes for the images that were copied (`docent_backends::figures`): they are below [`FIGURES`].
//!
//! Invariant: published pages keep their URLs, and an anchor stays the same.

use std::sync::Arc;

use async_trait::async_trait;
use docent_backends::figures;
use docent_core::chunk::Chunk;
use docent_core::index::{
    Candidates, Description, Identity, Index, IndexError, IndexQuery, PageOutline, RowId,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters that must be encoded in a path; slashes stay, because they separate folders.
const IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// Where the server has the copies of images. No page of a book begins with a dot.
pub const FIGURES: &str = "/read/.figure/";

/// An index whose unpublished pages get URLs below `base`.
pub struct Readable {
    /// The wrapped index.
    index: Arc<dyn Index>,
    /// The URL of this server, such as `http://127.0.0.1:8080`.
    base: String,
}

impl Readable {
    /// Wraps an index; its pages get URLs below `base`.
    pub fn new(index: Arc<dyn Index>, base: String) -> Self {
        Self { index, base }
    }

    fn readable(&self, mut chunk: Arc<Chunk>) -> Arc<Chunk> {
        if chunk.figures.iter().any(|figure| figures::copy(figure).is_some()) {
            let mut shown = Arc::unwrap_or_clone(chunk);
            for figure in &mut shown.figures {
                if let Some(name) = figures::copy(figure) {
                    figure.image = format!("{}{FIGURES}{name}", self.base);
                }
            }
            chunk = Arc::new(shown);
        }
        if chunk.url.starts_with("http://") || chunk.url.starts_with("https://") {
            return chunk;
        }
        let anchor = chunk.url.split_once('#').map(|(_, anchor)| format!("#{anchor}")).unwrap_or_default();
        let page = utf8_percent_encode(&chunk.document_id, IN_PATH);
        let url = format!("{}/read/{page}{anchor}", self.base);
        let mut here = Arc::unwrap_or_clone(chunk);
        here.url = url;
        Arc::new(here)
    }
}

#[async_trait]
impl Index for Readable {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        self.index.search(query).await
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let chunks = self.index.chunks(rows).await?;
        Ok(chunks.into_iter().map(|chunk| chunk.map(|chunk| self.readable(chunk))).collect())
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let chunks = self.index.page(document_id).await?;
        Ok(chunks.into_iter().map(|chunk| self.readable(chunk)).collect())
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        let mut outline = self.index.outline().await?;
        for page in &mut outline {
            let name = utf8_percent_encode(&page.document_id, IN_PATH).to_string();
            let here = |url: &str| match url.split_once('#') {
                _ if url.starts_with("http://") || url.starts_with("https://") => url.to_owned(),
                Some((_, anchor)) => format!("{}/read/{name}#{anchor}", self.base),
                None => format!("{}/read/{name}", self.base),
            };
            page.url = here(&page.url);
            page.sections.iter_mut().for_each(|section| section.url = here(&section.url));
        }
        Ok(outline)
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        self.index.vocabulary().await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        self.index.describe().await
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        self.index.identity().await
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        let index = self.index.clone().pinned().await?;
        Ok(Arc::new(Self { index, base: self.base.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use docent_core::testing::{
        LetterEmbedder, MemoryIndex, Published, chunk, decorator_contract, index_contract,
    };

    use super::*;

    #[tokio::test]
    async fn a_readable_index_passes_both_contract_suites() {
        let readable = |index: Arc<dyn Index>| -> Arc<dyn Index> {
            Arc::new(Readable::new(index, "http://127.0.0.1".to_owned()))
        };
        decorator_contract(readable).await;
        index_contract(async |chunks| readable(Arc::new(MemoryIndex::new(chunks)))).await;
    }

    #[tokio::test]
    async fn a_new_title_is_used_even_if_the_text_is_unchanged() {
        let published = Arc::new(Published::nothing());
        let publish = |version: &str, title: &str| {
            let mut page = chunk("page", 0, "The same words.");
            page.url = "page.md#words".to_owned();
            page.page_title = title.to_owned();
            let embedder = docent_core::embed::Embedder::id(&LetterEmbedder::default()).clone();
            let identity = Identity { version: version.to_owned(), embedder, language: Default::default() };
            published.publish(identity, MemoryIndex::new(vec![(page, Vec::new())]));
        };
        let readable = Arc::new(Readable::new(published.clone(), "http://127.0.0.1".to_owned()));
        for (version, title) in [("g1", "Old"), ("g2", "New")] {
            publish(version, title);
            let pinned = readable.clone().pinned().await.unwrap();
            for _ in 0..2 {
                let page = pinned.page("page").await.unwrap();
                assert_eq!(
                    (page[0].page_title.as_str(), page[0].url.as_str()),
                    (title, "http://127.0.0.1/read/page#words")
                );
            }
        }
    }
}
