//! What points carry: Docent's own fields, and those of the systems it replaces.
//!
//! A collection somebody else made is understood by looking at some of its points: each role
//! (text, address, title …) is played by the one of its usual names that most points
//! have. Whatever is configured wins.
//!
//! Invariant: a passage read from a point has a text; all else may be missing.

use std::collections::BTreeMap;
use std::fmt;

use docent_core::chunk::Chunk;
use qdrant_client::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

/// Which field plays which role; dots lead into objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fields {
    /// The passage.
    pub text: Option<String>,
    /// Where to read it.
    pub url: Option<String>,
    /// The page's title.
    pub title: Option<String>,
    /// The nearest heading, or all of them.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub headings: Option<String>,
    /// The part of the book.
    pub module: Option<String>,
    /// The page.
    pub document: Option<String>,
    /// The passage's name.
    pub chunk: Option<String>,
    /// Its place on the page.
    pub index: Option<String>,
    /// Its length in tokens.
    pub tokens: Option<String>,
}

/// The usual names of each role, the likeliest first.
const TEXT: &[&str] = &["content", "text", "chunk_text", "page_content"];
const URL: &[&str] = &["url", "source_url", "page_url", "metadata.source"];
const TITLE: &[&str] = &["page_title", "title", "metadata.title"];
const HEADING: &[&str] = &["heading", "section_heading"];
const HEADINGS: &[&str] = &["heading_hierarchy", "breadcrumb"];
const MODULE: &[&str] = &["module_name", "module", "chapter_id"];
const DOCUMENT: &[&str] = &["document_id"];
const CHUNK: &[&str] = &["chunk_id"];
const INDEX: &[&str] = &["chunk_index"];
const TOKENS: &[&str] = &["token_count"];

impl Fields {
    /// Docent's own.
    pub fn own() -> Self {
        let name = |name: &str| Some(name.to_owned());
        Self {
            text: name("content"),
            url: name("url"),
            title: name("page_title"),
            heading: name("heading"),
            headings: name("heading_hierarchy"),
            module: name("module_name"),
            document: name("document_id"),
            chunk: name("chunk_id"),
            index: name("chunk_index"),
            tokens: name("token_count"),
        }
    }

    /// What the points have, where nothing is `pinned`.
    pub fn recognise(points: &[Value], pinned: &Self) -> Self {
        let find = |pinned: &Option<String>, names: &[&str], fits: fn(&Value) -> bool| {
            let have =
                |name: &str| points.iter().filter(|point| look_up(point, name).is_some_and(fits)).count();
            // Of names that equally many points have, the likelier comes first.
            let found = names.iter().rev().max_by_key(|name| have(name)).filter(|name| have(name) > 0);
            pinned.clone().or_else(|| found.map(|name| (*name).to_owned()))
        };
        let words = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
        let list = |value: &Value| value.is_array() || value.is_string();
        Self {
            text: find(&pinned.text, TEXT, words),
            url: find(&pinned.url, URL, words),
            title: find(&pinned.title, TITLE, words),
            heading: find(&pinned.heading, HEADING, words),
            headings: find(&pinned.headings, HEADINGS, list),
            module: find(&pinned.module, MODULE, words),
            document: find(&pinned.document, DOCUMENT, |value| value.is_string() || value.is_number()),
            chunk: find(&pinned.chunk, CHUNK, |value| value.is_string() || value.is_number()),
            index: find(&pinned.index, INDEX, Value::is_number),
            tokens: find(&pinned.tokens, TOKENS, Value::is_number),
        }
    }

    fn roles(&self) -> [(&'static str, &Option<String>); 10] {
        [
            ("text", &self.text),
            ("url", &self.url),
            ("title", &self.title),
            ("heading", &self.heading),
            ("headings", &self.headings),
            ("module", &self.module),
            ("document", &self.document),
            ("chunk", &self.chunk),
            ("index", &self.index),
            ("tokens", &self.tokens),
        ]
    }

    /// The passage a point carries; none when it has no text.
    pub fn chunk(&self, point: &str, payload: &Value) -> Option<Chunk> {
        let content = self.text.as_ref().and_then(|name| look_up(payload, name)).and_then(as_text)?;
        let mut chunk = self.place(point, payload);
        if chunk.token_count == 0 {
            chunk.token_count = content.split_whitespace().count() as u32;
        }
        (!content.trim().is_empty()).then_some(Chunk { content, ..chunk })
    }

    /// Where a point's passage stands in the book, without its text.
    pub fn place(&self, point: &str, payload: &Value) -> Chunk {
        let value = |field: &Option<String>| field.as_ref().and_then(|name| look_up(payload, name));
        let text = |field: &Option<String>| value(field).and_then(as_text);
        let url = text(&self.url).unwrap_or_default();
        let page = url.split('#').next().unwrap_or_default();
        let document_id = text(&self.document).unwrap_or_else(|| page.to_owned());
        let title = text(&self.title);
        let mut hierarchy = value(&self.headings).map(as_list).unwrap_or_default();
        // A path of headings often begins with the page itself.
        if let Some(title) = &title
            && hierarchy.first() == Some(title)
        {
            hierarchy.remove(0);
        }
        let heading = text(&self.heading).or_else(|| hierarchy.last().cloned());
        if let Some(heading) = heading.as_ref().filter(|_| hierarchy.is_empty()) {
            hierarchy.push(heading.clone());
        }
        let section = value(&Some("section".to_owned())).and_then(Value::as_u64);
        let name = text(&self.chunk).unwrap_or_else(|| point.to_owned());
        let number = |field: &Option<String>| value(field).and_then(as_number);
        Chunk {
            id: name.parse().unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())),
            index: number(&self.index).unwrap_or_default(),
            section: section.map_or_else(|| section_of(page, &hierarchy), |section| section as u32),
            page_title: title.or_else(|| hierarchy.first().cloned()).unwrap_or_default(),
            book_name: String::new(),
            module_name: text(&self.module).unwrap_or_default(),
            token_count: number(&self.tokens).unwrap_or_default(),
            document_id,
            url,
            heading,
            heading_hierarchy: hierarchy,
            content: String::new(),
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<String> = self
            .roles()
            .iter()
            .filter_map(|(role, name)| name.as_ref().map(|name| (role, name)))
            .map(|(role, name)| if role == name { name.clone() } else { format!("{role} = {name}") })
            .collect();
        f.write_str(&found.join(", "))
    }
}

/// Sections are told apart by their headings when nobody has numbered them.
fn section_of(page: &str, hierarchy: &[String]) -> u32 {
    xxh3_64(format!("{page}\u{0}{}", hierarchy.join("\u{0}")).as_bytes()) as u32
}

/// The value at a path with dots; a name that itself has dots comes first.
pub fn look_up<'a>(payload: &'a Value, path: &str) -> Option<&'a Value> {
    let found =
        payload.get(path).or_else(|| path.split('.').try_fold(payload, |value, name| value.get(name)));
    found.filter(|value| !value.is_null())
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(list) => list.last().and_then(as_text),
        _ => None,
    }
}

fn as_list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter_map(as_text).collect(),
        Value::String(path) => path
            .split(['>', '›', '»'])
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect(),
        _ => Vec::new(),
    }
}

fn as_number(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|number| number as u64))
        .and_then(|number| number.try_into().ok())
}

/// The fields Docent writes for a passage in `row` of the book.
pub fn own(chunk: &Chunk, row: usize, key: Option<u128>, created_at: &str) -> Payload {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("chunk_id", json!(chunk.id));
    put("document_id", json!(chunk.document_id));
    put("chunk_index", json!(chunk.index));
    put("section", json!(chunk.section));
    put("url", json!(chunk.url));
    put("page_title", json!(chunk.page_title));
    put("heading", json!(chunk.heading));
    put("heading_hierarchy", json!(chunk.heading_hierarchy));
    if !chunk.book_name.is_empty() {
        put("book_name", json!(chunk.book_name));
    }
    put("module_name", json!(chunk.module_name));
    put("content", json!(chunk.content));
    put("token_count", json!(chunk.token_count));
    put("created_at", json!(created_at));
    put("row", json!(row));
    if let Some(key) = key {
        put("key", json!(format!("{key:032x}")));
    }
    payload(fields)
}

/// The passage Docent wrote, exactly; its text is empty when it was not asked for.
pub fn read_own(payload: &Value) -> Option<Chunk> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| payload.get(name).and_then(as_number);
    Some(Chunk {
        id: text("chunk_id")?.parse().ok()?,
        document_id: text("document_id")?,
        index: number("chunk_index")?,
        section: number("section")?,
        url: text("url")?,
        page_title: text("page_title")?,
        heading: text("heading"),
        heading_hierarchy: payload.get("heading_hierarchy").map(as_list).unwrap_or_default(),
        book_name: text("book_name").unwrap_or_default(),
        module_name: text("module_name")?,
        content: text("content").unwrap_or_default(),
        token_count: number("token_count")?,
    })
}

/// A JSON object as the client wants it.
pub fn payload(fields: Map<String, Value>) -> Payload {
    Payload::from(fields)
}

/// A payload as JSON.
pub fn json_of(payload: std::collections::HashMap<String, qdrant_client::qdrant::Value>) -> Value {
    let fields: BTreeMap<String, Value> =
        payload.into_iter().map(|(name, value)| (name, value.into_json())).collect();
    fields.into_iter().collect::<Map<_, _>>().into()
}
