//! Access to conversations.
//!
//! Creating a conversation returns its session key, which grants full access; the owner can create a second,
//! read-only key for sharing. An API key of `serve.keys` does not grant access to conversations, because all
//! users of a site may share it. An API key with admin rights does.
//!
//! Invariant: session keys are compared by their hashes, in constant time. Without a matching key, a
//! conversation looks the same as one that does not exist.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use docent_core::session::{SecretHash, SessionError};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::Server;
use super::access;
use super::error::{ApiError, Code};
use crate::settings::Rights;

/// The header with the session key.
pub const SESSION_KEY: &str = "x-docent-session-key";

/// A new session key, and the hash to store.
pub fn new_secret() -> (String, SecretHash) {
    // Two random UUIDs have 244 random bits.
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let hash = hash(secret.as_bytes());
    (secret, hash)
}

fn hash(secret: &[u8]) -> SecretHash {
    SecretHash(Sha256::digest(secret).into())
}

/// A conversation the client may read.
pub struct MayRead {
    pub id: Uuid,
    /// Whether the client also has write access.
    pub owns: bool,
}

/// A conversation the client has full access to.
pub struct Owns(pub Uuid);

/// Whether the client has full access to a conversation (true) or may only read it (false). Without a
/// matching key, the conversation is not found.
pub async fn owns(server: &Server, headers: &HeaderMap, rights: Rights, id: Uuid) -> Result<bool, ApiError> {
    let access = server.sessions.access(id).await?;
    // A page of another site cannot use the rights of an admin key.
    if rights == Rights::Admin && server.hosts.is_own_page(headers) {
        return Ok(true);
    }
    let shown = headers.get(SESSION_KEY).map(|value| hash(value.as_bytes()));
    let fits = |known: Option<SecretHash>| {
        known.zip(shown).is_some_and(|(known, shown)| bool::from(known.0.ct_eq(&shown.0)))
    };
    match (fits(access.owner), fits(access.share)) {
        (true, _) => Ok(true),
        (false, true) => Ok(false),
        (false, false) => Err(SessionError::NotFound(id).into()),
    }
}

/// Fails unless the client has full access to the conversation.
pub async fn must_own(
    server: &Server,
    headers: &HeaderMap,
    rights: Rights,
    id: Uuid,
) -> Result<(), ApiError> {
    if owns(server, headers, rights, id).await? {
        return Ok(());
    }
    Err(ApiError::new(Code::Forbidden, "You have read-only access to this conversation"))
}

async fn wanted(parts: &mut Parts, server: &Arc<Server>) -> Result<(Rights, Uuid), ApiError> {
    let (_, rights) = access::identify(parts, server)?;
    let Path(id) = Path::<Uuid>::from_request_parts(parts, server).await?;
    Ok((rights, id))
}

impl FromRequestParts<Arc<Server>> for MayRead {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let (rights, id) = wanted(parts, server).await?;
        Ok(Self { id, owns: owns(server, &parts.headers, rights, id).await? })
    }
}

impl FromRequestParts<Arc<Server>> for Owns {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let (rights, id) = wanted(parts, server).await?;
        must_own(server, &parts.headers, rights, id).await?;
        Ok(Self(id))
    }
}
