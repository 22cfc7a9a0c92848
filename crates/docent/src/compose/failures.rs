//! Errors as the user sees them: the message, the exit code and a hint.
//!
//! Invariant: a hint names a command or a setting that exists.

use docent_core::agent::AskError;
use docent_core::embed::{EmbedError, EmbedderId};
use docent_core::index::{IndexError, NoSuchPart};
use docent_core::rerank::RerankError;
use docent_core::retrieve::RetrieveError;
use docent_core::session::SessionError;

use crate::exit::{Exit, Failure, nearest};

/// A session error as the user sees it.
pub fn session_failure(error: SessionError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        SessionError::NotFound(_) => failure.hint("run `docent sessions list` to see all conversations"),
        SessionError::Unavailable(_) => Failure { exit: Exit::Unavailable, ..failure },
        _ => failure,
    }
}

/// A failed turn as the user sees it.
pub fn ask_failure(error: AskError) -> Failure {
    match error {
        AskError::Invalid(error) => Failure::usage(error),
        AskError::NoSuchPart(error) => no_such_part(error),
        AskError::Retrieve(error) => retrieve_failure(error),
        AskError::Session(error) => session_failure(error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// An unknown book, module, version or locale as the user sees it, with a suggestion.
pub fn no_such_part(error: NoSuchPart) -> Failure {
    let failure = Failure::usage(&error);
    let (name, known, what) = (error.name(), error.known(), error.kind());
    // Names of versions are too similar to guess which one is meant.
    let is_edition = matches!(error, NoSuchPart::Version { .. } | NoSuchPart::Locale { .. });
    match nearest(name, known.iter().map(String::as_str)).filter(|_| !is_edition) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None if known.is_empty() && is_edition => failure.hint(format!("the book has no {what}")),
        None if known.is_empty() => failure.hint("the index contains one book without a name"),
        None if known.len() > MOST_NAMED => {
            let some = known[..MOST_NAMED].join(", ");
            failure.hint(format!("available {what} include {some}; run `docent modules` for the full list"))
        }
        None => failure.hint(format!("available {what}: {}", known.join(", "))),
    }
}

/// The maximum number of names in a hint.
const MOST_NAMED: usize = 12;

/// An index error as the user sees it.
pub fn index_failure(error: IndexError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        IndexError::Empty => {
            Failure { exit: Exit::NotConfigured, ..failure }.hint("run `docent ingest FOLDER`")
        }
        // The list of sources may be part of what is damaged.
        IndexError::Damaged(_) => failure.hint("run `docent ingest SOURCE` again to rebuild it"),
        IndexError::OtherFormat { .. } => {
            failure.hint("run `docent ingest` to rebuild it from the same sources")
        }
        IndexError::Unavailable(_) => Failure { exit: Exit::Unavailable, ..failure },
        IndexError::Unusable(_) | IndexError::Gone(_) => Failure { exit: Exit::NotConfigured, ..failure },
        IndexError::WrongWidth { .. } => Failure { exit: Exit::NotConfigured, ..failure }
            .hint("run `docent ingest` to embed the book again"),
        IndexError::OtherEmbedder { made_with, .. } => {
            let hint = match made_with.is_unknown() {
                true => {
                    "set embedder.kind and embedder.model to the embedder that made the vectors".to_owned()
                }
                false => {
                    let way_back = way_back(&made_with);
                    format!("run `docent ingest` to embed the book again, or set {way_back}")
                }
            };
            Failure { exit: Exit::NotConfigured, ..failure }.hint(hint)
        }
        IndexError::Io { source, .. } => disk_hint(failure, &source),
        _ => failure,
    }
}

fn disk_hint(failure: Failure, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            failure.hint("free some space and run the same command again; the old index is still in use")
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint("check the permissions, or choose another folder with --data-dir")
        }
        _ => failure,
    }
}

/// An embedder error as the user sees it.
pub fn embed_failure(error: EmbedError) -> Failure {
    let exit = match error {
        EmbedError::Unavailable(_) => Exit::Unavailable,
        EmbedError::Unusable(_) => Exit::NotConfigured,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// A reranker error as the user sees it.
pub fn rerank_failure(error: RerankError) -> Failure {
    let exit = match error {
        RerankError::Unavailable(_) => Exit::Unavailable,
        _ => Exit::NotConfigured,
    };
    Failure::new(exit, error)
}

/// A retrieval error as the user sees it.
pub fn retrieve_failure(error: RetrieveError) -> Failure {
    match error {
        RetrieveError::Embed(error) => embed_failure(error),
        RetrieveError::Index(error) => index_failure(error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// The settings that select the embedder an index was made with.
fn way_back(id: &EmbedderId) -> String {
    let (kind, model) = id.name.split_once('/').unwrap_or((&id.name, ""));
    // The part after a plus sign identifies the prefixes.
    let model = model.split('+').next().unwrap_or_default();
    match kind {
        "local" => "embedder.kind = \"local\"".to_owned(),
        "onnx" => "embedder.kind = \"onnx\" and the folder and prefixes it was made with".to_owned(),
        kind => format!("embedder.kind = \"{kind}\" and embedder.model = \"{model}\""),
    }
}
