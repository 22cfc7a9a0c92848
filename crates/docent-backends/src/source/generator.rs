//! What the configuration of MkDocs, VitePress and Sphinx says about a folder's pages.
//!
//! Only a few plain lines of it matter, and they are looked for as such: `mkdocs.yml` may hold
//! tags that no parser but its own knows, and the others' files are programs.
//!
//! Invariant: a configuration that is not understood means the generator's defaults.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use docent_core::layout::Layout;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The folder with the pages, when `path` is that of a MkDocs project.
pub(super) fn mkdocs_pages(path: &Path) -> Option<PathBuf> {
    let config = mkdocs_config(path)?;
    let folder = path.join(value(&config, "docs_dir").unwrap_or("docs"));
    folder.is_dir().then_some(folder)
}

/// The generator that the folder of pages is configured for.
pub(super) fn configured(root: &Path) -> Option<Layout> {
    if root.join(".vitepress").is_dir() {
        return Some(Layout::VitePress { clean: false });
    }
    let above = root.parent()?;
    (mkdocs_pages(above)? == root).then_some(Layout::MkDocs { folders: true })
}

/// The same layout with the addresses that the configuration asks for.
pub(super) fn as_configured(layout: Layout, root: &Path) -> Layout {
    match layout {
        Layout::MkDocs { .. } => {
            let config = root.parent().and_then(mkdocs_config).unwrap_or_default();
            Layout::MkDocs { folders: value(&config, "use_directory_urls") != Some("false") }
        }
        Layout::VitePress { .. } => Layout::VitePress { clean: vitepress_is_clean(root) },
        other => other,
    }
}

/// The place of each page that the navigation names.
pub(super) fn mkdocs_order(root: &Path) -> HashMap<String, usize> {
    let config = root.parent().and_then(mkdocs_config).unwrap_or_default();
    let lines = config.lines().skip_while(|line| !line.starts_with("nav:")).skip(1);
    let inside = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '-', '#', '\r']));
    let mut order = HashMap::new();
    for line in inside {
        let name = line.rsplit([' ', '\t']).next().unwrap_or_default().trim_matches(['"', '\'']);
        if name.ends_with(".md") {
            let place = order.len();
            order.entry(name.to_owned()).or_insert(place);
        }
    }
    order
}

/// The patterns of files that Sphinx does not publish.
pub(super) fn sphinx_excluded(root: &Path) -> GlobSet {
    let config = std::fs::read_to_string(root.join("conf.py")).unwrap_or_default();
    let mut set = GlobSetBuilder::new();
    let lists = config.split("\nexclude_patterns").skip(1);
    for list in lists.filter_map(|rest| rest.split_once('[')?.1.split_once(']')) {
        // Quotes part the names from what stands between them.
        let names = list.0.split(['"', '\'']).skip(1).step_by(2);
        for name in names {
            // A folder that is left out takes along what is below it; two stars stand for folders too.
            for glob in [name.to_owned(), format!("{}/**", name.trim_end_matches('/'))] {
                let glob = GlobBuilder::new(&glob).literal_separator(!name.contains("**")).build();
                if let Ok(glob) = glob {
                    set.add(glob);
                }
            }
        }
    }
    set.build().unwrap_or_default()
}

fn mkdocs_config(folder: &Path) -> Option<String> {
    ["mkdocs.yml", "mkdocs.yaml"].iter().find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
}

/// The value of a line at the top level, such as `docs_dir: pages`.
fn value<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let line = config.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let plain = line.split(" #").next().unwrap_or(line).trim().trim_matches(['"', '\'']);
    Some(plain).filter(|plain| !plain.is_empty())
}

fn vitepress_is_clean(root: &Path) -> bool {
    let configs = ["config.mjs", "config.mts", "config.js", "config.ts"];
    let text = configs.iter().find_map(|name| {
        let folder = root.join(".vitepress");
        let whole = std::fs::read_to_string(folder.join(name));
        whole
            .or_else(|_| std::fs::read_to_string(folder.join("config").join(name.replace("config", "index"))))
            .ok()
    });
    let text: String = text.unwrap_or_default().split_whitespace().collect();
    text.contains("cleanUrls:true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn mkdocs_says_where_its_pages_are_and_in_which_order() {
        let config = "site_name: X\ndocs_dir: 'pages' # ours\nuse_directory_urls: false\nnav:\n  - Home: index.md\n  - Guide:\n      - \"b.md\"\n      - First: a.md\n\
                      theme: !!python/name:x.y\n  - c.md\n";
        let folder = project(&[("mkdocs.yml", config), ("pages/a.md", "")]);
        let pages = mkdocs_pages(folder.path()).unwrap();
        assert!(pages.ends_with("pages"));
        assert_eq!(configured(&pages), Some(Layout::MkDocs { folders: true }));
        assert_eq!(
            as_configured(Layout::MkDocs { folders: true }, &pages),
            Layout::MkDocs { folders: false }
        );
        let order = mkdocs_order(&pages);
        assert_eq!((order["index.md"], order["b.md"], order["a.md"], order.len()), (0, 1, 2, 3));
    }

    #[test]
    fn sphinx_leaves_out_what_its_configuration_says() {
        let config = "project = 'X'\nexclude_patterns = [\n    '_build', \"parts/*\",  # not theirs\n    '**.draft.rst',\n]\nother = ['a']\n";
        let folder = project(&[("conf.py", config)]);
        let excluded = sphinx_excluded(folder.path());
        for (file, is_out) in [
            ("_build/html/index.html", true),
            ("parts/a.rst", true),
            ("more/parts/a.rst", false),
            ("a/b.draft.rst", true),
            ("a", false),
            ("index.rst", false),
        ] {
            assert_eq!(excluded.is_match(file), is_out, "{file}");
        }
        assert!(sphinx_excluded(&folder.path().join("none")).is_empty());
    }

    #[test]
    fn vitepress_is_known_by_its_folder() {
        let folder =
            project(&[(".vitepress/config.mts", "export default { cleanUrls: true }"), ("a.md", "")]);
        let layout = configured(folder.path()).unwrap();
        assert_eq!(as_configured(layout, folder.path()), Layout::VitePress { clean: true });
        assert_eq!(configured(&folder.path().join(".vitepress")), None);
    }
}
