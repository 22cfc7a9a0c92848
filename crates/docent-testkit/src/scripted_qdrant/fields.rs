//! Payload indexes, and facets computed over them.
//!
//! Invariant: an index affects only three things: a facet needs one, text matches by words with one, and the
//! collection's schema shows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use qdrant_client::qdrant::facet_value::Variant;
use qdrant_client::qdrant::payload_index_params::IndexParams;
use qdrant_client::qdrant::{
    CreateFieldIndexCollection, FacetCounts, FacetHit, FacetValue, FieldType, PayloadSchemaInfo,
    PayloadSchemaType,
};
use serde_json::Value;
use tonic::Status;
use uuid::Uuid;

use super::collection::Collection;
use super::errors;
use super::filter::Filter;
use super::payload::Path;

/// Creates an index; creating it again is fine.
pub(super) fn create_index(
    collection: &mut Collection,
    request: CreateFieldIndexCollection,
) -> Result<(), Status> {
    if request.field_name.is_empty() {
        return Err(errors::invalid_body("field_name", "value \"\" invalid, must be at least 1 characters"));
    }
    Path::parse(&request.field_name)?;
    let sent = request.field_type.ok_or_else(|| Status::invalid_argument("cannot convert field_type"))?;
    let field = FieldType::try_from(sent).map_err(|_| Status::invalid_argument("field type is missing"))?;
    let params = request.field_index_params.filter(|params| params.index_params.is_some());
    if let Some(IndexParams::IntegerIndexParams(integer)) =
        params.as_ref().and_then(|params| params.index_params.as_ref())
        && integer.lookup == Some(false)
        && integer.range == Some(false)
    {
        return Err(errors::invalid_body(
            "field_index_params.index_params",
            "the 'lookup' and 'range' capabilities can't be both disabled",
        ));
    }
    let (kind, params_fit) =
        schema_type(field, params.as_ref().and_then(|params| params.index_params.as_ref()));
    if !params_fit {
        return Err(Status::invalid_argument(format!(
            "field_type ({field:?}) and field_index_params do not match"
        )));
    }
    let info = PayloadSchemaInfo { data_type: kind.into(), params, points: None };
    collection.schema.insert(request.field_name, info);
    Ok(())
}

fn schema_type(field: FieldType, params: Option<&IndexParams>) -> (PayloadSchemaType, bool) {
    use IndexParams as Params;
    use PayloadSchemaType as Kind;
    let fits = |yes: bool| params.is_none() || yes;
    match field {
        FieldType::Keyword => (Kind::Keyword, fits(matches!(params, Some(Params::KeywordIndexParams(_))))),
        FieldType::Integer => (Kind::Integer, fits(matches!(params, Some(Params::IntegerIndexParams(_))))),
        FieldType::Float => (Kind::Float, fits(matches!(params, Some(Params::FloatIndexParams(_))))),
        FieldType::Geo => (Kind::Geo, fits(matches!(params, Some(Params::GeoIndexParams(_))))),
        FieldType::Text => (Kind::Text, fits(matches!(params, Some(Params::TextIndexParams(_))))),
        FieldType::Bool => (Kind::Bool, fits(matches!(params, Some(Params::BoolIndexParams(_))))),
        FieldType::Datetime => (Kind::Datetime, fits(matches!(params, Some(Params::DatetimeIndexParams(_))))),
        FieldType::Uuid => (Kind::Uuid, fits(matches!(params, Some(Params::UuidIndexParams(_))))),
    }
}

/// Deletes an index; a missing one is fine.
pub(super) fn delete_index(collection: &mut Collection, field: &str) -> Result<(), Status> {
    Path::parse(field)?;
    collection.schema.remove(field);
    Ok(())
}

/// Values in the order used to break ties.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Keyword(String),
    Integer(i64),
    Uuid(Uuid),
    Bool(bool),
}

impl Counted {
    /// The value as this kind of index stores it; nothing if the index skips it.
    fn read(kind: PayloadSchemaType, value: &Value) -> Option<Self> {
        match (kind, value) {
            (PayloadSchemaType::Keyword, Value::String(text)) => Some(Self::Keyword(text.clone())),
            (PayloadSchemaType::Integer, Value::Number(number)) => number.as_i64().map(Self::Integer),
            (PayloadSchemaType::Uuid, Value::String(text)) => Uuid::parse_str(text).ok().map(Self::Uuid),
            (PayloadSchemaType::Bool, Value::Bool(value)) => Some(Self::Bool(*value)),
            _ => None,
        }
    }

    fn show(self) -> FacetValue {
        let variant = match self {
            Self::Keyword(text) => Variant::StringValue(text),
            Self::Integer(number) => Variant::IntegerValue(number),
            Self::Uuid(uuid) => Variant::StringValue(uuid.to_string()),
            Self::Bool(value) => Variant::BoolValue(value),
        };
        FacetValue { variant: Some(variant) }
    }
}

/// The number of points per value: the most frequent first, then by value.
pub(super) fn facet(collection: &Collection, request: FacetCounts) -> Result<Vec<FacetHit>, Status> {
    let path = Path::parse(&request.key)?;
    let filter = collection.filter(request.filter)?;
    let limit = request.limit.unwrap_or(10) as usize;
    if limit == 0 {
        return Ok(Vec::new());
    }
    let kind = facet_kind(collection, &request.key).ok_or_else(|| errors::no_facet_index(&request.key))?;
    let mut counts: BTreeMap<Counted, u64> = BTreeMap::new();
    for values in collection.values_of(&path, &filter) {
        let different: BTreeSet<_> =
            values.into_iter().filter_map(|value| Counted::read(kind, value)).collect();
        for value in different {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
    let hit = |(value, count): (Counted, u64)| FacetHit { value: Some(value.show()), count };
    Ok(counts.into_iter().take(limit).map(hit).collect())
}

/// The kind of the index, if it can count values.
fn facet_kind(collection: &Collection, key: &str) -> Option<PayloadSchemaType> {
    use PayloadSchemaType::{Bool, Integer, Keyword, Uuid};
    let info = collection.schema.get(key)?;
    let params = info.params.as_ref().and_then(|params| params.index_params.as_ref());
    let range_only = matches!(params, Some(IndexParams::IntegerIndexParams(p)) if p.lookup == Some(false));
    let kind = PayloadSchemaType::try_from(info.data_type).ok()?;
    (matches!(kind, Keyword | Integer | Uuid | Bool) && !range_only).then_some(kind)
}

impl Collection {
    /// The schema with the number of points in each index.
    pub(super) fn described_schema(&self) -> HashMap<String, PayloadSchemaInfo> {
        let everything = Filter::default();
        let describe = |(field, info): (&String, &PayloadSchemaInfo)| {
            let kind = PayloadSchemaType::try_from(info.data_type).unwrap_or_default();
            let points = Path::parse(field).map_or(0, |path| {
                let taken_up = |values: &Vec<&Value>| values.iter().any(|value| is_taken_up(kind, value));
                self.values_of(&path, &everything).filter(taken_up).count()
            });
            (field.clone(), PayloadSchemaInfo { points: Some(points as u64), ..info.clone() })
        };
        self.schema.iter().map(describe).collect()
    }
}

fn is_taken_up(kind: PayloadSchemaType, value: &Value) -> bool {
    match kind {
        PayloadSchemaType::Float => value.is_number(),
        PayloadSchemaType::Text | PayloadSchemaType::Datetime => value.is_string(),
        PayloadSchemaType::Geo => value.is_object(),
        kind => Counted::read(kind, value).is_some(),
    }
}
