//! `docent init`: look at a documentation project, write a `docent.toml` for it, and say what to do next.
//!
//! Invariant: an existing file is only replaced with `--force`.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use docent_backends::source::project::{self, Generator, Project};
use serde_json::json;

use crate::cli::Init;
use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output, STRONG};
use crate::settings::{Chat, is_web};

/// Runs the command.
pub fn run(arguments: &Init, output: &Output) -> Result<(), Failure> {
    let folder = &arguments.folder;
    if !folder.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{} is not a folder", folder.display())));
    }
    let Some(mut project) = project::find(folder) else {
        return Err(Failure::new(Exit::Failed, format!("no pages found in {}", folder.display())).hint(
            "run docent init in the folder of your documentation, or ingest a site: docent ingest https://…",
        ));
    };
    if let Some(url) = &arguments.base_url {
        if !is_web(url) {
            return Err(Failure::usage("--base-url must start with http:// or https://"));
        }
        project.base_url = Some(url.clone());
    }
    let usable = |logo: &Path| Chat { logo: Some(folder.join(logo)), ..Chat::default() }.logo().is_some();
    project.logo = project.logo.filter(|logo| usable(logo));
    let path = folder.join("docent.toml");
    write(&path, &configuration(&project), arguments.force)?;
    if output.json {
        return output.object(&json!({
            "file": path, "generator": project.generator.map(Generator::name), "location": project.location,
            "title": project.title, "base_url": project.base_url, "logo": project.logo,
        }));
    }
    let what = project
        .generator
        .map_or("a folder of pages".to_owned(), |generator| format!("a {} project", generator.name()));
    let place = if project.location == Path::new(".") {
        String::new()
    } else {
        format!(" in {}", project.location.display())
    };
    output.line(format!("Found {what}{place}; wrote {}.", path.display()))?;
    if project.base_url.is_none() {
        output.line(
            "Set base_url in it to the URL where the pages are published, so that citations link there.",
        )?;
    }
    let enter = if folder == Path::new(".") { String::new() } else { format!("cd {} && ", folder.display()) };
    output.line(format!("\n  {STRONG}{enter}docent ingest{STRONG:#}\n  {STRONG}docent serve{STRONG:#}"))?;
    output.line("\nThen add Docent to your site (https://docent.example.org stands for the address of your server):\n")?;
    output.line(pasted(project.generator))?;
    if let Some(generator) = project.generator {
        output.note(format!(
            "\n{FAINT}Or use the package for {}, which can also update the index after each build: docs/website.md{FAINT:#}",
            generator.name()
        ));
    }
    output.note(format!(
        "\n{FAINT}All settings: docs/reference.md. All ways to embed it: docs/website.md{FAINT:#}"
    ));
    Ok(())
}

fn write(path: &Path, text: &str, replaces: bool) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if replaces {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(Exit::Failed, format!("{} already exists", path.display()))
            .hint("use --force to replace it"),
        _ => Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display())),
    })
}

/// The text of `docent.toml`.
fn configuration(project: &Project) -> String {
    let literal = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = String::from("[[sources]]\n");
    let location = project.location.to_string_lossy().replace('\\', "/");
    let _ = writeln!(text, "location = {}", literal(&location));
    let _ = match &project.base_url {
        Some(url) => writeln!(text, "base_url = {}", literal(url)),
        None => writeln!(text, "# base_url = \"https://docs.example.org\"  # where the pages are published"),
    };
    text.push_str("\n[serve]\n");
    if let Some(title) = &project.title {
        let _ = writeln!(text, "title = {}", literal(title));
    }
    let _ = match project.base_url.as_deref().map(origin) {
        Some(origin) => writeln!(text, "cors_origins = [{}]  # sites with the widget", literal(origin)),
        None => writeln!(text, "# cors_origins = [\"https://docs.example.org\"]  # sites with the widget"),
    };
    if let Some(logo) = &project.logo {
        let logo = logo.to_string_lossy().replace('\\', "/");
        let _ = writeln!(text, "\n[chat]\nlogo = {}", literal(&logo));
    }
    text
}

/// The scheme and the host of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |at| &url[..start + at])
}

/// What the author adds to the site.
fn pasted(generator: Option<Generator>) -> &'static str {
    match generator {
        Some(Generator::Docusaurus) => {
            "  // docusaurus.config.js\n  scripts: [{ src: \"https://docent.example.org/widget.js\", async: true }],"
        }
        Some(Generator::MkDocs) => {
            "  # mkdocs.yml\n  extra_javascript:\n    - https://docent.example.org/widget.js"
        }
        Some(Generator::Sphinx) => {
            "  # conf.py\n  html_js_files = [\"https://docent.example.org/widget.js\"]"
        }
        Some(Generator::MdBook) => {
            "  <!-- theme/head.hbs -->\n  <script src=\"https://docent.example.org/widget.js\" async></script>"
        }
        Some(Generator::VitePress) => {
            "  // .vitepress/config.js\n  head: [[\"script\", { src: \"https://docent.example.org/widget.js\", async: \"\" }]],"
        }
        _ => "  <script src=\"https://docent.example.org/widget.js\" async></script>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_scheme_and_the_host() {
        assert_eq!(origin("https://mill.dev/docs/x"), "https://mill.dev");
        assert_eq!(origin("http://mill.dev:8080"), "http://mill.dev:8080");
    }
}
