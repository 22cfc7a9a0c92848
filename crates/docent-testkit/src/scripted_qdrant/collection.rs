//! One collection: its points with vectors and payloads, and its payload indexes.
//!
//! Invariant: a point is replaced as a whole; nothing of an older version survives an upsert.

use std::collections::BTreeMap;

use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::{
    Filter as SentFilter, PayloadSchemaInfo, PayloadSchemaType, PointId, PointStruct, PointsSelector,
    RetrievedPoint, UpdateMode,
};
use tonic::Status;

use super::config::Config;
use super::errors;
use super::filter::{Filter, Subject};
use super::id::Id;
use super::payload::{self, Path, Payload};
use super::vectors::{self, Named, Space};

pub(super) struct Collection {
    pub(super) config: Config,
    pub(super) points: BTreeMap<Id, Point>,
    pub(super) schema: BTreeMap<String, PayloadSchemaInfo>,
}

#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) payload: Payload,
    pub(super) vectors: Named,
    pub(super) version: u64,
}

impl Point {
    pub(super) fn as_subject(&self, id: Id) -> Subject<'_> {
        Subject { id: Some(id), payload: &self.payload, vectors: Some(&self.vectors) }
    }
}

/// Points that were decoded and have the right widths, but may use unknown vector names.
pub(super) struct Upsert {
    points: Vec<(Id, Point)>,
    only_update: Filter,
    mode: UpdateMode,
}

impl Collection {
    pub(super) fn new(config: Config) -> Self {
        Self { config, points: BTreeMap::new(), schema: BTreeMap::new() }
    }

    pub(super) fn filter(&self, sent: Option<SentFilter>) -> Result<Filter, Status> {
        Filter::read(sent, &|key| {
            let kind = self.schema.get(key)?.data_type;
            PayloadSchemaType::try_from(kind).ok()
        })
    }

    /// The points that match, in the order of their ids.
    pub(super) fn passing<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = (Id, &'a Point)> {
        self.points
            .iter()
            .map(|(id, point)| (*id, point))
            .filter(|(id, point)| filter.lets_through(point.as_subject(*id)))
    }

    /// The checks that the real server makes before it writes to its log, and therefore also without `wait`.
    pub(super) fn read_upsert(
        &self,
        sent: Vec<PointStruct>,
        only_update: Option<SentFilter>,
        mode: Option<i32>,
    ) -> Result<Upsert, Status> {
        let mut points = Vec::with_capacity(sent.len());
        for (place, point) in sent.into_iter().enumerate() {
            let vectors = vectors::from_wire(point.vectors, place)?;
            let payload = payload::from_wire(point.payload)?;
            points.push((Id::read(point.id)?, Point { payload, vectors, version: 0 }));
        }
        if points.is_empty() {
            return Err(errors::bad_request("Empty update request"));
        }
        for (name, vector) in points.iter().flat_map(|(_, point)| &point.vectors) {
            if let (Some(Space::Dense { width, .. }), vectors::Vector::Dense(data)) =
                (self.config.space(name), vector)
                && data.len() != width
            {
                return Err(match name.as_str() {
                    "" => errors::wrong_width(width, data.len()),
                    name => errors::wrong_named_width(width, data.len(), name),
                });
            }
        }
        let mode = mode.and_then(|mode| UpdateMode::try_from(mode).ok()).unwrap_or(UpdateMode::Upsert);
        Ok(Upsert { points, only_update: self.filter(only_update)?, mode })
    }

    /// Writes the points one by one until one is invalid; those before it are kept.
    pub(super) fn upsert(&mut self, upsert: Upsert, version: u64) -> Result<(), Status> {
        for (id, mut point) in upsert.points {
            let goes_in = match (self.points.get(&id), upsert.mode) {
                (None, UpdateMode::UpdateOnly) | (Some(_), UpdateMode::InsertOnly) => false,
                (None, _) => true,
                (Some(old), _) => upsert.only_update.lets_through(old.as_subject(id)),
            };
            if !goes_in {
                continue;
            }
            for (name, vector) in std::mem::take(&mut point.vectors) {
                let space = self.config.space(&name).ok_or_else(|| errors::no_vector_name(&name))?;
                space.check(&vector)?;
                point.vectors.insert(name, space.settle(vector));
            }
            point.version = version;
            self.points.insert(id, point);
        }
        Ok(())
    }

    /// The ids that a selector refers to; listed ids are returned whether they exist or not.
    pub(super) fn select(&self, selector: PointsSelector) -> Result<Vec<Id>, Status> {
        match selector.points_selector_one_of {
            Some(PointsSelectorOneOf::Points(list)) if list.ids.is_empty() => {
                Err(errors::bad_request("Empty update request"))
            }
            Some(PointsSelectorOneOf::Points(list)) => Id::read_all(list.ids),
            Some(PointsSelectorOneOf::Filter(filter)) => {
                let filter = self.filter(Some(filter))?;
                Ok(self.passing(&filter).map(|(id, _)| id).collect())
            }
            None => Err(Status::invalid_argument("Malformed PointsSelector type")),
        }
    }

    /// Changes the payload of each of these points; fails at the first one that is missing.
    pub(super) fn change_payload(
        &mut self,
        ids: &[Id],
        version: u64,
        change: impl Fn(&mut Payload),
    ) -> Result<(), Status> {
        for id in ids {
            let point = self.points.get_mut(id).ok_or_else(|| errors::no_point(*id))?;
            change(&mut point.payload);
            point.version = version;
        }
        Ok(())
    }

    /// The values of a field, per matching point, with arrays flattened.
    pub(super) fn values_of<'a>(
        &'a self,
        path: &'a Path,
        filter: &'a Filter,
    ) -> impl Iterator<Item = Vec<&'a serde_json::Value>> {
        self.passing(filter).map(|(_, point)| {
            let flat = |value: &'a serde_json::Value| match value {
                serde_json::Value::Array(values) => values.iter().collect(),
                value => vec![value],
            };
            path.values(&point.payload).into_iter().flat_map(flat).collect()
        })
    }

    /// Renders a point; rejects vector names that are not configured.
    pub(super) fn show(&self, shown: &Shown, id: Id, point: &Point) -> Result<RetrievedPoint, Status> {
        Ok(RetrievedPoint {
            id: Some(PointId::from(id)),
            payload: shown.payload.apply(&point.payload),
            vectors: shown.vectors(&self.config)?.apply(&point.vectors),
            ..Default::default()
        })
    }
}

/// The parts of a point to return.
pub(super) struct Shown {
    pub(super) payload: payload::Shown,
    pub(super) vectors: vectors::Shown,
}

impl Shown {
    /// The vector selector, after checking that its names exist.
    pub(super) fn vectors(&self, config: &Config) -> Result<&vectors::Shown, Status> {
        if let vectors::Shown::Only(names) = &self.vectors
            && let Some(unknown) = names.iter().find(|name| config.space(name).is_none())
        {
            return Err(errors::no_vector_name(unknown));
        }
        Ok(&self.vectors)
    }
}
