//! The files of the chat page and the widget, compiled into the binary and prepared for sending.
//!
//! Comments and indentation are left out, and the rest is compressed once. Each script for other sites' pages and the modules it shares with the chat
//! page are joined into one classic script: such a page may allow only that file, and needs no further requests.
//!
//! Invariant: every file is text and only changes with the binary, so that a hash of it is a sufficient ETag.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};

static WEB: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web");
/// The scripts for other sites' pages.
const FOR_OTHER_SITES: [&str; 2] = ["widget.js", "docsearch.js"];

/// A file as it is sent.
pub struct Asset {
    /// The value of the `Content-Type` header.
    pub kind: &'static str,
    /// The content.
    pub content: String,
    /// The same, compressed with gzip.
    pub gzip: Vec<u8>,
    /// The value of the `ETag` header.
    pub tag: String,
}

/// The file with this name.
pub fn get(name: &str) -> Option<&'static Asset> {
    static ASSETS: LazyLock<HashMap<&str, Asset>> = LazyLock::new(|| {
        let names = WEB.files().filter_map(|file| file.path().to_str());
        names.filter_map(|name| Some((name, prepare(name)?))).collect()
    });
    ASSETS.get(name)
}

fn prepare(name: &str) -> Option<Asset> {
    let source = source(name)?;
    let (kind, content) = match name.rsplit_once('.')?.1 {
        "html" => ("text/html; charset=utf-8", source.to_owned()),
        "css" => ("text/css; charset=utf-8", without_comments(source)),
        "js" if FOR_OTHER_SITES.contains(&name) => ("text/javascript; charset=utf-8", bundle(name)?),
        "js" => ("text/javascript; charset=utf-8", without_comments(source)),
        _ => return None,
    };
    let (tag, gzip) = (tag(&content), gzip(&content)?);
    Some(Asset { kind, content, gzip, tag })
}

fn gzip(text: &str) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).ok()?;
    encoder.finish().ok()
}

/// The `ETag` of a text.
pub fn tag(content: &str) -> String {
    format!("\"{:x}\"", xxhash_rust::xxh3::xxh3_64(content.as_bytes()))
}

fn source(name: &str) -> Option<&'static str> {
    WEB.get_file(name)?.contents_utf8()
}

/// Leaves out indentation, empty lines and the comments that have lines of their own.
fn without_comments(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut in_comment = false;
    for line in source.lines().map(str::trim_start) {
        in_comment |= line.starts_with("/*");
        if !in_comment && !line.is_empty() && !line.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
        in_comment &= !line.ends_with("*/");
    }
    kept
}

/// A module and everything it imports as one classic script; nothing if an imported file is missing.
fn bundle(entry: &str) -> Option<String> {
    let mut script = String::from("(function () {\n\"use strict\";\nconst modules = {};\n");
    add(entry, &mut Vec::new(), &mut script)?;
    script.push_str("})();\n");
    Some(script)
}

/// Adds a file, after the files it imports. A module becomes a function that returns what the module exports; a
/// style sheet becomes its text.
fn add(name: &str, added: &mut Vec<String>, script: &mut String) -> Option<()> {
    if added.iter().any(|known| known == name) {
        return Some(());
    }
    added.push(name.to_owned());
    let source = without_comments(source(name)?);
    if name.ends_with(".css") {
        let text = serde_json::to_string(&source).ok()?;
        return writeln!(script, "modules[\"{name}\"] = {text};").ok();
    }
    let (mut body, mut exported) = (String::with_capacity(source.len()), Vec::new());
    for line in source.lines() {
        if let Some((names, file)) = import(line) {
            add(file, added, script)?;
            writeln!(body, "const {names} = modules[\"{file}\"];").ok()?;
        } else {
            let declaration = line.strip_prefix("export ");
            exported.extend(declaration.map(declared));
            writeln!(body, "{}", declaration.unwrap_or(line)).ok()?;
        }
    }
    let exported = exported.join(", ");
    write!(script, "modules[\"{name}\"] = (function () {{\n{body}return {{ {exported} }};\n}})();\n").ok()
}

/// What an import declares, as a pattern, and the file it comes from.
fn import(line: &str) -> Option<(String, &str)> {
    let (names, file) = line.strip_prefix("import ")?.split_once(" from \"./")?;
    Some((names.trim_start_matches("* as ").replace(" as ", ": "), file.strip_suffix("\";")?))
}

/// The name that a declaration declares.
fn declared(declaration: &str) -> &str {
    let keywords = ["async", "function", "function*", "class", "const"];
    let name = declaration.split(' ').find(|word| !keywords.contains(word)).unwrap_or_default();
    name.split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
        let names = WEB.files().map(|file| file.path().to_str().unwrap());
        names.filter(|name| name.ends_with(".js")).map(|name| (name, source(name).unwrap()))
    }

    #[test]
    fn comments_and_indentation_are_left_out() {
        let source =
            "// A list.\n\n/** Both\n * lines. */\nexport const list = [\n  1, // one\n];\n/* One line. */\n";
        assert_eq!(without_comments(source), "export const list = [\n1, // one\n];\n");
    }

    #[test]
    fn every_file_is_sent() {
        for file in WEB.files() {
            let name = file.path().to_str().unwrap();
            assert!(get(name).is_some_and(|asset| !asset.content.is_empty()), "{name}");
        }
    }

    /// Text with several lines would lose its indentation, and an import with several lines would not be found.
    #[test]
    fn templates_and_imports_are_on_one_line() {
        for (name, source) in scripts() {
            for line in source.lines() {
                assert_eq!(line.matches('`').count() % 2, 0, "{name}: {line}");
                assert!(!line.starts_with("import ") || import(line).is_some(), "{name}: {line}");
            }
        }
    }

    #[test]
    fn scripts_for_other_sites_are_one_file_with_each_shared_module_once() {
        for name in FOR_OTHER_SITES {
            let script = &get(name).unwrap().content;
            assert!(!script.lines().any(|line| line.starts_with("import ") || line.starts_with("export ")));
            for module in ["api.js", "elements.js", "search.js", "base.css"] {
                assert_eq!(
                    script.matches(&format!("modules[\"{module}\"] = ")).count(),
                    1,
                    "{name}: {module}"
                );
            }
        }
        let widget = &get("widget.js").unwrap().content;
        for module in ["answer.js", "citation.js", "prose.js"] {
            assert_eq!(widget.matches(&format!("modules[\"{module}\"] = ")).count(), 1, "{module}");
        }
        assert!(
            widget.contains("const { element, icon, iconButton, openInThisTab } = modules[\"elements.js\"];")
        );
        assert!(widget.contains("const floating = modules[\"floating.js\"];"));
        assert!(widget.contains("return { show, hide };"));
    }

    #[test]
    fn the_chat_page_has_at_most_60_kilobytes_of_script() {
        let mut names = vec!["chat.js", "theme.js"];
        let mut next = 0;
        while let Some(name) = names.get(next) {
            next += 1;
            for (_, file) in source(name).unwrap().lines().filter_map(import) {
                if !names.contains(&file) {
                    names.push(file);
                }
            }
        }
        let bytes: usize = names.iter().map(|name| get(name).unwrap().content.len()).sum();
        assert!(bytes <= 60 * 1024, "{bytes} bytes in {names:?}");
        // With what is loaded later, as it is sent.
        let modules =
            WEB.files().filter_map(|file| file.path().to_str()).filter(|name| name.ends_with(".js"));
        let all: Vec<&str> = modules.filter(|name| !FOR_OTHER_SITES.contains(name)).collect();
        let sent: usize = all.iter().map(|name| get(name).unwrap().gzip.len()).sum();
        assert!(sent <= 60 * 1024, "{sent} bytes in {all:?}");
    }
}
