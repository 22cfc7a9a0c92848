//! Parses a folder of Docusaurus pages and prints every heading with its address.
//!
//! `cargo run -p docent-examples --bin parse_book -- FOLDER https://example.org/docs`

#![allow(clippy::print_stdout)]

use std::path::Path;

use anyhow::Context;
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::{Format, parse_page};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("usage: parse_book FOLDER URL")?;
    let url = arguments.next().context("usage: parse_book FOLDER URL")?;
    let site = Site::new(Layout::Docusaurus, Base::Published(url));
    print_pages(Path::new(&folder), "", &site)
}

fn print_pages(root: &Path, folder: &str, site: &Site) -> anyhow::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(root.join(folder))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = format!("{folder}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            print_pages(root, &format!("{path}/"), site)?;
        } else if Format::of(&path).is_some() {
            let bytes = std::fs::read(entry.path())?;
            // Partials and included files are relative to the page.
            let parent = entry.path().parent().unwrap_or(root).to_owned();
            let mut load = |included: &str| std::fs::read_to_string(parent.join(included)).ok();
            let (page, warnings) = parse_page(&path, &bytes, site, &mut load);
            for warning in warnings {
                println!("warning: {}: {}", warning.path, warning.message);
            }
            for section in page.iter().flat_map(|page| &page.sections) {
                let Some(heading) = &section.heading else { continue };
                let url = page.as_ref().map_or("", |page| page.url.as_str());
                let anchor = heading.anchor.as_ref().map_or(String::new(), |anchor| format!("#{anchor}"));
                println!(
                    "{:indent$}{} {url}{anchor}",
                    "",
                    heading.text,
                    indent = 2 * usize::from(heading.level - 1)
                );
            }
        }
    }
    Ok(())
}
