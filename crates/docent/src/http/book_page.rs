//! Renders the pages of the book from the passages in the index, for `/read` and for the reading pane:
//! `GET /api/v1/page`.
//!
//! Invariant: cached pages belong to one generation of the index. On a page, every section has the anchor of the
//! published page as its id, and every passage is an element with its chunk id.

use std::fmt::Write;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use docent_core::cache::{Cache, Once};
use docent_core::chunk::Chunk;
use docent_core::index::PageOutline;
use docent_core::retrieve::Retriever;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::Lookup;
use super::error::{ApiError, Code, ErrorBody};
use super::figure::with_figures;
use super::{Server, html};
use crate::plot::escape;

/// Cache of rendered pages, so that a page that many users open is rendered once per generation.
pub struct Rendered {
    pages: Cache<PageKey, Arc<Once<Rendering>>>,
}

/// The generation and the id of the page.
type PageKey = (String, String);

/// A page of the book.
pub struct Rendering {
    /// The title, as text.
    pub title: String,
    /// The name of the module, as text.
    pub module: String,
    /// Everything below the title, as HTML.
    pub body: String,
    /// If the page is a PDF: the book's own copy of it.
    pdf: Option<String>,
    sections: Vec<PageSection>,
}

/// Maximum number of cached pages.
const MOST_RENDERED: usize = 32;

impl Default for Rendered {
    fn default() -> Self {
        Self { pages: Cache::new(MOST_RENDERED) }
    }
}

impl Rendered {
    /// The page with this id.
    pub async fn page(&self, retriever: &Retriever, id: &str) -> Result<Arc<Rendering>, ApiError> {
        let key = (retriever.version().await?, id.to_owned());
        let rendering = match self.pages.get(&key) {
            Some(known) => known,
            // Pages that do not exist are not cached: anyone can request an unlimited number of them.
            None if retriever.page(id).await?.is_empty() => return Err(missing(id)),
            None => self.pages.get_or_put(key, Arc::default),
        };
        rendering
            .get_or_make(|| async {
                let chunks = retriever.page(id).await?;
                // Rendering a long page would block other requests.
                tokio::task::spawn_blocking(move || render(&chunks))
                    .await
                    .map_err(|error| ApiError::internal("rendering a page", &error))
            })
            .await
    }
}

fn missing(id: &str) -> ApiError {
    ApiError::new(Code::NotFound, format!("There is no page {id} in the book"))
}

/// Renders the passages of a page in order.
fn render(chunks: &[Arc<Chunk>]) -> Rendering {
    let (mut body, mut sections, mut section) = (String::new(), Vec::new(), None);
    let (mut page, mut path) = ("", None);
    for chunk in chunks {
        if section != Some(chunk.section) {
            section = Some(chunk.section);
            let anchor = chunk.url.split_once('#').map(|(_, anchor)| anchor).unwrap_or_default();
            let mut id = escape(anchor);
            let level = chunk.heading_hierarchy.len().clamp(1, 5) + 1;
            // In a PDF, anchors are pages. A section that goes on there has its heading on the page before.
            let number = anchor.strip_prefix("page=").unwrap_or_default();
            let goes_on = !page.is_empty() && page != number && path == Some(&chunk.heading_hierarchy);
            if number != page {
                page = number;
                let _ = writeln!(body, "<p class=\"pdf-page\" id=\"{id}\">Page {}</p>", escape(number));
            }
            if !number.is_empty() {
                id = format!("section-{}", chunk.section);
            }
            path = Some(&chunk.heading_hierarchy);
            match &chunk.heading {
                _ if goes_on => {}
                Some(heading) => {
                    let _ = writeln!(body, "<h{level} id=\"{id}\">{}</h{level}>", escape(heading));
                    sections.push(PageSection { heading: heading.clone(), level, anchor: anchor.to_owned() });
                }
                None => {
                    let _ = writeln!(body, "<a id=\"{id}\"></a>");
                }
            }
        }
        let _ = writeln!(
            body,
            "<div data-chunk=\"{}\">{}</div>",
            chunk.id,
            with_figures(html::document(&chunk.content), &chunk.figures)
        );
    }
    let title = chunks.first().map(|chunk| chunk.title().to_owned()).unwrap_or_default();
    let module = chunks.first().map(|chunk| chunk.module_name.clone()).unwrap_or_default();
    let pdf = chunks.first().and_then(|chunk| chunk.pdf.clone());
    Rendering { title, module, body, pdf, sections }
}

/// Query parameters of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// `document_id` of a source, a search result or another page.
    id: String,
}

/// A page of the book.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page {
    /// Id of the page.
    document_id: String,
    /// Title of the page.
    title: String,
    /// URL of the published page; of this server if the book is not published.
    url: String,
    /// Name of the book; omitted if the index has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    book_name: String,
    /// Name of the module.
    module_name: String,
    /// Name of the version; null if the book has no versions.
    version: Option<String>,
    /// Code of the locale; null if the book has only one.
    locale: Option<String>,
    /// The text as HTML without the title. Headings have the anchors of the published page as ids; each passage is a
    /// `div` with its id in `data-chunk`.
    html: String,
    /// The headings, in order.
    sections: Vec<PageSection>,
    /// Only for PDFs: address of the pages as images, on this server. Append the number of the page and `.svg`.
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn_pages: Option<String>,
    /// The page before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Neighbor>,
    /// The page after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Neighbor>,
    /// Version of the index.
    index_version: String,
}

/// A heading of a page.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PageSection {
    /// The heading, as text.
    heading: String,
    /// 2 for a section, 3 for a section in it, and so on.
    level: usize,
    /// Anchor on the published page; empty if it has none.
    anchor: String,
}

/// The page before or after another one.
#[derive(Debug, Serialize, ToSchema)]
pub struct Neighbor {
    /// Id of the page.
    document_id: String,
    /// Title of the page.
    title: String,
}

/// Read a page
///
/// The text of a page as HTML, its headings, and the pages before and after it.
#[utoipa::path(get, path = "/api/v1/page", tag = "book", params(Wanted),
    responses(
        (status = 200, body = Page, description = "The page"),
        (status = 400, body = ErrorBody, description = "Invalid parameter"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 404, body = ErrorBody, description = "There is no such page"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "The index is unavailable, or the server is overloaded")
    ))]
pub async fn page(
    State(server): State<Arc<Server>>,
    _: Lookup,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Page>, ApiError> {
    let Query(Wanted { id }) = wanted?;
    let book = server.book().await?;
    let retriever = &book.retriever;
    let rendering = server.rendered.page(retriever, &id).await?;
    let outline = retriever.outline().await?;
    let place = outline.iter().position(|page| page.document_id == id).ok_or_else(|| missing(&id))?;
    let here = &outline[place];
    let neighbor = |place: Option<usize>| {
        let page = outline
            .get(place?)
            .filter(|page| page.book_name == here.book_name && page.edition == here.edition)?;
        let PageOutline { document_id, title, .. } = page.clone();
        Some(Neighbor { document_id, title })
    };
    Ok(Json(Page {
        title: rendering.title.clone(),
        url: here.url.clone(),
        book_name: here.book_name.clone(),
        module_name: here.module_name.clone(),
        version: here.edition.version.clone(),
        locale: here.edition.locale.clone(),
        html: rendering.body.clone(),
        sections: rendering.sections.clone(),
        drawn_pages: rendering.pdf.as_deref().and_then(|pdf| server.drawings.address(pdf)),
        previous: neighbor(place.checked_sub(1)),
        next: neighbor(Some(place + 1)),
        index_version: retriever.version().await?,
        document_id: id,
    }))
}
