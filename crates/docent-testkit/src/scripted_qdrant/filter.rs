//! Filters: decoded once, then evaluated for each point.
//!
//! Invariant: a decoded filter cannot fail; malformed and unsupported conditions are rejected while decoding.

use qdrant_client::qdrant::condition::ConditionOneOf;
use qdrant_client::qdrant::r#match::MatchValue;
use qdrant_client::qdrant::{
    Condition as SentCondition, DatetimeRange, FieldCondition, Filter as Sent, PayloadSchemaType, Range,
    ValuesCount,
};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tonic::Status;

use super::errors;
use super::id::Id;
use super::payload::{Path, Payload};
use super::vectors::Named;

/// What a filter is evaluated on. An element of an array has neither an id nor vectors.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) id: Option<Id>,
    pub(super) payload: &'a Payload,
    pub(super) vectors: Option<&'a Named>,
}

/// The type of the payload index on a field, if it has one.
pub(super) type IndexOf<'a> = &'a dyn Fn(&str) -> Option<PayloadSchemaType>;

#[derive(Default)]
pub(super) struct Filter {
    must: Vec<Condition>,
    must_not: Vec<Condition>,
    should: Vec<Condition>,
    min_should: Option<(usize, Vec<Condition>)>,
}

enum Condition {
    Field(Path, Vec<Test>),
    Empty(Path),
    Null(Path),
    Id(Vec<Id>),
    Vector(String),
    Nested(Path, Filter),
    Filter(Filter),
}

enum Test {
    Match(MatchValue),
    Words(Vec<String>),
    Range(Range),
    Between(DatetimeRange),
    Count(ValuesCount),
    Empty(bool),
    Null(bool),
}

impl Filter {
    /// Decodes a filter; no filter matches everything.
    pub(super) fn read(sent: Option<Sent>, index: IndexOf<'_>) -> Result<Self, Status> {
        let Some(sent) = sent else { return Ok(Self::default()) };
        let min_should = match sent.min_should {
            None => None,
            Some(group) if group.min_count == 0 => {
                return Err(errors::invalid_body(
                    "filter.min_should.min_count",
                    "min_count must be greater than 0",
                ));
            }
            Some(group) => Some((group.min_count as usize, read_all(group.conditions, index)?)),
        };
        Ok(Self {
            must: read_all(sent.must, index)?,
            must_not: read_all(sent.must_not, index)?,
            should: read_all(sent.should, index)?,
            min_should,
        })
    }

    pub(super) fn lets_through(&self, subject: Subject<'_>) -> bool {
        let holds = |condition: &Condition| condition.holds(subject);
        self.must.iter().all(holds)
            && !self.must_not.iter().any(holds)
            && (self.should.is_empty() || self.should.iter().any(holds))
            && self.min_should.as_ref().is_none_or(|(enough, conditions)| {
                conditions.iter().filter(|condition| holds(condition)).count() >= *enough
            })
    }
}

/// Empty conditions are skipped, as by the real server.
fn read_all(sent: Vec<SentCondition>, index: IndexOf<'_>) -> Result<Vec<Condition>, Status> {
    sent.into_iter()
        .filter_map(|condition| condition.condition_one_of)
        .map(|condition| read(condition, index))
        .collect()
}

fn read(sent: ConditionOneOf, index: IndexOf<'_>) -> Result<Condition, Status> {
    Ok(match sent {
        ConditionOneOf::Field(field) => read_field(field, index)?,
        ConditionOneOf::IsEmpty(field) => Condition::Empty(Path::parse(&field.key)?),
        ConditionOneOf::IsNull(field) => Condition::Null(Path::parse(&field.key)?),
        ConditionOneOf::HasId(ids) => Condition::Id(Id::read_all(ids.has_id)?),
        ConditionOneOf::HasVector(vector) => Condition::Vector(vector.has_vector),
        ConditionOneOf::Filter(filter) => Condition::Filter(Filter::read(Some(filter), index)?),
        ConditionOneOf::Nested(nested) => {
            // Indexes are identified by their full key.
            let inner = |key: &str| index(&format!("{}[].{key}", nested.key.trim_end_matches("[]")));
            Condition::Nested(Path::parse(&nested.key)?.elements(), Filter::read(nested.filter, &inner)?)
        }
        ConditionOneOf::Slice(_) => return Err(errors::unsupported("slice conditions")),
    })
}

fn read_field(sent: FieldCondition, index: IndexOf<'_>) -> Result<Condition, Status> {
    if sent.geo_bounding_box.is_some() || sent.geo_radius.is_some() || sent.geo_polygon.is_some() {
        return Err(errors::unsupported("geo conditions"));
    }
    let mut tests = Vec::new();
    if let Some(wanted) = sent.r#match {
        let malformed = || Status::invalid_argument("Malformed Match condition");
        tests.push(match wanted.match_value.ok_or_else(malformed)? {
            MatchValue::Text(text) if index(&sent.key) == Some(PayloadSchemaType::Text) => {
                Test::Words(words(&text).collect())
            }
            MatchValue::Phrase(_) | MatchValue::Substring(_) => {
                return Err(errors::unsupported("phrase and substring matches"));
            }
            value => Test::Match(value),
        });
    }
    // A numeric range takes precedence over a datetime range, as in the real server.
    match (sent.range, sent.datetime_range) {
        (Some(range), _) => tests.push(Test::Range(range)),
        (None, Some(range)) => tests.push(Test::Between(range)),
        (None, None) => {}
    }
    tests.extend(sent.values_count.map(Test::Count));
    tests.extend(sent.is_empty.map(Test::Empty));
    tests.extend(sent.is_null.map(Test::Null));
    if tests.is_empty() {
        return Err(errors::invalid_body("filter.match", "At least one field condition must be specified"));
    }
    Ok(Condition::Field(Path::parse(&sent.key)?, tests))
}

impl Condition {
    fn holds(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Field(path, tests) => {
                let values = path.values(subject.payload);
                if values.is_empty() {
                    return tests.iter().any(Test::passes_missing);
                }
                values.into_iter().any(|value| tests.iter().any(|test| test.passes(value)))
            }
            Self::Empty(path) => path.values(subject.payload).into_iter().all(is_empty),
            Self::Null(path) => path.values(subject.payload).into_iter().any(Value::is_null),
            Self::Id(ids) => subject.id.is_some_and(|id| ids.contains(&id)),
            Self::Vector(name) => subject.vectors.is_some_and(|vectors| vectors.contains_key(name)),
            Self::Nested(path, filter) => path
                .values(subject.payload)
                .into_iter()
                .filter_map(Value::as_object)
                .any(|payload| filter.lets_through(Subject { id: None, payload, vectors: None })),
            Self::Filter(filter) => filter.lets_through(subject),
        }
    }
}

impl Test {
    /// Whether the condition holds if the field is missing.
    fn passes_missing(&self) -> bool {
        match self {
            Self::Count(bounds) => count_fits(bounds, 0),
            Self::Empty(wanted) => *wanted,
            Self::Null(wanted) => !*wanted,
            _ => false,
        }
    }

    fn passes(&self, value: &Value) -> bool {
        match self {
            Self::Count(bounds) => count_fits(
                bounds,
                match value {
                    Value::Null => 0,
                    Value::Array(values) => values.len() as u64,
                    _ => 1,
                },
            ),
            Self::Empty(wanted) => is_empty(value) == *wanted,
            Self::Null(wanted) => {
                let null = match value {
                    Value::Array(values) => values.iter().any(Value::is_null),
                    value => value.is_null(),
                };
                null == *wanted
            }
            _ => match value {
                // One matching element is enough; nested arrays are ignored.
                Value::Array(values) => values.iter().any(|value| self.passes_one(value)),
                value => self.passes_one(value),
            },
        }
    }

    fn passes_one(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Match(wanted), value) => matches(wanted, value),
            (Self::Words(wanted), Value::String(text)) => {
                let there: Vec<_> = words(text).collect();
                !wanted.is_empty() && wanted.iter().all(|word| there.contains(word))
            }
            (Self::Range(range), Value::Number(number)) => number.as_f64().is_some_and(|number| {
                range.lt.is_none_or(|bound| number < bound)
                    && range.gt.is_none_or(|bound| number > bound)
                    && range.lte.is_none_or(|bound| number <= bound)
                    && range.gte.is_none_or(|bound| number >= bound)
            }),
            (Self::Between(range), Value::String(text)) => {
                let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) else { return false };
                let moment = (moment.unix_timestamp(), i64::from(moment.nanosecond()));
                let bound = |stamp: Option<(i64, i32)>| stamp.map(|(s, n)| (s, i64::from(n)));
                bound(range.lt.map(|t| (t.seconds, t.nanos))).is_none_or(|bound| moment < bound)
                    && bound(range.gt.map(|t| (t.seconds, t.nanos))).is_none_or(|bound| moment > bound)
                    && bound(range.lte.map(|t| (t.seconds, t.nanos))).is_none_or(|bound| moment <= bound)
                    && bound(range.gte.map(|t| (t.seconds, t.nanos))).is_none_or(|bound| moment >= bound)
            }
            _ => false,
        }
    }
}

fn matches(wanted: &MatchValue, value: &Value) -> bool {
    match (wanted, value) {
        (MatchValue::Keyword(wanted), Value::String(text)) => text == wanted,
        (MatchValue::Integer(wanted), Value::Number(number)) => number.as_i64() == Some(*wanted),
        (MatchValue::Boolean(wanted), Value::Bool(value)) => value == wanted,
        // Without a text index, the text is matched as a substring.
        (MatchValue::Text(wanted), Value::String(text)) => text.contains(wanted.as_str()),
        (MatchValue::TextAny(wanted), Value::String(text)) => {
            wanted.split_whitespace().any(|word| text.contains(word))
        }
        (MatchValue::Prefix(wanted), Value::String(text)) => text.starts_with(wanted.as_str()),
        (MatchValue::Keywords(list), Value::String(text)) => list.strings.contains(text),
        (MatchValue::Integers(list), Value::Number(number)) => {
            number.as_i64().is_some_and(|number| list.integers.contains(&number))
        }
        (MatchValue::ExceptKeywords(_) | MatchValue::ExceptIntegers(_), Value::Null) => false,
        (MatchValue::ExceptKeywords(list), Value::String(text)) => !list.strings.contains(text),
        (MatchValue::ExceptIntegers(list), Value::Number(number)) => {
            number.as_i64().is_none_or(|number| !list.integers.contains(&number))
        }
        (MatchValue::ExceptKeywords(_) | MatchValue::ExceptIntegers(_), _) => true,
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}

fn count_fits(bounds: &ValuesCount, count: u64) -> bool {
    bounds.lt.is_none_or(|bound| count < bound)
        && bounds.gt.is_none_or(|bound| count > bound)
        && bounds.lte.is_none_or(|bound| count <= bound)
        && bounds.gte.is_none_or(|bound| count >= bound)
}

/// Splits words like the default tokenizer of a text index.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}
