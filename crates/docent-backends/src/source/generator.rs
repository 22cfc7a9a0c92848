//! Reads the configuration of MkDocs, VitePress and Sphinx.
//!
//! Only a few simple settings matter, and they are found by text search: `mkdocs.yml` may contain tags that
//! only MkDocs can parse, and the other configurations are programs.
//!
//! Invariant: if a configuration is not understood, the site generator's defaults apply.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use docent_parse::document::Warning;
use docent_parse::front_matter::yaml_problem;
use docent_parse::layout::Layout;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::docusaurus;

const MKDOCS: [&str; 2] = ["mkdocs.yml", "mkdocs.yaml"];

/// The folder with the pages, if `path` is a MkDocs project.
pub(super) fn mkdocs_pages(path: &Path) -> Option<PathBuf> {
    let config = mkdocs_config(path)?;
    let folder = path.join(value(&config, "docs_dir").unwrap_or("docs"));
    folder.is_dir().then_some(folder)
}

/// The site generator that the folder of pages is configured for.
pub(super) fn configured(root: &Path) -> Option<Layout> {
    if root.join(".vitepress").is_dir() {
        return Some(Layout::VitePress { clean: false });
    }
    let above = root.parent()?;
    (mkdocs_pages(above)? == root).then_some(Layout::MkDocs { folders: true })
}

/// The same layout with the style of addresses set in the configuration.
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

/// The address where the pages are published, if it is configured.
pub(super) fn base_url(layout: Layout, root: &Path) -> Option<String> {
    match layout {
        Layout::Docusaurus => docusaurus::base_url(root),
        Layout::MkDocs { .. } => {
            let above = root.parent().filter(|above| mkdocs_pages(above).as_deref() == Some(root))?;
            let config = mkdocs_config(above)?;
            value(&config, "site_url").filter(|url| docusaurus::is_published(url)).map(str::to_owned)
        }
        _ => None,
    }
}

/// A warning if the `mkdocs.yml` of a project is invalid. It is read line by line, so the order of the pages
/// or their folder may not be found.
pub(super) fn mkdocs_problem(path: &Path) -> Option<Warning> {
    let name = MKDOCS.into_iter().find(|name| path.join(name).is_file())?;
    let warn = |message: String| Some(Warning::new(name, message));
    let config = match std::fs::read_to_string(path.join(name)) {
        Ok(config) => config,
        Err(error) => return warn(format!("cannot be read: {error}")),
    };
    if let Some(reason) = yaml_problem(&config) {
        return warn(format!("not valid YAML ({reason}); some settings may be ignored"));
    }
    let folder = value(&config, "docs_dir").unwrap_or("docs");
    let is_there = path.join(folder).is_dir();
    if is_there {
        None
    } else {
        warn(format!("docs_dir is {folder}, which does not exist; reading all files"))
    }
}

/// The position of each page in the navigation.
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

/// The patterns of files that Sphinx excludes.
pub(super) fn sphinx_excluded(root: &Path) -> GlobSet {
    let config = std::fs::read_to_string(root.join("conf.py")).unwrap_or_default();
    let mut set = GlobSetBuilder::new();
    let lists = config.split("\nexclude_patterns").skip(1);
    for list in lists.filter_map(|rest| rest.split_once('[')?.1.split_once(']')) {
        // Every second part between quotes is a name.
        let names = list.0.split(['"', '\'']).skip(1).step_by(2);
        for name in names {
            // An excluded folder excludes everything below it; `**` also matches folders.
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

pub(super) fn mkdocs_config(folder: &Path) -> Option<String> {
    MKDOCS.iter().find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
}

/// The value of a top-level key, such as `docs_dir: pages`.
pub(super) fn value<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let line = config.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let plain = line.split(" #").next().unwrap_or(line).trim().trim_matches(['"', '\'']);
    Some(plain).filter(|plain| !plain.is_empty())
}

/// The value of a key one level below a top-level key, such as `logo` of `theme`.
pub(super) fn nested<'a>(config: &'a str, above: &str, key: &str) -> Option<&'a str> {
    let mut lines = config.lines().skip_while(|line| line.trim_end() != format!("{above}:"));
    lines.next()?;
    let is_text = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut inside = lines.filter(is_text).take_while(|line| line.starts_with([' ', '\t'])).peekable();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let level = inside.peek().map(|line| indent(line))?;
    inside.filter(|line| indent(line) == level).find_map(|line| value(line.trim_start(), key))
}

fn vitepress_is_clean(root: &Path) -> bool {
    let text: String = vitepress_config(root).unwrap_or_default().split_whitespace().collect();
    text.contains("cleanUrls:true")
}

/// The configuration of VitePress for the pages in `root`.
pub(super) fn vitepress_config(root: &Path) -> Option<String> {
    let configs = ["config.mjs", "config.mts", "config.js", "config.ts"];
    let folder = root.join(".vitepress");
    configs.iter().find_map(|name| {
        let whole = std::fs::read_to_string(folder.join(name));
        whole
            .or_else(|_| std::fs::read_to_string(folder.join("config").join(name.replace("config", "index"))))
            .ok()
    })
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
    fn the_folder_and_order_of_pages_are_read_from_mkdocs_yml() {
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
    fn the_base_url_is_read_from_mkdocs_yml() {
        let base = |config: &str| {
            let folder = project(&[("mkdocs.yml", config), ("docs/a.md", "")]);
            base_url(Layout::MkDocs { folders: true }, &folder.path().join("docs"))
        };
        assert_eq!(
            base("site_url: https://mill.dev/book/ # ours\n").as_deref(),
            Some("https://mill.dev/book/")
        );
        assert_eq!(base("site_url: !ENV [URL, 'https://mill.dev']\n"), None);
        assert_eq!(base("site_url: https://example.com/\n"), None);
        assert_eq!(base("site_name: X\n"), None);
    }

    #[test]
    fn an_invalid_mkdocs_yml_gives_a_warning() {
        let problem = |config: &str| {
            let folder = project(&[("mkdocs.yml", config), ("docs/a.md", "")]);
            mkdocs_problem(folder.path()).map(|warning| warning.message)
        };
        let fine = "site_name: X\ntheme:\n  emoji: !!python/name:a.b.c\n  env: !ENV [A, 'b']\nplugins:\n  - search\n";
        assert_eq!(problem(fine), None);
        assert!(
            problem("site_name: [X\nnav:\n\t- a.md\n").is_some_and(|text| text.starts_with("not valid YAML"))
        );
        let gone = "docs_dir is pages, which does not exist; reading all files";
        assert_eq!(problem("docs_dir: pages\n").as_deref(), Some(gone));
    }

    #[test]
    fn exclude_patterns_are_read_from_conf_py() {
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
    fn vitepress_is_detected_by_its_folder() {
        let folder =
            project(&[(".vitepress/config.mts", "export default { cleanUrls: true }"), ("a.md", "")]);
        let layout = configured(folder.path()).unwrap();
        assert_eq!(as_configured(layout, folder.path()), Layout::VitePress { clean: true });
        assert_eq!(configured(&folder.path().join(".vitepress")), None);
    }
}
