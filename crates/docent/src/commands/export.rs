//! `docent export`: copy the book to another index, including its vectors.

use docent_backends::export::export;

use super::ingest::explain;
use super::ingest::progress::Bars;
use crate::cli::Export;
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG};
use crate::settings::{IndexKind, Settings};

/// Runs the command.
pub async fn run(settings: &Settings, arguments: &Export, output: &Output) -> Result<(), Failure> {
    let (from, to) = match arguments.to {
        IndexKind::Qdrant => (IndexKind::Embedded, IndexKind::Qdrant),
        IndexKind::Embedded => (IndexKind::Qdrant, IndexKind::Embedded),
    };
    // A collection of another system does not name its embedder; the width and the settings determine it.
    let maker = match from {
        IndexKind::Qdrant => compose::maker(settings).await?,
        IndexKind::Embedded => None,
    };
    let (source, target) =
        (compose::index_target_of(settings, from)?, compose::index_target_of(settings, to)?);
    let folder = settings.index_folder()?;
    let exported = export(&folder, source.as_ref(), target.as_ref(), maker, &Bars::new(output)).await;
    let exported = exported.map_err(explain)?;
    if output.json {
        return output.object(&exported);
    }
    let (pages, chunks) = (exported.pages, exported.chunks);
    output.note(format!(
        "pages    {STRONG}{pages}{STRONG:#}\npassages {STRONG}{chunks}{STRONG:#}, copied with their vectors"
    ));
    output.note(format!("{FAINT}published {} · {}{FAINT:#}", exported.generation, exported.embedder));
    if settings.index_kind() != to {
        let name = match to {
            IndexKind::Qdrant => "qdrant",
            IndexKind::Embedded => "embedded",
        };
        output.note(format!("set index.kind = \"{name}\" to use it"));
    }
    Ok(())
}
