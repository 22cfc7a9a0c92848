//! Recognizes the documentation project in a folder, for `docent init`.
//!
//! Invariant: what is not written literally in the configuration of the site generator is unknown, never guessed.

use std::path::{Component, Path, PathBuf};

use super::{docusaurus, folder, generator};

/// Folders of a repository in which its documentation usually is.
const USUAL: [&str; 7] = ["website", "docs", "docs/source", "doc", "documentation", "book", "guide"];

/// Where a project of documentation is, and what its configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Project {
    /// The site generator; `None` for a folder of pages.
    pub generator: Option<Generator>,
    /// What to ingest, relative to the folder; `.` for the folder itself.
    pub location: PathBuf,
    /// The title of the site.
    pub title: Option<String>,
    /// The URL at which the pages are published.
    pub base_url: Option<String>,
    /// The image file with the logo of the site, relative to the folder.
    pub logo: Option<PathBuf>,
}

/// A site generator that is recognized by its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generator {
    /// `docusaurus.config.js` or `.ts`
    Docusaurus,
    /// `mkdocs.yml`
    MkDocs,
    /// `book.toml`
    MdBook,
    /// `conf.py`
    Sphinx,
    /// `.vitepress/config.js` or `.ts`
    VitePress,
}

impl Generator {
    /// Its name as its authors write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docusaurus => "Docusaurus",
            Self::MkDocs => "MkDocs",
            Self::MdBook => "mdBook",
            Self::Sphinx => "Sphinx",
            Self::VitePress => "VitePress",
        }
    }
}

/// The project in a folder or in one of the usual folders below it; `None` if there are no pages.
pub fn find(folder: &Path) -> Option<Project> {
    let mut candidates = std::iter::once(".").chain(USUAL);
    let project = candidates.find_map(|below| {
        let mut project = configured(&folder.join(below))?;
        project.logo = project.logo.map(|logo| {
            Path::new(below).join(logo).components().filter(|part| *part != Component::CurDir).collect()
        });
        project.location = below.into();
        Some(project)
    });
    project.or_else(|| plain(folder))
}

/// The project whose configuration is in this folder.
fn configured(folder: &Path) -> Option<Project> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // The logo is named relative to one of the folders from which the site generator copies files.
    let project =
        |generator, title: Option<String>, base_url: Option<String>, logo: Option<String>, below: &str| {
            let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
            let base_url = base_url.filter(|url| docusaurus::is_published(url));
            let logo = logo.map(|logo| Path::new(below).join(logo.trim_start_matches('/')));
            let logo = logo.filter(|logo| folder.join(logo).is_file());
            Some(Project { generator: Some(generator), location: PathBuf::new(), title, base_url, logo })
        };
    if docusaurus::is_project(folder) {
        let pages = folder::pages_folder(folder);
        let (title, base_url) = (docusaurus::title(folder), docusaurus::base_url(&pages));
        return project(Generator::Docusaurus, title, base_url, docusaurus::logo(folder), "static");
    }
    if let Some(config) = generator::mkdocs_config(folder) {
        let value = |key| generator::value(&config, key).map(str::to_owned);
        let logo = generator::nested(&config, "theme", "logo").map(str::to_owned);
        let pages = generator::value(&config, "docs_dir").unwrap_or("docs");
        return project(Generator::MkDocs, value("site_name"), value("site_url"), logo, pages);
    }
    if let Some(config) = read("book.toml").filter(|_| folder.join("src/SUMMARY.md").is_file()) {
        return project(Generator::MdBook, assigned(&config, "title"), None, None, "");
    }
    if let Some(config) = read("conf.py") {
        return project(
            Generator::Sphinx,
            assigned(&config, "html_title").or_else(|| assigned(&config, "project")),
            assigned(&config, "html_baseurl"),
            assigned(&config, "html_logo"),
            "",
        );
    }
    if let Some(config) = generator::vitepress_config(folder) {
        let setting = |key| docusaurus::setting(&config, key).map(str::to_owned);
        return project(Generator::VitePress, setting("title"), None, setting("logo"), "public");
    }
    None
}

/// A folder of pages without a site generator: the first of the usual folders with pages, else the folder itself.
fn plain(folder: &Path) -> Option<Project> {
    let has_pages = |below: &&str| folder::contains_pages(&folder.join(below));
    let below = USUAL.into_iter().chain(["."]).find(has_pages)?;
    Some(Project { generator: None, location: below.into(), title: None, base_url: None, logo: None })
}

/// The literal string that a line of TOML or Python assigns to a name.
fn assigned(config: &str, name: &str) -> Option<String> {
    let values = config.lines().filter_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
    values
        .filter_map(|value| docusaurus::quoted(value.trim_start().trim_start_matches(['u', 'r'])))
        .next()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: Option<(&str, &str, Option<&str>, Option<&str>)>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = find(folder.path());
        let found = found.as_ref().map(|project| {
            let generator = project.generator.map_or("", Generator::name);
            (
                generator,
                project.location.to_str().unwrap(),
                project.title.as_deref(),
                project.base_url.as_deref(),
            )
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn each_site_generator_is_recognized_by_its_configuration() {
        let docusaurus =
            "export default { title: 'Mill', url: 'https://mill.dev', baseUrl: '/', presets: [] };";
        check(
            &[
                ("website/docusaurus.config.js", docusaurus),
                ("website/docs/a.md", "# A"),
                ("README.md", "# R"),
            ],
            Some(("Docusaurus", "website", Some("Mill"), Some("https://mill.dev/docs"))),
        );
        check(
            &[("mkdocs.yml", "site_name: Mill\nsite_url: https://mill.dev/\n"), ("docs/a.md", "# A")],
            Some(("MkDocs", ".", Some("Mill"), Some("https://mill.dev/"))),
        );
        check(
            &[
                ("guide/book.toml", "[book]\ntitle = \"Mill\"\n"),
                ("guide/src/SUMMARY.md", "# S"),
                ("guide/src/a.md", "# A"),
            ],
            Some(("mdBook", "guide", Some("Mill"), None)),
        );
        check(
            &[
                ("docs/source/conf.py", "project = 'Mill'\nhtml_baseurl = f\"{x}\"\n"),
                ("docs/source/index.rst", "A\n=\n"),
            ],
            Some(("Sphinx", "docs/source", Some("Mill"), None)),
        );
        check(
            &[
                ("docs/.vitepress/config.mts", "export default defineConfig({ title: \"Mill\" })"),
                ("docs/a.md", "# A"),
            ],
            Some(("VitePress", "docs", Some("Mill"), None)),
        );
    }

    #[test]
    fn the_logo_is_a_file_that_the_configuration_names() {
        let logo = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            find(folder.path()).unwrap().logo.map(|logo| logo.to_str().unwrap().replace('\\', "/"))
        };
        let docusaurus = "export default { title: 'Mill', themeConfig: { navbar: { title: 'Mill', logo: { alt: 'Mill', src: 'img/logo.svg' } } } };";
        let files = [
            ("website/docusaurus.config.js", docusaurus),
            ("website/static/img/logo.svg", "<svg/>"),
            ("website/docs/a.md", "# A"),
        ];
        assert_eq!(logo(&files).as_deref(), Some("website/static/img/logo.svg"));
        assert_eq!(logo(&[files[0], files[2]]), None, "there is no such file");
        let mkdocs = "site_name: Mill\ntheme:\n  name: material\n  icon:\n    logo: material/library\n  # logo: old.png\n  logo: assets/logo.png  # ours\nextra:\n  logo: x.png\n";
        let files = [("mkdocs.yml", mkdocs), ("docs/assets/logo.png", "x"), ("docs/a.md", "# A")];
        assert_eq!(logo(&files).as_deref(), Some("docs/assets/logo.png"));
        let sphinx = "project = 'Mill'\nhtml_logo = \"_static/logo.png\"\n";
        let files = [("docs/conf.py", sphinx), ("docs/_static/logo.png", "x"), ("docs/index.rst", "A\n=\n")];
        assert_eq!(logo(&files).as_deref(), Some("docs/_static/logo.png"));
        let vitepress = "export default { title: 'Mill', themeConfig: { logo: '/logo.svg' } }";
        let files = [
            ("docs/.vitepress/config.mts", vitepress),
            ("docs/public/logo.svg", "<svg/>"),
            ("docs/a.md", "# A"),
        ];
        assert_eq!(logo(&files).as_deref(), Some("docs/public/logo.svg"));
    }

    #[test]
    fn a_folder_of_pages_needs_no_site_generator() {
        check(&[("docs/a.md", "# A"), ("README.md", "# R")], Some(("", "docs", None, None)));
        check(&[("a.md", "# A")], Some(("", ".", None, None)));
        check(&[("main.rs", "")], None);
    }

    #[test]
    fn placeholders_of_templates_are_unknown() {
        check(
            &[("conf.py", "project = ''\nhtml_baseurl = 'https://example.com/'\n"), ("index.rst", "A\n=\n")],
            Some(("Sphinx", ".", None, None)),
        );
    }
}
