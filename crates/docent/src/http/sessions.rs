//! Conversations over HTTP. Access needs the session key (`owner.rs`); listing all of them needs admin
//! rights.
//!
//! Invariant: at most one page of turns is in memory per request, however long the conversation is.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use docent_core::session::{Session, SessionAccess, SessionError, Turn};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::{Admin, RateLimited};
use super::error::{ApiError, Code, ErrorBody};
use super::owner::{MayRead, Owns, new_secret};
use super::{Server, html};
use crate::conversation::{markdown_head, markdown_turn};

/// Maximum offset of a list.
const MOST_SKIPPED: usize = 1_000_000_000;

/// Maximum length of a title, in characters.
const LONGEST_TITLE: usize = 200;

/// Default number of turns per page.
const PAGE: usize = 50;
/// Maximum number of turns per page.
const LARGEST_PAGE: usize = 100;

/// Conversations, most recently used first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    sessions: Vec<Session>,
}

/// Query parameters of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Listing {
    /// Maximum number of conversations.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// Number of conversations to skip.
    #[param(minimum = 0, maximum = 1_000_000_000)]
    offset: Option<usize>,
}

/// Query parameters for showing a conversation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Showing {
    /// Whether to also return each sentence as sanitized HTML.
    html: Option<bool>,
    /// Maximum number of turns; the most recent ones are returned.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
    /// Only turns before this one; use `earlier` of the previous page.
    #[param(minimum = 1)]
    before: Option<u32>,
}

/// Query parameters for exporting a conversation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Exporting {
    /// `markdown` or `json`.
    #[param(inline)]
    format: Option<ExportFormat>,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    #[default]
    Markdown,
    Json,
}

/// A new title.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Renaming {
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    title: String,
}

/// A conversation with one page of its turns.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionWithTurns {
    #[serde(flatten)]
    session: Session,
    /// Oldest first.
    turns: Vec<Turn>,
    /// Pass it as `before` to get the turns before these; null if there are none.
    #[schema(minimum = 1)]
    earlier: Option<u32>,
    /// Whether the session key gives read-only access.
    read_only: bool,
}

/// An exported conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedSession {
    #[serde(flatten)]
    session: Session,
    /// Oldest first.
    turns: Vec<Turn>,
}

/// A new conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewSession {
    #[serde(flatten)]
    session: Session,
    /// Gives access to the conversation; send it as `X-Docent-Session-Key`. It is shown once and not stored.
    session_key: String,
}

/// A read-only key of a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShareKey {
    /// Send it as `X-Docent-Session-Key`. It is shown once and not stored.
    share_key: String,
}

/// Start a conversation
#[utoipa::path(post, path = "/api/v1/sessions", tag = "conversations",
    responses(
        (status = 201, body = NewSession, description = "The new conversation and its session key"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Origin not allowed"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn create(
    State(server): State<Arc<Server>>,
    _: RateLimited,
) -> Result<(StatusCode, Json<NewSession>), ApiError> {
    let (session_key, owner) = new_secret();
    let access = SessionAccess { owner: Some(owner), share: None };
    let session = server.sessions.create_with(access).await?;
    Ok((StatusCode::CREATED, Json(NewSession { session, session_key })))
}

/// List conversations
///
/// Needs a key with admin rights.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "conversations", params(Listing),
    responses(
        (status = 200, body = SessionList, description = "Conversations, most recently used first"),
        (status = 400, body = ErrorBody, description = "Invalid limit or offset"),
        (status = 401, body = ErrorBody, description = "Missing admin rights"),
        (status = 403, body = ErrorBody, description = "Request from another site's page"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn list(
    State(server): State<Arc<Server>>,
    _: Admin,
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<SessionList>, ApiError> {
    let Query(listing) = listing?;
    let limit = listing.limit.unwrap_or(50);
    if !(1..=1000).contains(&limit) {
        return Err(ApiError::new(
            Code::Validation,
            format!("limit must be between 1 and 1000, got {limit}"),
        ));
    }
    let offset = listing.offset.unwrap_or(0);
    if offset > MOST_SKIPPED {
        return Err(ApiError::new(
            Code::Validation,
            format!("offset must be between 0 and {MOST_SKIPPED}, got {offset}"),
        ));
    }
    let sessions = server.sessions.list(limit, offset).await?;
    Ok(Json(SessionList { sessions }))
}

/// Show a conversation
///
/// Returns the most recent turns. To get the turns before them, pass `earlier` as `before`.
#[utoipa::path(get, path = "/api/v1/sessions/{id}", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation"), Showing),
    responses(
        (status = 200, body = SessionWithTurns, description = "The conversation with one page of turns"),
        (status = 400, body = ErrorBody, description = "Invalid id or page parameters"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn show(
    State(server): State<Arc<Server>>,
    MayRead { id, owns }: MayRead,
    showing: Result<Query<Showing>, QueryRejection>,
) -> Result<Json<SessionWithTurns>, ApiError> {
    let Query(showing) = showing?;
    let limit = showing.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        let message = format!("limit must be between 1 and {LARGEST_PAGE}, got {limit}");
        return Err(ApiError::new(Code::Validation, message));
    }
    if showing.before == Some(0) {
        return Err(ApiError::new(Code::Validation, "before must be at least 1, got 0"));
    }
    let session = server.sessions.get(id).await?;
    // Turns that are added in the meantime are not part of this page.
    let end = showing.before.unwrap_or(u32::MAX).min(session.turn_count.saturating_add(1));
    let mut turns = server.sessions.turns_before(id, end, limit).await?;
    if showing.html.unwrap_or(false) {
        turns.iter_mut().for_each(|turn| html::add(&mut turn.response));
    }
    let first = end.saturating_sub(u32::try_from(turns.len()).unwrap_or(u32::MAX));
    let earlier = (first > 1 && !turns.is_empty()).then_some(first);
    Ok(Json(SessionWithTurns { session, turns, earlier, read_only: !owns }))
}

/// Rename a conversation
#[utoipa::path(patch, path = "/api/v1/sessions/{id}", tag = "conversations", request_body = Renaming,
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation")),
    responses(
        (status = 200, body = Session, description = "The conversation"),
        (status = 400, body = ErrorBody, description = "Invalid id or title"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 413, body = ErrorBody, description = "Payload too large"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn rename(
    State(server): State<Arc<Server>>,
    Owns(id): Owns,
    body: Result<Json<Renaming>, JsonRejection>,
) -> Result<Json<Session>, ApiError> {
    let Json(renaming) = body?;
    let title = renaming.title.trim();
    if title.is_empty() || title.chars().count() > LONGEST_TITLE {
        let message = format!("A title must have 1 to {LONGEST_TITLE} characters");
        return Err(ApiError::new(Code::Validation, message));
    }
    Ok(Json(server.sessions.rename(id, title).await?))
}

/// Delete a conversation
///
/// Permanently deletes the conversation and all its turns.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 400, body = ErrorBody, description = "Invalid id"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn delete(State(server): State<Arc<Server>>, Owns(id): Owns) -> Result<StatusCode, ApiError> {
    server.sessions.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Clear a conversation
///
/// Permanently deletes all turns but keeps the conversation.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/reset", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation")),
    responses(
        (status = 200, body = Session, description = "The conversation, now empty"),
        (status = 400, body = ErrorBody, description = "Invalid id"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn reset(State(server): State<Arc<Server>>, Owns(id): Owns) -> Result<Json<Session>, ApiError> {
    Ok(Json(server.sessions.reset(id).await?))
}

/// Share a conversation
///
/// Returns a read-only key. A conversation has at most one: an earlier read-only key stops working.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/share", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation")),
    responses(
        (status = 200, body = ShareKey, description = "The read-only key"),
        (status = 400, body = ErrorBody, description = "Invalid id"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn share(State(server): State<Arc<Server>>, Owns(id): Owns) -> Result<Json<ShareKey>, ApiError> {
    let (share_key, hash) = new_secret();
    server.sessions.share(id, Some(hash)).await?;
    Ok(Json(ShareKey { share_key }))
}

/// Stop sharing a conversation
#[utoipa::path(delete, path = "/api/v1/sessions/{id}/share", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation")),
    responses(
        (status = 204, description = "The read-only key no longer works"),
        (status = 400, body = ErrorBody, description = "Invalid id"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn unshare(State(server): State<Arc<Server>>, Owns(id): Owns) -> Result<StatusCode, ApiError> {
    server.sessions.share(id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Export a conversation
#[utoipa::path(get, path = "/api/v1/sessions/{id}/export", tag = "conversations",
    params(("id" = Uuid, Path, description = "Conversation id"), ("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation"), Exporting),
    responses(
        (status = 200, description = "The exported conversation", content((String = "text/markdown"), (ExportedSession = "application/json"))),
        (status = 400, body = ErrorBody, description = "Invalid id or format"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn export(
    State(server): State<Arc<Server>>,
    MayRead { id, .. }: MayRead,
    exporting: Result<Query<Exporting>, QueryRejection>,
) -> Result<Response, ApiError> {
    let format = exporting?.0.format.unwrap_or_default();
    let session = server.sessions.get(id).await?;
    let (kind, extension) = match format {
        ExportFormat::Markdown => ("text/markdown; charset=utf-8", "md"),
        ExportFormat::Json => ("application/json", "json"),
    };
    let body = Body::from_stream(exported(server, session, format));
    let mut response = ([(header::CONTENT_TYPE, kind)], body).into_response();
    let name = format!("attachment; filename=\"conversation-{id}.{extension}\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// The file, streamed one page of turns at a time. If the store fails, the download is aborted.
fn exported(
    server: Arc<Server>,
    session: Session,
    format: ExportFormat,
) -> impl Stream<Item = Result<String, SessionError>> {
    let (id, count) = (session.session_id, session.turn_count);
    let page = u32::try_from(PAGE).unwrap_or(u32::MAX);
    let head = stream::once(async move { Ok(format.head(&session)) });
    let pages = stream::iter((0..count).step_by(PAGE)).then(move |done| {
        let server = server.clone();
        async move {
            let last = done.saturating_add(page).min(count);
            let most = usize::try_from(last - done).unwrap_or(PAGE);
            let turns = server.sessions.turns_before(id, last.saturating_add(1), most).await?;
            let turns = turns.iter().zip(done..).map(|(turn, number)| format.turn(turn, number == 0));
            Ok(turns.collect::<String>())
        }
    });
    head.chain(pages).chain(stream::once(async move { Ok(format.end().to_owned()) }))
}

impl ExportFormat {
    fn head(self, session: &Session) -> String {
        match self {
            Self::Markdown => markdown_head(session),
            Self::Json => {
                let text = serde_json::to_string(session).unwrap_or_default();
                format!("{},\"turns\":[", text.strip_suffix('}').unwrap_or(&text))
            }
        }
    }

    fn turn(self, turn: &Turn, is_first: bool) -> String {
        match self {
            Self::Markdown => markdown_turn(turn),
            Self::Json => {
                let comma = if is_first { "" } else { "," };
                format!("{comma}{}", serde_json::to_string(turn).unwrap_or_default())
            }
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Markdown => "",
            Self::Json => "]}",
        }
    }
}
