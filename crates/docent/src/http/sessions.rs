//! Conversations over HTTP. Whoever knows an id may use it; listing them takes more.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use docent_core::session::{Session, Turn};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::error::{ApiError, Code, ErrorBody};
use super::guard::{Admin, Reader, Visitor};
use super::{Server, html};
use crate::commands::sessions::Conversation;

/// The most sessions a list skips.
const MOST_SKIPPED: usize = 1_000_000_000;

/// The longest title.
const LONGEST_TITLE: usize = 200;

type Id = Result<Path<Uuid>, PathRejection>;

/// Sessions, the last used first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    sessions: Vec<Session>,
}

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Listing {
    /// How many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// How many to skip.
    #[param(minimum = 0, maximum = 1_000_000_000)]
    offset: Option<usize>,
}

/// How to show a conversation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Showing {
    /// Whether each sentence is also wanted as safe HTML.
    html: Option<bool>,
}

/// How to export a conversation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Exporting {
    /// `markdown` or `json`.
    #[param(inline)]
    format: Option<ExportFormat>,
}

/// How an export looks.
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

/// A conversation with its turns.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionWithTurns {
    #[serde(flatten)]
    session: Session,
    turns: Vec<Turn>,
}

/// Start a conversation
#[utoipa::path(post, path = "/api/v1/sessions", tag = "conversations",
    responses(
        (status = 201, body = Session, description = "The new conversation"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn create(
    State(server): State<Arc<Server>>,
    _: Reader,
) -> Result<(StatusCode, Json<Session>), ApiError> {
    Ok((StatusCode::CREATED, Json(server.sessions.create().await?)))
}

/// List conversations
///
/// Needs admin rights: an id is all it takes to read a conversation.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "conversations", params(Listing),
    responses(
        (status = 200, body = SessionList, description = "The last used first"),
        (status = 400, body = ErrorBody, description = "Not a valid page"),
        (status = 401, body = ErrorBody, description = "No admin rights"),
        (status = 500, body = ErrorBody, description = "Our fault")
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
#[utoipa::path(get, path = "/api/v1/sessions/{id}", tag = "conversations",
    params(("id" = Uuid, Path, description = "The conversation"), Showing),
    responses(
        (status = 200, body = SessionWithTurns, description = "The conversation with its turns"),
        (status = 400, body = ErrorBody, description = "Not an id"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such conversation"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn show(
    State(server): State<Arc<Server>>,
    _: Visitor,
    id: Id,
    showing: Result<Query<Showing>, QueryRejection>,
) -> Result<Json<SessionWithTurns>, ApiError> {
    let mut conversation = read(&server, id?.0).await?;
    if showing?.0.html.unwrap_or(false) {
        conversation.turns.iter_mut().for_each(|turn| html::add(&mut turn.response));
    }
    Ok(Json(SessionWithTurns { session: conversation.session, turns: conversation.turns }))
}

/// Rename a conversation
#[utoipa::path(patch, path = "/api/v1/sessions/{id}", tag = "conversations", request_body = Renaming,
    params(("id" = Uuid, Path, description = "The conversation")),
    responses(
        (status = 200, body = Session, description = "The conversation"),
        (status = 400, body = ErrorBody, description = "Not a valid title"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such conversation"),
        (status = 413, body = ErrorBody, description = "Too long"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn rename(
    State(server): State<Arc<Server>>,
    _: Visitor,
    id: Id,
    body: Result<Json<Renaming>, JsonRejection>,
) -> Result<Json<Session>, ApiError> {
    let Json(renaming) = body?;
    let title = renaming.title.trim();
    if title.is_empty() || title.chars().count() > LONGEST_TITLE {
        let message = format!("A title has 1 to {LONGEST_TITLE} characters");
        return Err(ApiError::new(Code::Validation, message));
    }
    Ok(Json(server.sessions.rename(id?.0, title).await?))
}

/// Delete a conversation
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", tag = "conversations",
    params(("id" = Uuid, Path, description = "The conversation")),
    responses(
        (status = 204, description = "Gone"),
        (status = 400, body = ErrorBody, description = "Not an id"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such conversation"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn delete(State(server): State<Arc<Server>>, _: Visitor, id: Id) -> Result<StatusCode, ApiError> {
    server.sessions.delete(id?.0).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forget what was said
#[utoipa::path(post, path = "/api/v1/sessions/{id}/reset", tag = "conversations",
    params(("id" = Uuid, Path, description = "The conversation")),
    responses(
        (status = 200, body = Session, description = "The conversation, empty"),
        (status = 400, body = ErrorBody, description = "Not an id"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such conversation"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn reset(State(server): State<Arc<Server>>, _: Visitor, id: Id) -> Result<Json<Session>, ApiError> {
    Ok(Json(server.sessions.reset(id?.0).await?))
}

/// Export a conversation
#[utoipa::path(get, path = "/api/v1/sessions/{id}/export", tag = "conversations",
    params(("id" = Uuid, Path, description = "The conversation"), Exporting),
    responses(
        (status = 200, description = "A file", content((String = "text/markdown"), (SessionWithTurns = "application/json"))),
        (status = 400, body = ErrorBody, description = "Not an id or a format"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such conversation"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn export(
    State(server): State<Arc<Server>>,
    _: Visitor,
    id: Id,
    exporting: Result<Query<Exporting>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Path(id) = id?;
    let format = exporting?.0.format.unwrap_or_default();
    let conversation = read(&server, id).await?;
    let (extension, mut response) = match format {
        ExportFormat::Markdown => {
            let kind = (header::CONTENT_TYPE, "text/markdown; charset=utf-8");
            ("md", ([kind], conversation.markdown() + "\n").into_response())
        }
        ExportFormat::Json => ("json", Json(conversation).into_response()),
    };
    let name = format!("attachment; filename=\"conversation-{id}.{extension}\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn read(server: &Server, id: Uuid) -> Result<Conversation, ApiError> {
    let session = server.sessions.get(id).await?;
    let turns = server.sessions.turns(id, usize::MAX).await?;
    Ok(Conversation { session, turns })
}
