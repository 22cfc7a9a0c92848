//! Serves the chat page, the widget and the API documentation, all embedded in the binary.
//!
//! Invariant: no page loads anything from another server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
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

type At = State<Arc<Server>>;

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
        .route("/", get(async |State(server): At, headers: HeaderMap| server.look.page(&headers)))
        .route(
            "/assets/look.css",
            get(async |State(server): At, headers: HeaderMap| server.look.style(&headers)),
        )
        .route("/assets/logo", get(async |State(server): At| server.look.logo()))
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
    let mut response = if accepts_gzip(headers) {
        // Another representation has another tag.
        let tag = asset.tag.replacen('"', "\"gzip-", 1);
        let mut response = tagged(asset.kind, asset.gzip.clone(), &tag, headers);
        if response.status() == StatusCode::OK {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    } else {
        tagged(asset.kind, asset.content.clone(), &asset.tag, headers)
    };
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    Ok(response)
}

/// Whether a client takes gzip; `gzip;q=0` says that it does not.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let named = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && quality.parse::<f32>().is_ok_and(|quality| quality > 0.0)
    })
}

/// A text that only changes with the settings.
pub fn text(kind: &str, content: &str, headers: &HeaderMap) -> Response {
    tagged(kind, content.to_owned(), &assets::tag(content), headers)
}

fn tagged(kind: &str, content: impl IntoResponse, tag: &str, headers: &HeaderMap) -> Response {
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [policy()]).into_response();
    }
    let described = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache"), (header::ETAG, tag)];
    (described, [policy()], content).into_response()
}
