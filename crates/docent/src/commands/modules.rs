//! `docent modules`: list the modules of the book.

use docent_core::index::Modules;

use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let (description, is_sample) = compose::description(settings).await?;
    let (modules, books) = (&description.modules, &description.books);
    if output.json {
        return if books.is_empty() { output.object(modules) } else { output.object(books) };
    }
    if is_sample {
        output.note(format!("{FAINT}no book ingested yet; showing the built-in sample book{FAINT:#}"));
    }
    if books.is_empty() {
        return show(modules, "", output);
    }
    for (name, modules) in books {
        output.line(format!("{STRONG}{name}{STRONG:#}"))?;
        show(modules, "  ", output)?;
    }
    Ok(())
}

fn show(modules: &Modules, indent: &str, output: &Output) -> Result<(), Failure> {
    let widest = modules.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, module) in modules {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let label =
            module.label.as_ref().map_or_else(String::new, |label| format!("  {FAINT}{label}{FAINT:#}"));
        output.line(format!(
            "{indent}{STRONG}{name:<widest$}{STRONG:#}  {} page{}, {} passage{}{label}",
            module.pages,
            plural(module.pages),
            module.chunks,
            plural(module.chunks)
        ))?;
    }
    Ok(())
}
