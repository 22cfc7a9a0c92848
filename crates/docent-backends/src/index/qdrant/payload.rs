//! The payload of points: Docent's own fields, and those of other systems.
//!
//! The fields of another system's collection are recognized from some of its points: for each role (text,
//! address, title …), the known field name that most points have is used. Configured names take precedence.
//!
//! Invariant: a passage read from a point has a text; everything else may be missing.

use std::collections::BTreeMap;
use std::fmt;

use docent_core::chunk::Chunk;
use docent_core::edition::Edition;
use docent_core::section_kind::SectionKind;
use qdrant_client::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

/// The name of the field for each role; dots address nested fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fields {
    /// The text of the passage.
    pub text: Option<String>,
    /// The address of the page or section.
    pub url: Option<String>,
    /// The page's title.
    pub title: Option<String>,
    /// The nearest heading, or all of them.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub headings: Option<String>,
    /// The module.
    pub module: Option<String>,
    /// The id of the page.
    pub document: Option<String>,
    /// The id of the passage.
    pub chunk: Option<String>,
    /// The position of the passage on the page.
    pub index: Option<String>,
    /// The length of the passage in tokens.
    pub tokens: Option<String>,
}

/// Known field names for each role, the most likely first.
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

/// Fields of Docent's own collections, absent in books without versions and locales.
pub const VERSION: &str = "version";
/// The locale of a passage.
pub const LOCALE: &str = "locale";
/// Set if another version is the default.
pub const OTHER_VERSION: &str = "other_version";
/// Set if another locale is the default.
pub const OTHER_LOCALE: &str = "other_locale";

impl Fields {
    /// The fields that Docent itself writes.
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

    /// Recognizes the fields from some points; names in `pinned` take precedence.
    pub fn recognize(points: &[Value], pinned: &Self) -> Self {
        let find = |pinned: &Option<String>, names: &[&str], fits: fn(&Value) -> bool| {
            let have =
                |name: &str| points.iter().filter(|point| look_up(point, name).is_some_and(fits)).count();
            // If several names are equally common, take the most likely one.
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

    /// The passage stored in a point; `None` if it has no text.
    pub fn chunk(&self, point: &str, payload: &Value) -> Option<Chunk> {
        let content = self.text.as_ref().and_then(|name| look_up(payload, name)).and_then(as_text)?;
        let mut chunk = self.place(point, payload);
        if chunk.token_count == 0 {
            chunk.token_count = content.split_whitespace().count() as u32;
        }
        chunk.content = content;
        (!chunk.content.trim().is_empty()).then_some(chunk)
    }

    /// The passage without its text.
    pub fn place(&self, point: &str, payload: &Value) -> Chunk {
        let value = |field: &Option<String>| field.as_ref().and_then(|name| look_up(payload, name));
        let text = |field: &Option<String>| value(field).and_then(as_text);
        let url = text(&self.url).unwrap_or_default();
        let page = url.split('#').next().unwrap_or_default();
        let document_id = text(&self.document).unwrap_or_else(|| page.to_owned());
        let title = text(&self.title);
        let mut hierarchy = value(&self.headings).map(as_list).unwrap_or_default();
        // A path of headings often begins with the page title.
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
        let id = name.parse().unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()));
        let mut chunk = Chunk::new(id, document_id, "");
        chunk.index = number(&self.index).unwrap_or_default();
        chunk.section = section.map_or_else(|| section_of(page, &hierarchy), |section| section as u32);
        chunk.page_title = title.or_else(|| hierarchy.first().cloned()).unwrap_or_default();
        chunk.module_name = text(&self.module).unwrap_or_default();
        chunk.token_count = number(&self.tokens).unwrap_or_default();
        chunk.heading = heading;
        chunk.heading_hierarchy = hierarchy;
        chunk.url = url;
        chunk
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

/// A section number derived from the headings, for collections that do not number sections.
fn section_of(page: &str, hierarchy: &[String]) -> u32 {
    xxh3_64(format!("{page}\u{0}{}", hierarchy.join("\u{0}")).as_bytes()) as u32
}

/// The value at a dotted path; a field whose name contains the dots takes precedence.
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

/// The fields Docent writes for the passage in row `row`.
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
    for (name, value) in [(VERSION, &chunk.edition.version), (LOCALE, &chunk.edition.locale)] {
        if let Some(value) = value {
            put(name, json!(value));
        }
    }
    let others =
        [(OTHER_VERSION, chunk.edition.is_other_version), (OTHER_LOCALE, chunk.edition.is_other_locale)];
    for (name, _) in others.into_iter().filter(|(_, is_other)| *is_other) {
        put(name, json!(true));
    }
    put("content", json!(chunk.content));
    put("token_count", json!(chunk.token_count));
    if !chunk.section_kind.is_body() {
        put("section_kind", json!(chunk.section_kind.name()));
    }
    if chunk.continues {
        put("continues", json!(true));
    }
    if chunk.breaks_off {
        put("breaks_off", json!(true));
    }
    if !chunk.figures.is_empty() {
        put("figures", json!(chunk.figures));
    }
    if let Some(pdf) = &chunk.pdf {
        put("pdf", json!(pdf));
    }
    put("created_at", json!(created_at));
    put("row", json!(row));
    if let Some(key) = key {
        put("key", json!(format!("{key:032x}")));
    }
    payload(fields)
}

/// The passage exactly as Docent wrote it; its text is empty if it was not requested.
pub fn read_own(payload: &Value) -> Option<Chunk> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| payload.get(name).and_then(as_number);
    let is_set = |name: &str| payload.get(name).and_then(Value::as_bool).unwrap_or_default();
    let id = text("chunk_id")?.parse().ok()?;
    let mut chunk = Chunk::new(id, text("document_id")?, text("content").unwrap_or_default());
    chunk.index = number("chunk_index")?;
    chunk.section = number("section")?;
    chunk.url = text("url")?;
    chunk.page_title = text("page_title")?;
    chunk.heading = text("heading");
    chunk.heading_hierarchy = payload.get("heading_hierarchy").map(as_list).unwrap_or_default();
    chunk.book_name = text("book_name").unwrap_or_default();
    chunk.module_name = text("module_name")?;
    chunk.edition = Edition {
        version: text(VERSION),
        locale: text(LOCALE),
        is_other_version: is_set(OTHER_VERSION),
        is_other_locale: is_set(OTHER_LOCALE),
    };
    chunk.token_count = number("token_count")?;
    chunk.section_kind =
        payload.get("section_kind").and_then(Value::as_str).map(SectionKind::named).unwrap_or_default();
    chunk.continues = is_set("continues");
    chunk.breaks_off = is_set("breaks_off");
    let figures = payload.get("figures").cloned();
    chunk.figures = figures.and_then(|figures| serde_json::from_value(figures).ok()).unwrap_or_default();
    chunk.pdf = text("pdf");
    Some(chunk)
}

/// A JSON object as a Qdrant payload.
pub fn payload(fields: Map<String, Value>) -> Payload {
    Payload::from(fields)
}

/// A payload as JSON.
pub fn json_of(payload: std::collections::HashMap<String, qdrant_client::qdrant::Value>) -> Value {
    let fields: BTreeMap<String, Value> =
        payload.into_iter().map(|(name, value)| (name, value.into_json())).collect();
    fields.into_iter().collect::<Map<_, _>>().into()
}
