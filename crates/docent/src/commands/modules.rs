//! `docent modules`: list the modules of the book, its versions and its locales.

use docent_core::edition::Variant;
use docent_core::index::{Description, Modules};

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
        show(modules, "", output)?;
    }
    for (name, modules) in books {
        output.line(format!("{STRONG}{name}{STRONG:#}"))?;
        show(modules, "  ", output)?;
    }
    editions(&description, output)
}

/// The lines for versions and locales, if the book has any.
fn editions(description: &Description, output: &Output) -> Result<(), Failure> {
    for (what, variants) in [("versions", &description.versions), ("locales", &description.locales)] {
        if !variants.is_empty() {
            output.line(format!("{STRONG}{what}{STRONG:#}  {}", listed(variants)))?;
        }
    }
    Ok(())
}

/// The names of versions or locales, with their book if there are several; the default ones are marked.
pub fn listed(variants: &[Variant]) -> String {
    let shown = |variant: &Variant| {
        let mark = if variant.is_default { " (default)" } else { "" };
        match variant.book.as_str() {
            "" => format!("{}{mark}", variant.name),
            book => format!("{book} {}{mark}", variant.name),
        }
    };
    variants.iter().map(shown).collect::<Vec<_>>().join(", ")
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
