//! Serves the pages of a book that is not published on the web; [`crate::readable`] makes URLs point here.
//!
//! Invariant: the anchor of a passage is the id of its section on the page.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Response};

use super::access::Lookup;
use super::error::ApiError;
use super::{Server, pages};
use crate::plot::escape;

/// `GET /read/{page}`: a page of the book, rendered from the passages in the index.
pub async fn read(
    State(server): State<Arc<Server>>,
    _: Lookup,
    page: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path(id) = page?;
    let book = server.book().await?;
    let rendering = server.rendered.page(&book.retriever, &id).await?;
    // Wide code and tables scroll, also by keyboard. The HTML is ours, so these are all of them.
    let body =
        rendering.body.replace("<pre", "<pre tabindex=\"0\"").replace("<table", "<table tabindex=\"0\"");
    let (title, module) = (escape(&rendering.title), escape(&rendering.module));
    let book = escape(&server.title.now().await);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title} · {book}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><script src=\"/assets/theme.js\"></script>\
         <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/assets/base.css\"><link rel=\"stylesheet\" href=\"/assets/book-page.css\"><link rel=\"stylesheet\" href=\"/assets/read.css\">\
         <link rel=\"stylesheet\" href=\"/assets/look.css\"></head>\n\
         <body><main class=\"book-page\"><p><a href=\"/\">Ask {book}</a> · {module}</p>\n<h1>{title}</h1>\n{body}</main></body>\n</html>\n"
    );
    Ok(([pages::policy()], Html(page)).into_response())
}
