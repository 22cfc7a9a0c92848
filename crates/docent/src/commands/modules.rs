//! `docent modules`: the parts of the book.

use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    let modules = &book.description.modules;
    if output.json {
        return output.object(modules);
    }
    if book.is_sample {
        output.note(format!("{FAINT}no book ingested yet; these are the sample book's{FAINT:#}"));
    }
    let widest = modules.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, module) in modules {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let label =
            module.label.as_ref().map_or_else(String::new, |label| format!("  {FAINT}{label}{FAINT:#}"));
        output.line(format!(
            "{STRONG}{name:<widest$}{STRONG:#}  {} page{}, {} passage{}{label}",
            module.pages,
            plural(module.pages),
            module.chunks,
            plural(module.chunks)
        ))?;
    }
    Ok(())
}
