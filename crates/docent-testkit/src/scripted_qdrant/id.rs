//! Point ids: numbers and UUIDs, in the order in which Qdrant scrolls them.
//!
//! Invariant: every number comes before every UUID.

use std::fmt;

use qdrant_client::qdrant::{PointId, point_id::PointIdOptions};
use tonic::Status;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Id {
    Number(u64),
    Uuid(Uuid),
}

impl Id {
    pub(super) fn read(id: Option<PointId>) -> Result<Self, Status> {
        let id = id.ok_or_else(|| Status::invalid_argument("Empty ID is not allowed"))?;
        match id.point_id_options {
            Some(PointIdOptions::Num(number)) => Ok(Self::Number(number)),
            Some(PointIdOptions::Uuid(text)) => Uuid::parse_str(&text)
                .map(Self::Uuid)
                .map_err(|_| Status::invalid_argument(format!("Unable to parse UUID: {text}"))),
            None => Err(Status::invalid_argument("No ID options provided")),
        }
    }

    pub(super) fn read_all(ids: Vec<PointId>) -> Result<Vec<Self>, Status> {
        ids.into_iter().map(|id| Self::read(Some(id))).collect()
    }
}

impl From<Id> for PointId {
    fn from(id: Id) -> Self {
        let options = match id {
            Id::Number(number) => PointIdOptions::Num(number),
            Id::Uuid(uuid) => PointIdOptions::Uuid(uuid.to_string()),
        };
        Self { point_id_options: Some(options) }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Uuid(uuid) => uuid.fmt(f),
        }
    }
}
