//! Payloads as Qdrant stores them: JSON objects, addressed by paths such as `a.b[].c`.
//!
//! Invariant: what was sent is returned unchanged, except that a value without a kind is null.

use std::collections::HashMap;

use qdrant_client::qdrant::value::Kind;
use qdrant_client::qdrant::with_payload_selector::SelectorOptions;
use qdrant_client::qdrant::{ListValue, Struct, Value as Sent, WithPayloadSelector};
use serde_json::{Map, Number, Value};
use tonic::Status;

pub(super) type Payload = Map<String, Value>;

pub(super) fn from_wire(sent: HashMap<String, Sent>) -> Result<Payload, Status> {
    sent.into_iter().map(|(key, value)| Ok((key, value_from_wire(value)?))).collect()
}

pub(super) fn to_wire(payload: Payload) -> HashMap<String, Sent> {
    payload.into_iter().map(|(key, value)| (key, value_to_wire(value))).collect()
}

fn value_from_wire(sent: Sent) -> Result<Value, Status> {
    Ok(match sent.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => Value::Bool(value),
        Some(Kind::IntegerValue(value)) => Value::Number(value.into()),
        Some(Kind::StringValue(value)) => Value::String(value),
        Some(Kind::DoubleValue(value)) => Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| Status::invalid_argument("cannot convert to json number"))?,
        Some(Kind::StructValue(value)) => Value::Object(from_wire(value.fields)?),
        Some(Kind::ListValue(list)) => {
            Value::Array(list.values.into_iter().map(value_from_wire).collect::<Result<_, _>>()?)
        }
    })
}

fn value_to_wire(value: Value) -> Sent {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(value) => match value.as_i64() {
            Some(whole) => Kind::IntegerValue(whole),
            None => Kind::DoubleValue(value.as_f64().unwrap_or_default()),
        },
        Value::String(value) => Kind::StringValue(value),
        Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(value_to_wire).collect() })
        }
        Value::Object(fields) => Kind::StructValue(Struct { fields: to_wire(fields) }),
    };
    Sent { kind: Some(kind) }
}

/// Merges new keys into a payload; null removes a key.
pub(super) fn merge(into: &mut Payload, new: &Payload) {
    for (key, value) in new {
        if value.is_null() {
            into.remove(key);
        } else {
            into.insert(key.clone(), value.clone());
        }
    }
}

/// A path in a payload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    Every,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let refused = || Status::invalid_argument(format!("Invalid json path: '{text}'"));
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() || steps.is_empty() {
            if let Some(index) = rest.strip_prefix('[').filter(|_| !steps.is_empty()) {
                let (number, after) = index.split_once(']').ok_or_else(refused)?;
                steps.push(if number.is_empty() {
                    Step::Every
                } else {
                    Step::Index(number.parse().map_err(|_| refused())?)
                });
                rest = after;
                continue;
            }
            if !steps.is_empty() {
                rest = rest.strip_prefix('.').ok_or_else(refused)?;
            }
            let (key, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or_else(refused)?,
                None => {
                    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                    let end = rest.find(|c| !plain(c)).unwrap_or(rest.len());
                    if end == 0 {
                        return Err(refused());
                    }
                    rest.split_at(end)
                }
            };
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        }
        Ok(Self(steps))
    }

    /// The same path, applied to the elements of the array at the path.
    pub(super) fn elements(mut self) -> Self {
        if self.0.last() != Some(&Step::Every) {
            self.0.push(Step::Every);
        }
        self
    }

    /// Every value at this path; an array counts as one value unless the path ends in `[]`.
    pub(super) fn values<'a>(&self, payload: &'a Payload) -> Vec<&'a Value> {
        let Some((Step::Key(first), rest)) = self.0.split_first() else { return Vec::new() };
        let mut found: Vec<&Value> = payload.get(first).into_iter().collect();
        for step in rest {
            found = found
                .into_iter()
                .flat_map(|value| match (step, value) {
                    (Step::Key(key), Value::Object(fields)) => fields.get(key).into_iter().collect(),
                    (Step::Index(index), Value::Array(values)) => values.get(*index).into_iter().collect(),
                    (Step::Every, Value::Array(values)) => values.iter().collect(),
                    _ => Vec::new(),
                })
                .collect();
        }
        found
    }

    /// Merges into the object at this path, creating it if necessary.
    pub(super) fn merge(&self, payload: &mut Payload, new: &Payload) {
        let Some((Step::Key(first), rest)) = self.0.split_first() else { return };
        merge_at(payload.entry(first.clone()).or_insert(Value::Null), rest, new);
    }

    fn is_above_or_below(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }
}

fn merge_at(value: &mut Value, steps: &[Step], new: &Payload) {
    match steps.split_first() {
        Some((Step::Key(key), rest)) => {
            merge_at(object_in(value).entry(key.clone()).or_insert(Value::Null), rest, new);
        }
        Some((Step::Index(index), rest)) => {
            if let Some(element) = array_in(value).get_mut(*index) {
                merge_at(element, rest, new);
            }
        }
        Some((Step::Every, rest)) => {
            for element in array_in(value) {
                merge_at(element, rest, new);
            }
        }
        None => merge(object_in(value), new),
    }
}

fn object_in(value: &mut Value) -> &mut Payload {
    if !value.is_object() {
        *value = Value::Object(Payload::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object above"),
    }
}

fn array_in(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(values) => values,
        _ => unreachable!("it was made an array above"),
    }
}

/// The part of a payload to return.
pub(super) enum Shown {
    All,
    Nothing,
    Only(Vec<Path>),
    Without(Vec<Path>),
}

impl Shown {
    /// Decodes a selector; without one, `default` applies.
    pub(super) fn read(selector: Option<WithPayloadSelector>, default: Self) -> Result<Self, Status> {
        let paths = |fields: Vec<String>| -> Result<Vec<Path>, Status> {
            fields.iter().map(|field| Path::parse(field)).collect()
        };
        let Some(selector) = selector else { return Ok(default) };
        Ok(match selector.selector_options {
            Some(SelectorOptions::Enable(true)) => Self::All,
            Some(SelectorOptions::Enable(false)) => Self::Nothing,
            Some(SelectorOptions::Include(list)) => Self::Only(paths(list.fields)?),
            Some(SelectorOptions::Exclude(list)) => Self::Without(paths(list.fields)?),
            None => return Err(Status::invalid_argument("No PayloadSelector")),
        })
    }

    pub(super) fn apply(&self, payload: &Payload) -> HashMap<String, Sent> {
        match self {
            Self::All => to_wire(payload.clone()),
            Self::Nothing => HashMap::new(),
            Self::Only(wanted) => to_wire(keep(payload, &mut Path(Vec::new()), &|path| {
                wanted.iter().any(|wanted| wanted.is_above_or_below(path))
            })),
            Self::Without(hidden) => to_wire(keep(payload, &mut Path(Vec::new()), &|path| {
                !hidden.iter().any(|hidden| path.0.starts_with(&hidden.0))
            })),
        }
    }
}

fn keep(payload: &Payload, at: &mut Path, wanted: &dyn Fn(&Path) -> bool) -> Payload {
    let mut kept = Payload::new();
    for (key, value) in payload {
        at.0.push(Step::Key(key.clone()));
        if wanted(at) {
            kept.insert(key.clone(), keep_value(value, at, wanted));
        }
        at.0.pop();
    }
    kept
}

fn keep_value(value: &Value, at: &mut Path, wanted: &dyn Fn(&Path) -> bool) -> Value {
    match value {
        Value::Object(fields) => Value::Object(keep(fields, at, wanted)),
        Value::Array(values) => {
            at.0.push(Step::Every);
            let kept = values.iter().filter(|_| wanted(at)).collect::<Vec<_>>();
            let kept = kept.into_iter().map(|value| keep_value(value, at, wanted)).collect();
            at.0.pop();
            Value::Array(kept)
        }
        _ => value.clone(),
    }
}
