//! Pages of a book that is published nowhere, to read where a citation leads.
//!
//! A book without a base URL has no addresses a browser could open. Served, its pages get one
//! here, and [`Readable`] gives its passages that address.
//!
//! Invariant: a passage's anchor is the id of its section on the page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Response};
use docent_core::chunk::Chunk;
use docent_core::index::{Candidate, Candidates, Description, Index, IndexError, IndexQuery, PageOutline};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use uuid::Uuid;

use super::error::{ApiError, Code};
use super::guard::Visitor;
use super::{Server, html, pages};
use crate::plot::escape;

/// What may not stand in a path as it is; slashes divide folders and stay.
const IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// An index whose unpublished pages are read at `base`.
pub struct Readable {
    /// The book.
    index: Arc<dyn Index>,
    /// Where this server is: `http://127.0.0.1:8080`.
    base: String,
    /// Passages with their address here: making one copies its words, and a search has hundreds.
    made: Mutex<HashMap<Uuid, Arc<Chunk>>>,
}

/// Passages kept; then it begins anew.
const MOST_MADE: usize = 20_000;

impl Readable {
    /// The book, read at `base`.
    pub fn new(index: Arc<dyn Index>, base: String) -> Self {
        Self { index, base, made: Mutex::default() }
    }

    fn readable(&self, chunk: Arc<Chunk>) -> Arc<Chunk> {
        if chunk.url.starts_with("http://") || chunk.url.starts_with("https://") {
            return chunk;
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // An id belongs to a page, a section and its words: the same id is the same passage.
        if let Some(known) = made.get(&chunk.id).filter(|known| known.index == chunk.index) {
            return known.clone();
        }
        if made.len() >= MOST_MADE {
            made.clear();
        }
        let anchor = chunk.url.split_once('#').map(|(_, anchor)| format!("#{anchor}")).unwrap_or_default();
        let page = utf8_percent_encode(&chunk.document_id, IN_PATH);
        let here = Arc::new(Chunk { url: format!("{}/read/{page}{anchor}", self.base), ..(*chunk).clone() });
        made.insert(here.id, here.clone());
        here
    }
}

#[async_trait]
impl Index for Readable {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let mut found = self.index.search(query).await?;
        for candidate in found.lexical.iter_mut().chain(&mut found.dense) {
            *candidate = Candidate { chunk: self.readable(candidate.chunk.clone()), score: candidate.score };
        }
        Ok(found)
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

    async fn describe(&self) -> Result<Description, IndexError> {
        self.index.describe().await
    }
}

/// `GET /read/{page}`: a page of the book as the index has it.
pub async fn read(
    State(server): State<Arc<Server>>,
    _: Visitor,
    page: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path(id) = page?;
    let chunks = server.retriever.page(&id).await?;
    let first = chunks
        .first()
        .ok_or_else(|| ApiError::new(Code::NotFound, format!("There is no page {id} in the book")))?;
    let title = escape(first.title());
    let mut body = format!("<h1>{title}</h1>\n");
    let mut section = None;
    for chunk in &chunks {
        if section != Some(chunk.section) {
            section = Some(chunk.section);
            let anchor = chunk.url.split_once('#').map(|(_, anchor)| escape(anchor)).unwrap_or_default();
            let level = chunk.heading_hierarchy.len().clamp(1, 5) + 1;
            match &chunk.heading {
                Some(heading) => {
                    body.push_str(&format!("<h{level} id=\"{anchor}\">{}</h{level}>\n", escape(heading)));
                }
                None => body.push_str(&format!("<a id=\"{anchor}\"></a>\n")),
            }
        }
        body.push_str(&html::document(&chunk.content));
        body.push('\n');
    }
    let book = escape(&server.title);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title} · {book}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><script src=\"/assets/theme.js\"></script>\
         <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/assets/base.css\"><link rel=\"stylesheet\" href=\"/assets/read.css\"></head>\n\
         <body><main><p><a href=\"/\">Ask {book}</a> · {}</p>\n{body}</main></body>\n</html>\n",
        escape(&first.module_name)
    );
    Ok(([pages::policy()], Html(page)).into_response())
}
