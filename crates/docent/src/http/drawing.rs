//! The pages of PDFs as they are printed: `GET /read/.pdf/{name}/{page}.svg`, and where words are on them:
//! `GET /api/v1/page/words`.
//!
//! Invariant: a PDF is only read in a process with limits (`source/pdf/drawing.rs`), and a drawing cannot run scripts or
//! request anything, even if a user opens its address.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use docent_backends::figures;
use docent_backends::source::pdf::drawing::{Area, Drawing, PdfDrawer, areas};
use docent_backends::source::pdf::this_program;
use docent_core::cache::Cache;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Server;
use super::access::Viewer;
use super::error::{ApiError, Code, ErrorBody};
use super::limits::Permits;

/// Where the drawn pages are. No page of a book begins with a dot.
const PDFS: &str = "/read/.pdf/";

/// Images of a page are part of its drawing.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

/// Maximum number of pages that are drawn at the same time; one client gets half of them.
const MOST_AT_ONCE: usize = 2;

/// Maximum number of requests that wait for a drawing, and how long they wait.
const MOST_WAITING: usize = 64;
/// See [`MOST_WAITING`].
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Maximum number of drawings in memory; each has a few hundred kilobytes, and at most eight megabytes.
const MOST_KEPT: usize = 16;

/// Maximum number of pages that are known to be impossible to draw.
const MOST_FAILED: usize = 1024;

/// Maximum page number.
const LAST_PAGE: u32 = 5_000;

/// Maximum length of the words to find, in characters.
const MOST_CHARACTERS: usize = 4_000;

/// File name of the copy of a PDF, and the number of a page.
type PageKey = (String, u32);

/// Draws pages, and keeps the last ones.
pub struct Drawings {
    drawer: Option<PdfDrawer>,
    /// The folder of the index, which has the copies of the PDFs.
    folder: Option<PathBuf>,
    permits: Permits,
    kept: Cache<PageKey, Arc<Drawing>>,
    failed: Cache<PageKey, ()>,
}

impl Drawings {
    /// Draws the PDFs of this index.
    pub fn new(folder: Option<PathBuf>) -> Self {
        let program =
            this_program().inspect_err(|error| tracing::warn!(%error, "pages of PDFs are not drawn"));
        Self {
            drawer: program.ok().map(|program| PdfDrawer::new(program, vec!["draw-pdf".into()])),
            folder,
            permits: Permits::new(MOST_AT_ONCE, MOST_WAITING, LONGEST_WAIT),
            kept: Cache::new(MOST_KEPT),
            failed: Cache::new(MOST_FAILED),
        }
    }

    /// Where the pages of a PDF are; none if the book has no copy of it on this machine.
    pub fn address(&self, pdf: &str) -> Option<String> {
        figures::pdf(self.folder.as_deref()?, pdf).map(|_| format!("{PDFS}{pdf}/"))
    }

    /// The drawing, if this page was drawn; `Some(None)` if that failed.
    fn known(&self, key: &PageKey) -> Option<Option<Arc<Drawing>>> {
        self.kept.get(key).map(Some).or_else(|| self.failed.get(key).map(|()| None))
    }

    async fn page(&self, client: &str, pdf: &str, number: u32) -> Result<Arc<Drawing>, ApiError> {
        let missing = || ApiError::new(Code::NotFound, "There is no such page, or it cannot be drawn");
        let (Some(folder), Some(drawer)) = (&self.folder, &self.drawer) else { return Err(missing()) };
        let file =
            figures::pdf(folder, pdf).filter(|_| (1..=LAST_PAGE).contains(&number)).ok_or_else(missing)?;
        let key = (pdf.to_owned(), number);
        if let Some(known) = self.known(&key) {
            return known.ok_or_else(missing);
        }
        let busy = || {
            ApiError::new(Code::Overloaded, "Too many pages are being drawn; please try again in a moment")
        };
        let _permit =
            self.permits.acquire(client).await.ok_or_else(|| busy().retry_after(LONGEST_WAIT.as_secs()))?;
        // Another request may have drawn it in the meantime.
        if let Some(known) = self.known(&key) {
            return known.ok_or_else(missing);
        }
        let drawer = drawer.clone();
        let drawn = tokio::task::spawn_blocking(move || drawer.draw(&file, number as usize)).await;
        let drawn = drawn.map_err(|error| ApiError::internal("drawing a page", &error))?;
        match drawn.map_err(|error| ApiError::internal("drawing a page", &error))? {
            Some(drawing) => {
                let drawing = Arc::new(drawing);
                self.kept.put(key, drawing.clone());
                Ok(drawing)
            }
            None => {
                self.failed.put(key, ());
                Err(missing())
            }
        }
    }
}

/// A drawn page, as an SVG file.
pub async fn drawing(
    State(server): State<Arc<Server>>,
    Viewer { client }: Viewer,
    place: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path((pdf, file)) = place?;
    let number = file.strip_suffix(".svg").and_then(|number| number.parse().ok());
    let number: u32 = number.ok_or_else(|| ApiError::new(Code::NotFound, "There is no such page"))?;
    let drawing = server.drawings.page(&client, &pdf, number).await?;
    let described = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        // The name depends on the content.
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    Ok((described, drawing.svg.clone()).into_response())
}

/// Query parameters of words on a page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// `document_id` of a PDF.
    id: String,
    /// Number of the page, from 1.
    page: u32,
    /// The words, as text. If they are not on the page in one piece, each line is searched for alone.
    words: String,
}

/// Where words are on a page of a PDF.
#[derive(Debug, Serialize, ToSchema)]
pub struct Words {
    /// Width of the page, in points.
    width: f32,
    /// Height of the page, in points.
    height: f32,
    /// One rectangle or more for each line of the words; empty if they were not found.
    boxes: Vec<WordBox>,
}

/// A rectangle on a page, as fractions of its width and height.
#[derive(Debug, Serialize, ToSchema)]
pub struct WordBox {
    /// Distance from the left side of the page.
    left: f32,
    /// Distance from the upper side of the page.
    top: f32,
    /// Width.
    width: f32,
    /// Height.
    height: f32,
}

impl From<Area> for WordBox {
    fn from(area: Area) -> Self {
        Self { left: area.left, top: area.top, width: area.right - area.left, height: area.bottom - area.top }
    }
}

/// Find words on a page of a PDF
///
/// The size of the page and the rectangles of the words on it, for a page that has `drawn_pages`.
#[utoipa::path(get, path = "/api/v1/page/words", tag = "book", params(Wanted),
    responses(
        (status = 200, body = Words, description = "The page and the rectangles"),
        (status = 400, body = ErrorBody, description = "Invalid parameter"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 404, body = ErrorBody, description = "There is no such page, or it cannot be drawn"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "The page could not be drawn"),
        (status = 503, body = ErrorBody, description = "The index is unavailable, or the server is overloaded")
    ))]
pub async fn words(
    State(server): State<Arc<Server>>,
    Viewer { client }: Viewer,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Words>, ApiError> {
    let Query(Wanted { id, page, words }) = wanted?;
    let chunks = server.book().await?.retriever.page(&id).await?;
    let pdf = chunks.first().and_then(|chunk| chunk.pdf.as_deref());
    let missing = || ApiError::new(Code::NotFound, format!("There is no PDF {id} in the book"));
    let drawing = server.drawings.page(&client, pdf.ok_or_else(missing)?, page).await?;
    let (width, height) = (drawing.width, drawing.height);
    let words: String = words.chars().take(MOST_CHARACTERS).collect();
    let found = tokio::task::spawn_blocking(move || areas(&drawing.letters, &words)).await;
    let found = found.map_err(|error| ApiError::internal("finding words", &error))?;
    Ok(Json(Words { width, height, boxes: found.into_iter().map(WordBox::from).collect() }))
}
