//! `docent doctor`: check everything a command would need, and say what to do.

use std::path::Path;
use std::time::Instant;

use docent_backends::index::embedded::generation;
use docent_backends::session::sql::Place;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::{BAD, GOOD, Output, STRONG, WARN};
use crate::settings::{SessionsKind, Settings};

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Good,
    Warning,
    Bad,
}

/// One line of the doctor's findings.
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
pub fn run(settings: Result<Settings, Failure>, output: &Output) -> Result<(), Failure> {
    let findings = match settings {
        Ok(settings) => examine(&settings),
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

fn examine(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![configuration(), model(settings)];
    match settings.data_dir() {
        Ok(folder) => {
            findings.push(permissions(&folder));
            findings.push(index(&folder.join("index"), settings));
        }
        Err(failure) => findings.push(Finding::bad("data folder", failure)),
    }
    findings.push(conversations(settings));
    findings.extend(keys(settings));
    findings
}

fn configuration() -> Finding {
    let file = crate::settings::DEFAULT_FILE;
    if Path::new(file).is_file() {
        Finding::good("configuration", format!("{file} is read and understood"))
    } else {
        Finding::good("configuration", format!("no {file}: the defaults are used"))
    }
}

fn model(settings: &Settings) -> Finding {
    let start = Instant::now();
    match compose::embedder(settings) {
        Ok(Some(embedder)) => {
            let took = (Instant::now() - start).as_millis();
            Finding::good("embedder", format!("{} loaded in {took} ms", embedder.id()))
        }
        Ok(None) => Finding::warning(
            "embedder",
            "none: search is by keywords only",
            "remove embedder.kind to use the bundled model",
        ),
        Err(failure) => Finding::bad("embedder", failure),
    }
}

/// Tries what an ingest would do, and leaves nothing behind.
fn permissions(folder: &Path) -> Finding {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    match tempfile::tempfile_in(existing) {
        Ok(_) if existing == folder => {
            Finding::good("data folder", format!("{} can be written", folder.display()))
        }
        Ok(_) => Finding::good("data folder", format!("{} will be created", folder.display())),
        Err(error) => Finding::bad(
            "data folder",
            Failure::new(Exit::Failed, format!("{} cannot be written: {error}", existing.display()))
                .hint("check who may write there, or choose another folder with --data-dir"),
        ),
    }
}

fn index(folder: &Path, settings: &Settings) -> Finding {
    let examined = generation::current(folder).and_then(|name| {
        let Some(name) = name else { return Ok(None) };
        let manifest = generation::read_manifest(&folder.join(&name))?;
        generation::check_files(&folder.join(&name), &manifest, true)?;
        Ok(Some((name, manifest)))
    });
    match examined {
        Ok(None) => Finding::warning(
            "index",
            "no book ingested: the sample book answers",
            "run `docent ingest FOLDER`",
        ),
        Ok(Some((name, manifest))) => {
            let configured = compose::embedder(settings).ok().flatten().map(|embedder| embedder.id().clone());
            match configured {
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
                    format!(
                        "{name}: {} pages, {} passages, every file as published",
                        manifest.pages, manifest.chunks
                    ),
                ),
            }
        }
        Err(error) => Finding::bad("index", compose::index_failure(error)),
    }
}

/// Opens the store as a command would, and leaves it as it was.
fn conversations(settings: &Settings) -> Finding {
    const CHECK: &str = "conversations";
    if settings.sessions.kind == SessionsKind::Memory {
        return Finding::good(CHECK, "kept in memory: they go with the program");
    }
    let place = match compose::sessions_place(settings, settings.sessions.kind) {
        Ok(Place::File(path)) if !path.exists() => {
            return Finding::good(CHECK, format!("none yet: {} will be created", path.display()));
        }
        Ok(place) => place,
        Err(failure) => return Finding::bad(CHECK, failure),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let examined = runtime.map_err(|error| anyhow::Error::from(error).into());
    match examined.and_then(|runtime| runtime.block_on(compose::examine_sessions(&place))) {
        Ok(found) => Finding::good(CHECK, format!("{} in {place}, {}", found.conversations, found.server)),
        Err(failure) => Finding::bad(CHECK, failure),
    }
}

/// Keys are judged by their shape alone, and never shown.
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
    if let Some(url) = &settings.qdrant.url {
        let sound = url.starts_with("http://") || url.starts_with("https://");
        findings.push(if sound {
            Finding::good(
                "qdrant",
                "QDRANT_URL is an address; this version keeps its index in the data folder",
            )
        } else {
            Finding::warning(
                "qdrant",
                "QDRANT_URL is not an address",
                "it should start with http:// or https://",
            )
        });
    }
    findings
}
