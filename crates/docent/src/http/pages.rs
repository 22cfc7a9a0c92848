//! Serves the chat page, the widget and the API documentation, all embedded in the binary.
//!
//! Invariant: no page loads anything from another server.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::error::{ApiError, Code};
use super::{Server, assets};

const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

/// The content security policy of every page.
pub fn policy() -> (axum::http::HeaderName, &'static str) {
    (header::CONTENT_SECURITY_POLICY, PAGE_POLICY)
}

/// The routes of pages and static files.
pub fn routes(description: utoipa::openapi::OpenApi) -> Router<Arc<Server>> {
    let docs = SwaggerUi::new("/docs")
        .url("/openapi.json", description)
        .config(Config::default().use_base_layout().try_it_out_enabled(true));
    let docs: Router<Arc<Server>> = Router::from(docs);
    let docs = docs.layer(axum::middleware::map_response(async |mut response: Response| {
        let policy = HeaderValue::from_static(PAGE_POLICY);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        response
    }));
    Router::new()
        .route("/", get(async |headers: HeaderMap| file("index.html", &headers)))
        .route("/widget.js", get(async |headers: HeaderMap| file("widget.js", &headers)))
        .route("/docsearch.js", get(async |headers: HeaderMap| file("docsearch.js", &headers)))
        .route(
            "/assets/{name}",
            get(async |Path(name): Path<String>, headers: HeaderMap| file(&name, &headers)),
        )
        .merge(docs)
}

fn file(name: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let asset = assets::get(name).ok_or_else(|| ApiError::new(Code::NotFound, "Not found"))?;
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == asset.tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [policy()]).into_response());
    }
    let described = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, asset.tag.as_str()),
    ];
    Ok((described, [policy()], asset.content.as_str()).into_response())
}
