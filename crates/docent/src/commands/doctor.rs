//! `docent doctor`: check everything that commands need, and suggest fixes.

use std::path::Path;
use std::time::Instant;

use docent_backends::index::embedded::generation;
use docent_backends::session::sql::Place;
use docent_backends::source::site::is_address;
use docent_core::embed::{EmbedderId, Purpose};
use docent_core::generate::{GenerateError, GenerateRequest, Message, Role};
use docent_core::index::{Index, IndexError};
use futures_util::StreamExt as _;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::{BAD, GOOD, Output, STRONG, WARN};
use crate::settings::{IndexKind, SessionsKind, Settings};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Good,
    Warning,
    Bad,
}

/// A check with its result.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    health: Health,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn good(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, health: Health::Good, message: message.into(), hint: None }
    }

    fn warning(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, health: Health::Warning, message: message.into(), hint: Some(hint.into()) }
    }

    fn bad(check: &'static str, failure: Failure) -> Self {
        Self { check, health: Health::Bad, message: failure.message, hint: failure.hint }
    }
}

/// Runs the command.
pub async fn run(
    settings: Result<Settings, Failure>,
    config: Option<&Path>,
    output: &Output,
) -> Result<(), Failure> {
    let findings = match settings {
        Ok(settings) => examine(&settings, config).await,
        Err(failure) => vec![Finding::bad("configuration", failure)],
    };
    if output.json {
        output.object(&findings)?;
    } else {
        findings.iter().try_for_each(|finding| show(finding, output))?;
    }
    match findings.iter().filter(|finding| finding.health == Health::Bad).count() {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Failed, "one check failed")),
        failed => Err(Failure::new(Exit::Failed, format!("{failed} checks failed"))),
    }
}

fn show(finding: &Finding, output: &Output) -> Result<(), Failure> {
    let (style, mark) = match finding.health {
        Health::Good => (GOOD, "ok  "),
        Health::Warning => (WARN, "warn"),
        Health::Bad => (BAD, "bad "),
    };
    output.line(format!(
        "{style}{mark}{style:#} {STRONG}{:<14}{STRONG:#} {}",
        finding.check, finding.message
    ))?;
    match &finding.hint {
        Some(hint) => output.line(format!("     {:<14} {hint}", "")),
        None => Ok(()),
    }
}

async fn examine(settings: &Settings, config: Option<&Path>) -> Vec<Finding> {
    let mut findings = vec![configuration(config)];
    findings.extend(sources(settings));
    findings.extend(reranker(settings).await);
    findings.push(model(settings).await);
    match settings.data_dir() {
        Ok(folder) => {
            findings.push(permissions(&folder));
            match settings.index_kind() {
                IndexKind::Embedded => {
                    let (embedder, id) = embedder(settings).await;
                    findings.extend([embedder, index(&folder.join("index"), id)]);
                }
                IndexKind::Qdrant => findings.extend(on_server(settings).await),
            }
        }
        Err(failure) => findings.push(Finding::bad("data folder", failure)),
    }
    findings.push(conversations(settings).await);
    findings.extend(keys(settings));
    findings
}

/// The configuration file: the one given by `--config`, or the default one.
fn configuration(named: Option<&Path>) -> Finding {
    let file = named.unwrap_or(Path::new(crate::settings::DEFAULT_FILE)).display();
    match named.is_some() || Path::new(crate::settings::DEFAULT_FILE).is_file() {
        true => Finding::good("configuration", format!("{file} is valid")),
        false => Finding::good("configuration", format!("no {file}; using the defaults")),
    }
}

/// The sources listed in `docent.toml`; sites are not contacted.
fn sources(settings: &Settings) -> Option<Finding> {
    let listed = &settings.sources;
    if listed.is_empty() {
        return None;
    }
    let missing: Vec<&str> = listed
        .iter()
        .map(|source| source.location.as_str())
        .filter(|location| !is_address(location) && !Path::new(location).exists())
        .collect();
    Some(match missing.as_slice() {
        [] => {
            let count =
                if listed.len() == 1 { "one source".to_owned() } else { format!("{} sources", listed.len()) };
            Finding::good("sources", format!("{count} listed for `docent ingest`"))
        }
        missing => Finding::bad(
            "sources",
            Failure::new(Exit::NotConfigured, format!("{} does not exist", missing.join(", ")))
                .hint("locations in [[sources]] are relative to the folder of docent.toml"),
        ),
    })
}

/// Tries the embedder with one word; also returns its identity.
async fn embedder(settings: &Settings) -> (Finding, Option<EmbedderId>) {
    let start = Instant::now();
    let embedder = match compose::embedder(settings).await {
        Ok(Some(embedder)) => embedder,
        Ok(None) => {
            let message = "none: search uses keywords only";
            return (
                Finding::warning("embedder", message, "remove embedder.kind to use the bundled model"),
                None,
            );
        }
        Err(failure) => return (Finding::bad("embedder", failure), None),
    };
    let id = embedder.id().clone();
    let loaded = start.elapsed().as_millis();
    let start = Instant::now();
    let finding = match embedder.embed(&["word"], Purpose::Query).await {
        Ok(_) if settings.remote_embedder().is_some() => {
            Finding::good("embedder", format!("{id} answers in {} ms", start.elapsed().as_millis()))
        }
        Ok(_) => Finding::good("embedder", format!("{id} loaded in {loaded} ms")),
        Err(error) => Finding::bad("embedder", compose::embed_failure(error)),
    };
    (finding, Some(id))
}

/// Tries the reranker with one word, if one is configured.
async fn reranker(settings: &Settings) -> Option<Finding> {
    let reranker = match compose::reranker(settings).await {
        Ok(reranker) => reranker?,
        Err(failure) => return Some(Finding::bad("reranker", failure)),
    };
    let start = Instant::now();
    Some(match reranker.rerank("word", &["word"]).await {
        Ok(_) => Finding::good(
            "reranker",
            format!("{} answers in {} ms", reranker.name(), start.elapsed().as_millis()),
        ),
        Err(error) => Finding::bad("reranker", compose::rerank_failure(error)),
    })
}

/// Asks the model for one word.
async fn model(settings: &Settings) -> Finding {
    let generator = match compose::generator(settings) {
        Ok(Some(generator)) => generator,
        Ok(None) => return Finding::good("model", "none configured; answers quote the book"),
        Err(failure) => return Finding::bad("model", failure),
    };
    let mut request = GenerateRequest::new(vec![Message::text(Role::User, "Reply with the word ok.")]);
    request.max_output_tokens = Some(16);
    let start = Instant::now();
    let answered = async {
        let mut events = generator.generate(&request).await?;
        while let Some(event) = events.next().await {
            event?;
        }
        Ok::<(), GenerateError>(())
    };
    match answered.await {
        Ok(()) => {
            let time = start.elapsed().as_millis();
            Finding::good("model", format!("{} answers in {time} ms", generator.model()))
        }
        Err(error) => {
            let failure = Failure::new(Exit::Unavailable, format!("{}: {error}", generator.model()));
            Finding::bad("model", failure.hint("until this is fixed, answers quote the book"))
        }
    }
}

/// Checks that an ingest could write to the data folder, and leaves nothing behind.
fn permissions(folder: &Path) -> Finding {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    match tempfile::tempfile_in(existing) {
        Ok(_) if existing == folder => {
            Finding::good("data folder", format!("{} is writable", folder.display()))
        }
        Ok(_) => Finding::good("data folder", format!("{} will be created", folder.display())),
        Err(error) => Finding::bad(
            "data folder",
            Failure::new(Exit::Failed, format!("{} is not writable: {error}", existing.display()))
                .hint("check the permissions, or choose another folder with --data-dir"),
        ),
    }
}

fn index(folder: &Path, configured: Option<EmbedderId>) -> Finding {
    let examined = generation::current(folder).and_then(|name| {
        let Some(name) = name else { return Ok(None) };
        let manifest = generation::read_manifest(&folder.join(&name))?;
        generation::check_files(&folder.join(&name), &manifest, true)?;
        Ok(Some((name, manifest)))
    });
    match examined {
        Ok(None) => Finding::warning(
            "index",
            "no book ingested; using the built-in sample book",
            "run `docent ingest FOLDER`",
        ),
        Ok(Some((name, manifest))) => match configured {
            Some(id) if manifest.embedder.width > 0 && id != manifest.embedder => Finding::bad(
                "index",
                Failure::new(
                    Exit::Failed,
                    format!("{name} was made with {}, but {id} is configured", manifest.embedder),
                )
                .hint("run `docent ingest` to embed the book again"),
            ),
            _ => Finding::good(
                "index",
                format!("{name}: {} pages, {} passages, all files intact", manifest.pages, manifest.chunks),
            ),
        },
        Err(error) => Finding::bad("index", compose::index_failure(error)),
    }
}

/// The Qdrant server, the collection and how its fields are used, and the embedder for it.
async fn on_server(settings: &Settings) -> Vec<Finding> {
    let index = match compose::qdrant(settings) {
        Ok(index) => index,
        Err(failure) => return vec![Finding::bad("qdrant", failure)],
    };
    let server = match index.server_version().await {
        Ok(version) => Finding::good("qdrant", format!("connected, version {version}")),
        Err(error) => return vec![Finding::bad("qdrant", compose::index_failure(error))],
    };
    let (found, vectors) = match index.describe().await {
        Ok(description) => (index.explain().await, Some(description)),
        Err(error) => (Err(error), None),
    };
    let collection = match found {
        Ok(explained) => Finding::good("index", explained),
        Err(IndexError::Empty) if settings.qdrant.collection_name.is_none() => Finding::warning(
            "index",
            "no book ingested; using the built-in sample book",
            "run `docent ingest FOLDER`",
        ),
        Err(error) => Finding::bad("index", compose::index_failure(error)),
    };
    let fitting = match &vectors {
        Some(description) => settings.fitting(&description.embedder),
        None => Ok(settings.clone()),
    };
    let (embedder, id) = match fitting {
        Ok(settings) => embedder(&settings).await,
        Err(failure) => (Finding::bad("embedder", failure), None),
    };
    let mut findings = vec![server, collection, embedder];
    if let (Some(id), Some(description)) = (id, vectors)
        && description.embedder.width > 0
        && !description.embedder.accepts(&id)
    {
        let message = format!("the vectors were made with {}, but {id} is configured", description.embedder);
        findings.push(Finding::bad(
            "index",
            Failure::new(Exit::NotConfigured, message).hint("configure the embedder that made them"),
        ));
    }
    findings
}

/// Opens the store as a command would, without changing it.
async fn conversations(settings: &Settings) -> Finding {
    const CHECK: &str = "conversations";
    if settings.sessions.kind == SessionsKind::Memory {
        return Finding::good(CHECK, "in memory (lost on exit)");
    }
    let place = match compose::sessions_place(settings, settings.sessions.kind) {
        Ok(Place::File(path)) if !path.exists() => {
            return Finding::good(CHECK, format!("none yet; {} will be created", path.display()));
        }
        Ok(place) => place,
        Err(failure) => return Finding::bad(CHECK, failure),
    };
    match compose::examine_sessions(&place).await {
        Ok(found) => Finding::good(CHECK, format!("{} in {place}, {}", found.conversations, found.server)),
        Err(failure) => Finding::bad(CHECK, failure),
    }
}

/// Checks the format of API keys, without sending or printing them.
fn keys(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut key = |name: &'static str,
                   variable: &str,
                   key: &Option<SecretString>,
                   shape: &dyn Fn(&str) -> bool,
                   expected: &str| {
        if let Some(key) = key {
            findings.push(if shape(key.expose_secret()) {
                Finding::good(name, format!("{variable} is set and looks like a key"))
            } else {
                Finding::warning(
                    name,
                    format!("{variable} is set but does not look like a key"),
                    format!("it should {expected}; check for quotes and spaces around it"),
                )
            });
        }
    };
    let plain =
        |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '|'));
    let own_url = settings.openai.base_url.is_some();
    key(
        "openai",
        "OPENAI_API_KEY",
        &settings.openai.api_key,
        &|key| (own_url || (key.starts_with("sk-") && key.len() >= 20)) && plain(key),
        "start with sk-",
    );
    key(
        "cohere",
        "COHERE_API_KEY",
        &settings.cohere.api_key,
        &|key| key.len() == 40 && plain(key),
        "have 40 letters and digits",
    );
    key(
        "qdrant",
        "QDRANT_API_KEY",
        &settings.qdrant.api_key,
        &|key| key.len() >= 16 && plain(key),
        "have at least 16 letters and digits",
    );
    findings
}
