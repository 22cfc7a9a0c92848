//! Determines the published URL and the module of a source file.
//!
//! Invariant: with a base URL, a page has the URL it has on the published site; without one, a `file://` URL.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::front_matter::FrontMatter;
use crate::mdbook::Chapter;
use crate::path::resolve;
use crate::references::Titles;

/// The site generator whose rules turn paths into URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Docusaurus: no extensions, no number prefixes, slugs and ids.
    Docusaurus,
    /// mdBook: `.md` becomes `.html`.
    MdBook,
    /// Sphinx: `.rst` and `.txt` become `.html`.
    Sphinx,
    /// Asciidoctor: `.adoc` becomes `.html`.
    Asciidoctor,
    /// MkDocs: `page.md` becomes `page/`, or `page.html` without `folders`.
    MkDocs {
        /// `use_directory_urls`
        folders: bool,
    },
    /// VitePress: `.md` becomes `.html`, or is dropped with `clean` URLs.
    VitePress {
        /// `cleanUrls`
        clean: bool,
    },
    /// No site generator: files are published under their own names.
    Plain,
}

impl Layout {
    /// The name of the site generator.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docusaurus => "Docusaurus",
            Self::MdBook => "MdBook",
            Self::Sphinx => "Sphinx",
            Self::Asciidoctor => "Asciidoctor",
            Self::MkDocs { .. } => "MkDocs",
            Self::VitePress { .. } => "VitePress",
            Self::Plain => "Plain",
        }
    }
}

impl std::str::FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "docusaurus" => Ok(Self::Docusaurus),
            "mdbook" => Ok(Self::MdBook),
            "sphinx" => Ok(Self::Sphinx),
            "asciidoctor" => Ok(Self::Asciidoctor),
            "mkdocs" => Ok(Self::MkDocs { folders: true }),
            "vitepress" => Ok(Self::VitePress { clean: false }),
            "plain" => Ok(Self::Plain),
            other => Err(format!(
                "unknown layout `{other}`; use docusaurus, mdbook, sphinx, asciidoctor, mkdocs, vitepress or plain"
            )),
        }
    }
}

/// A folder of pages, and how it is published.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Site {
    /// The site generator.
    pub layout: Layout,
    /// Where the folder is published, or the `file://` URL of the folder itself.
    pub base: Base,
    /// The module of pages at the top level.
    pub root_module: String,
    /// mdBook's chapters by path; empty for other layouts.
    pub chapters: HashMap<String, Chapter>,
    /// Titles of pages and labels, for references between pages.
    pub titles: Titles,
}

/// The beginning of page URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The URL at which the folder is published.
    Published(String),
    /// The `file://` URL of the folder; pages keep their file names.
    Local(String),
}

impl Site {
    /// A site without a list of chapters or titles. Pages at the top level belong to the module `book`.
    pub fn new(layout: Layout, base: Base) -> Self {
        Self {
            layout,
            base,
            root_module: "book".to_owned(),
            chapters: HashMap::new(),
            titles: Titles::default(),
        }
    }

    /// The same site, with pages at the top level in another module.
    pub fn with_root_module(self, root_module: impl Into<String>) -> Self {
        Self { root_module: root_module.into(), ..self }
    }

    /// The URL of the page for the file at `path`, relative to the folder.
    pub fn url(&self, path: &str, front: &FrontMatter) -> String {
        match &self.base {
            Base::Local(root) => format!("{}/{}", root.trim_end_matches('/'), encode_path(path)),
            Base::Published(base) => {
                let base = base.trim_end_matches('/');
                let page = match self.layout {
                    Layout::Docusaurus if !is_html(path) => docusaurus_path(path, front),
                    Layout::MdBook => format!("/{}", mdbook_path(path)),
                    Layout::Sphinx => format!("/{}", rendered(path, &[".rst", ".txt", ".ipynb"])),
                    Layout::Asciidoctor => format!("/{}", rendered(path, &[".adoc", ".asciidoc", ".asc"])),
                    Layout::MkDocs { folders } => format!("/{}", mkdocs_path(path, folders)),
                    Layout::VitePress { clean } => format!("/{}", vitepress_path(path, clean)),
                    Layout::Docusaurus | Layout::Plain => format!("/{path}"),
                };
                format!("{base}{}", encode_path(&page))
            }
        }
    }

    /// The module the page belongs to.
    pub fn module(&self, path: &str, front: &FrontMatter) -> String {
        if let Some(module) = front.module.as_deref().map(str::trim).filter(|module| !module.is_empty()) {
            return module.to_owned();
        }
        if let Some(chapter) = self.chapters.get(path) {
            return chapter
                .top
                .trim_end_matches(".md")
                .rsplit('/')
                .find(|part| *part != "index" && *part != "README")
                .unwrap_or(&self.root_module)
                .to_owned();
        }
        match path.split_once('/') {
            Some((folder, _)) if self.layout == Layout::Docusaurus => without_number(folder).to_owned(),
            Some((folder, _)) => folder.to_owned(),
            None => self.root_module.clone(),
        }
    }
}

fn is_html(path: &str) -> bool {
    path.ends_with(".html") || path.ends_with(".htm")
}

/// The name of the rendered page for a file with one of these extensions.
fn rendered(path: &str, endings: &[&str]) -> String {
    let stem = endings.iter().find_map(|ending| path.strip_suffix(ending));
    stem.map_or_else(|| path.to_owned(), |stem| format!("{stem}.html"))
}

fn mdbook_path(path: &str) -> String {
    let stem = path.strip_suffix(".md").unwrap_or(path);
    match stem.strip_suffix("README") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => format!("{folder}index.html"),
        _ => format!("{stem}.html"),
    }
}

/// `index.md` and `README.md` are published as their folder; other pages get a folder of their own.
fn mkdocs_path(path: &str, folders: bool) -> String {
    let Some(stem) = path.strip_suffix(".md").or_else(|| path.strip_suffix(".markdown")) else {
        return path.to_owned();
    };
    let index = ["index", "README"].iter().find_map(|name| stem.strip_suffix(name));
    match index.filter(|folder| folder.is_empty() || folder.ends_with('/')) {
        Some(folder) if folders => folder.to_owned(),
        Some(folder) => format!("{folder}index.html"),
        None if folders => format!("{stem}/"),
        None => format!("{stem}.html"),
    }
}

fn vitepress_path(path: &str, clean: bool) -> String {
    let Some(stem) = path.strip_suffix(".md") else { return path.to_owned() };
    match stem.strip_suffix("index").filter(|folder| folder.is_empty() || folder.ends_with('/')) {
        Some(folder) => folder.to_owned(),
        None if clean => stem.to_owned(),
        None => format!("{stem}.html"),
    }
}

/// The Docusaurus permalink of a page, from `/`.
fn docusaurus_path(path: &str, front: &FrontMatter) -> String {
    let (folders, file) = path.rsplit_once('/').map_or(("", path), |(folders, file)| (folders, file));
    let stem = file.strip_suffix(".mdx").or_else(|| file.strip_suffix(".md")).unwrap_or(file);
    let folder: String = folders
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{}", without_number(part)))
        .collect();
    let last_folder = folders.rsplit('/').next().unwrap_or_default();
    match front.slug.as_deref() {
        Some(slug) if slug.starts_with('/') => return slug.to_owned(),
        Some(slug) => return format!("/{}", resolve(&folder, slug)),
        None => {}
    }
    let is_index = ["index", "readme", &last_folder.to_lowercase()].contains(&stem.to_lowercase().as_str());
    if is_index {
        return format!("{folder}/");
    }
    format!("/{}", resolve(&folder, front.id.as_deref().unwrap_or(without_number(stem))))
}

/// Removes a number prefix: `02-setup` is published as `setup`. Dates and versions are kept.
pub fn without_number(name: &str) -> &str {
    let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = &name[digits..];
    let rest = after.trim_start().trim_start_matches(['-', '_', '.']).trim_start();
    let separated = after.trim_start().starts_with(['-', '_', '.']);
    let looks_like_version =
        after.starts_with(['-', '_', '.']) && after[1..].starts_with(|c: char| c.is_ascii_digit());
    if digits > 0 && separated && !rest.is_empty() && !looks_like_version { rest } else { name }
}

/// The label in `_category_.json` or `_category_.yml`; JSON is also valid YAML.
pub fn category_label(source: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Category {
        label: Option<String>,
    }
    serde_saphyr::from_str::<Category>(source).ok()?.label
}

/// Characters that must be escaped in a path.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'%')
    .add(b'\\')
    .add(b'^')
    .add(b'|')
    .add(b'[')
    .add(b']');

const FRAGMENT: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'%').add(b'#');

/// Percent-encodes a path for a URL.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// Percent-encodes an anchor for a URL.
pub fn encode_fragment(anchor: &str) -> String {
    utf8_percent_encode(anchor, FRAGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(layout: Layout) -> Site {
        Site {
            layout,
            base: Base::Published("https://x.org/docs/".into()),
            root_module: "docs".into(),
            chapters: HashMap::new(),
            titles: Titles::default(),
        }
    }

    fn check(layout: Layout, path: &str, front: FrontMatter, expected: &str) {
        assert_eq!(site(layout).url(path, &front), format!("https://x.org/docs{expected}"), "{path}");
    }

    #[test]
    fn docusaurus_drops_extensions_and_number_prefixes() {
        for (path, expected) in [
            ("intro.md", "/intro"),
            ("01-ros2/02-nodes.mdx", "/ros2/nodes"),
            ("1. Basics/3 - First steps.md", "/Basics/First%20steps"),
            ("2021-11-blog.md", "/2021-11-blog"),
            ("8.0-release.md", "/8.0-release"),
            ("guide/index.md", "/guide/"),
            ("guide/README.mdx", "/guide/"),
            ("guide/Guide.md", "/guide/"),
            ("index.md", "/"),
            ("api/docusaurus.config.js.mdx", "/api/docusaurus.config.js"),
        ] {
            check(Layout::Docusaurus, path, FrontMatter::default(), expected);
        }
    }

    #[test]
    fn docusaurus_slugs_and_ids_take_precedence() {
        let slug = |slug: &str| FrontMatter { slug: Some(slug.into()), ..FrontMatter::default() };
        check(Layout::Docusaurus, "a/b.md", slug("/top"), "/top");
        check(Layout::Docusaurus, "a/b.md", slug("c"), "/a/c");
        check(Layout::Docusaurus, "a/b.md", slug("../c"), "/c");
        check(Layout::Docusaurus, "a/b.md", slug("/"), "/");
        let id = FrontMatter { id: Some("named".into()), ..FrontMatter::default() };
        check(Layout::Docusaurus, "a/01-b.md", id, "/a/named");
    }

    #[test]
    fn category_labels_are_read_from_json_and_yaml() {
        assert_eq!(category_label("{\"label\": \"ROS 2\", \"position\": 2}").as_deref(), Some("ROS 2"));
        assert_eq!(category_label("label: ROS 2\nlink: {type: doc}\n").as_deref(), Some("ROS 2"));
        assert_eq!(category_label("not a category"), None);
    }

    #[test]
    fn mdbook_and_sphinx_publish_html() {
        check(Layout::MdBook, "ch01/intro.md", FrontMatter::default(), "/ch01/intro.html");
        check(Layout::MdBook, "README.md", FrontMatter::default(), "/index.html");
        check(Layout::Sphinx, "Tutorials/Setup.rst", FrontMatter::default(), "/Tutorials/Setup.html");
        check(Layout::Plain, "notes/a b.md", FrontMatter::default(), "/notes/a%20b.md");
    }

    #[test]
    fn mkdocs_makes_folders_and_vitepress_files() {
        let check = |layout, path, expected| check(layout, path, FrontMatter::default(), expected);
        for (path, folder, file) in [
            ("index.md", "/", "/index.html"),
            ("a/README.md", "/a/", "/a/index.html"),
            ("a/b.md", "/a/b/", "/a/b.html"),
            ("a/c.pdf", "/a/c.pdf", "/a/c.pdf"),
        ] {
            check(Layout::MkDocs { folders: true }, path, folder);
            check(Layout::MkDocs { folders: false }, path, file);
        }
        for (path, file, clean) in [("a/index.md", "/a/", "/a/"), ("a/b.md", "/a/b.html", "/a/b")] {
            check(Layout::VitePress { clean: false }, path, file);
            check(Layout::VitePress { clean: true }, path, clean);
        }
    }

    #[test]
    fn without_a_base_url_pages_have_file_urls() {
        let site = Site { base: Base::Local("file:///books/x".into()), ..site(Layout::Docusaurus) };
        assert_eq!(site.url("01-a/b.md", &FrontMatter::default()), "file:///books/x/01-a/b.md");
    }

    #[test]
    fn the_module_is_the_first_folder_unless_the_page_says_otherwise() {
        let site = site(Layout::Docusaurus);
        assert_eq!(site.module("02-ros2/nodes/a.md", &FrontMatter::default()), "ros2");
        assert_eq!(site.module("intro.md", &FrontMatter::default()), "docs");
        let named = FrontMatter { module: Some("vla".into()), ..FrontMatter::default() };
        assert_eq!(site.module("02-ros2/a.md", &named), "vla");
    }
}
