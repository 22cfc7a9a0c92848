//! The published formats of the four calls: fields of requests and responses.
//!
//! Sources: Cohere's API reference, `POST /v2/embed` and `POST /v2/rerank`; OpenAI's, `POST /v1/embeddings`;
//! Ollama's `POST /api/embed`.
//!
//! Invariant: a field that is not in the reference is a violation, and so is a missing one.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::Act;

/// The status to respond with, and what was wrong.
type Violation = (u16, String);

/// Validates a request against the format of its path.
pub(super) fn check(path: &str, headers: &BTreeMap<String, String>, body: &Value) -> Result<(), Violation> {
    let bad = |what: &str| Err((400, format!("{path}: {what}")));
    if headers.get("content-type").map(String::as_str) != Some("application/json") {
        return bad("content-type is not application/json");
    }
    let authorized = headers.get("authorization").is_some_and(|value| value == "Bearer …");
    if path != "/api/embed" && !authorized {
        return Err((401, format!("{path}: no bearer token")));
    }
    let Some(fields) = body.as_object() else { return bad("the body is not an object") };
    let (required, optional): (&[&str], &[&str]) = match path {
        "/v2/embed" => (
            &["model", "texts", "input_type", "embedding_types"],
            &["truncate", "output_dimension", "max_tokens"],
        ),
        "/v2/rerank" => (&["model", "query", "documents"], &["top_n", "max_tokens_per_doc", "priority"]),
        "/v1/embeddings" => (&["model", "input"], &["encoding_format", "dimensions", "user"]),
        "/api/embed" => (&["model", "input"], &["truncate", "dimensions", "keep_alive", "options"]),
        _ => return Err((404, format!("{path}: no such path"))),
    };
    if let Some(missing) = required.iter().find(|name| !fields.contains_key(**name)) {
        return bad(&format!("{missing} is missing"));
    }
    let known: HashSet<&str> = required.iter().chain(optional).copied().collect();
    if let Some(unknown) = fields.keys().find(|name| !known.contains(name.as_str())) {
        return bad(&format!("unknown field {unknown}"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return bad("model is not a name");
    }
    let (list, most) = match path {
        "/v2/embed" => ("texts", 96),
        "/v2/rerank" => ("documents", 1000),
        "/v1/embeddings" => ("input", 2048),
        _ => ("input", usize::MAX),
    };
    let Some(texts) = strings(&body[list]) else { return bad(&format!("{list} is not a list of strings")) };
    if texts.is_empty() || texts.len() > most || texts.iter().any(|text| text.is_empty()) {
        return bad(&format!("{list} must contain 1 to {most} non-empty texts"));
    }
    match path {
        "/v2/embed" => check_cohere(body).or_else(|what| bad(&what)),
        "/v2/rerank" if body["query"].as_str().is_none_or(str::is_empty) => bad("query is empty"),
        "/v2/rerank" if !is_absent_or(&body["top_n"], |value| value.as_u64().is_some_and(|n| n > 0)) => {
            bad("top_n is not a positive number")
        }
        "/v1/embeddings" => check_openai(body, &texts).or_else(|what| bad(&what)),
        "/api/embed" if !is_absent_or(&body["truncate"], Value::is_boolean) => {
            bad("truncate is not a boolean")
        }
        _ => Ok(()),
    }
}

fn check_cohere(body: &Value) -> Result<(), String> {
    let one_of = |name: &str, known: &[&str]| match body[name].as_str() {
        Some(value) if known.contains(&value) => Ok(()),
        _ => Err(format!("{name} must be one of {}", known.join(", "))),
    };
    one_of("input_type", &["search_document", "search_query", "classification", "clustering", "image"])?;
    if !body["truncate"].is_null() {
        one_of("truncate", &["NONE", "START", "END"])?;
    }
    let kinds = strings(&body["embedding_types"]).unwrap_or_default();
    let known = ["float", "int8", "uint8", "binary", "ubinary", "base64"];
    if kinds.is_empty() || kinds.iter().any(|kind| !known.contains(kind)) {
        return Err("embedding_types contains an unknown type".to_owned());
    }
    match (&body["output_dimension"], body["model"].as_str().unwrap_or_default()) {
        (Value::Null, _) => Ok(()),
        (width, model) if model.contains("v4") => match width.as_u64() {
            Some(256 | 512 | 1024 | 1536) => Ok(()),
            _ => Err("output_dimension must be 256, 512, 1024 or 1536".to_owned()),
        },
        _ => Err("output_dimension is for embed-v4 and newer".to_owned()),
    }
}

fn check_openai(body: &Value, texts: &[&str]) -> Result<(), String> {
    if !is_absent_or(&body["encoding_format"], |value| value == "float" || value == "base64") {
        return Err("encoding_format must be float or base64".to_owned());
    }
    if !is_absent_or(&body["dimensions"], |value| value.as_u64().is_some_and(|width| width > 0)) {
        return Err("dimensions is not a positive number".to_owned());
    }
    if !body["dimensions"].is_null() && body["model"] == "text-embedding-ada-002" {
        return Err("this model does not support specifying dimensions".to_owned());
    }
    // A token is about four characters of English.
    let tokens = |text: &str| text.chars().count().div_ceil(4);
    if texts.iter().any(|text| tokens(text) > 8192) {
        return Err("a text is longer than 8192 tokens".to_owned());
    }
    if texts.iter().map(|text| tokens(text)).sum::<usize>() > 300_000 {
        return Err("the texts together are longer than 300000 tokens".to_owned());
    }
    Ok(())
}

fn is_absent_or(value: &Value, sound: impl Fn(&Value) -> bool) -> bool {
    value.is_null() || sound(value)
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// The response to a valid request.
pub(super) fn answer(path: &str, body: &Value, width: usize, act: &Act) -> Value {
    if path == "/v2/rerank" {
        return ranking(body, act);
    }
    let list = if path == "/v2/embed" { "texts" } else { "input" };
    let wish = [&body["output_dimension"], &body["dimensions"]].into_iter().find_map(Value::as_u64);
    let width = match act {
        Act::Wide(width) => *width,
        _ => wish.map_or(width, |wish| wish as usize),
    };
    let texts = strings(&body[list]).unwrap_or_default();
    let mut vectors: Vec<Value> = texts.iter().map(|text| json!(vector(text, width))).collect();
    match act {
        Act::TooFew => drop(vectors.pop()),
        Act::Null => vectors.last_mut().into_iter().for_each(|last| last[0] = Value::Null),
        Act::Zeros => vectors.last_mut().into_iter().for_each(|last| *last = json!(vec![0.0; width])),
        _ => {}
    }
    let model = &body["model"];
    match path {
        "/v2/embed" => json!({
            "id": "scripted", "response_type": "embeddings_by_type", "texts": texts,
            "embeddings": {"float": vectors},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 1}},
        }),
        "/v1/embeddings" => {
            // The order is not guaranteed; `index` identifies the text.
            let entries = vectors.into_iter().enumerate().rev();
            let entry = |(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector});
            let data: Vec<Value> = entries.map(entry).collect();
            json!({"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        }
        _ => json!({
            "model": model, "embeddings": vectors,
            "total_duration": 1, "load_duration": 1, "prompt_eval_count": 1,
        }),
    }
}

/// A vector derived from the words of a text: texts that share words have similar vectors. It is not of unit
/// length.
pub(super) fn vector(text: &str, width: usize) -> Vec<f32> {
    let mut vector = vec![0f32; width.max(1)];
    vector[0] = 0.1;
    for word in words(text) {
        let hash = xxhash_rust::xxh3::xxh3_64(word.as_bytes());
        let sign = if hash >> 63 == 0 { 3.0 } else { -3.0 };
        vector[(hash % width.max(1) as u64) as usize] += sign;
    }
    vector
}

fn words(text: &str) -> Vec<String> {
    let cut = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    cut.map(str::to_lowercase).collect()
}

/// Best first, as Cohere does; the score is the fraction of the query's words that occur in the document.
fn ranking(body: &Value, act: &Act) -> Value {
    let query: HashSet<String> = words(body["query"].as_str().unwrap_or_default()).into_iter().collect();
    let score = |document: &str| match act {
        Act::Prefer(word) if document.contains(word) => 0.9,
        Act::Prefer(_) => 0.1,
        _ => {
            let found: HashSet<String> = words(document).into_iter().collect();
            query.intersection(&found).count() as f64 / query.len().max(1) as f64
        }
    };
    let documents = strings(&body["documents"]).unwrap_or_default();
    let mut scored: Vec<(usize, f64)> =
        documents.iter().enumerate().map(|(index, document)| (index, score(document))).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.truncate(body["top_n"].as_u64().map_or(usize::MAX, |most| most as usize));
    if *act == Act::TooFew {
        scored.pop();
    }
    let mut results: Vec<Value> =
        scored.iter().map(|(index, score)| json!({"index": index, "relevance_score": score})).collect();
    if *act == Act::Null {
        results.last_mut().into_iter().for_each(|last| last["relevance_score"] = Value::Null);
    }
    json!({
        "id": "scripted", "results": results,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    })
}
