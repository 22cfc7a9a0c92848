//! The versions and locales of a Docusaurus project: which folders they are in, and where they are published.
//!
//! ```text
//! docs/                                              the coming version, called `current`
//! versioned_docs/version-1.0/                        a released version, listed in versions.json
//! i18n/de/docusaurus-plugin-content-docs/current/    translations of `docs/`; the other pages are not translated
//! ```
//!
//! Invariant: addresses are those of Docusaurus. The last version has none of its own below the docs, and neither has
//! the default locale.

use std::path::{Path, PathBuf};

use super::docusaurus::{Config, is_project};

/// Name of the version in `docs/`.
const CURRENT: &str = "current";

/// Folder with the translations of a locale.
const TRANSLATED: &str = "docusaurus-plugin-content-docs";

/// The docs of a project that has several versions or locales.
#[derive(Debug)]
pub(super) struct Editions {
    /// The folders of pages: the default version first, then the other ones, then their translations.
    pub parts: Vec<Part>,
    /// Name of the last version; none if there is only one.
    pub default_version: Option<String>,
    /// The default locale; none if there is only one.
    pub default_locale: Option<String>,
}

/// A folder of pages: a version in a locale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The folder, relative to the project.
    pub folder: PathBuf,
    /// Name of the version; none if the project has only one.
    pub version: Option<String>,
    /// The locale; none if the project has only one.
    pub locale: Option<String>,
    /// The folder with the pages that are not translated, if this is a translation.
    pub original: Option<PathBuf>,
    locale_path: String,
    version_path: String,
}

impl Part {
    /// Where its pages are published; `docs` is where those of the default version in the default locale are.
    pub fn address(&self, docs: &str, route: &str) -> String {
        let docs = docs.trim_end_matches('/');
        let route = route.trim_matches('/');
        let above = docs.strip_suffix(route).filter(|above| !route.is_empty() && above.ends_with('/'));
        let (site, route) = above.map_or((docs, ""), |above| (above.trim_end_matches('/'), route));
        let parts = [site, &self.locale_path, route, &self.version_path];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }
}

/// The project whose docs, or a version or translation of them, are in this folder.
pub(super) fn project_of(root: &Path) -> Option<PathBuf> {
    let name =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let above = |levels| root.ancestors().nth(levels);
    let is_versioned = above(1).is_some_and(|folder| name(folder) == "versioned_docs");
    let is_translated = above(1).is_some_and(|folder| name(folder) == TRANSLATED);
    let levels = match () {
        () if is_versioned && name(root).starts_with("version-") => 2,
        () if is_translated && above(3).is_some_and(|folder| name(folder) == "i18n") => 4,
        () => 1,
    };
    above(levels).filter(|folder| is_project(folder)).map(Path::to_owned)
}

/// The versions and locales of a project; none if it has only one of each.
pub(super) fn editions(project: &Path) -> Option<Editions> {
    let config = Config::read(project)?;
    let versions = versions(project, &config);
    let default_version = default_version(&config, &versions)?;
    let (default_locale, others) = locales(project, &config);
    let has_versions = versions.len() > 1;
    if !has_versions && others.is_empty() {
        return None;
    }
    let mut ordered: Vec<&String> = versions.iter().filter(|name| **name == default_version).collect();
    ordered.extend(versions.iter().filter(|name| **name != default_version));
    let mut parts = Vec::new();
    for locale in std::iter::once(None).chain(others.iter().map(Some)) {
        for version in &ordered {
            let original = pages_of(version);
            let folder = match locale {
                None => original.clone(),
                Some(locale) => Path::new("i18n").join(locale).join(TRANSLATED).join(translated(version)),
            };
            if !project.join(&folder).is_dir() {
                continue;
            }
            let own = if **version == default_version { "" } else { version.as_str() };
            let own = if own == CURRENT { "next" } else { own };
            parts.push(Part {
                folder,
                version: has_versions.then(|| (*version).clone()),
                locale: (!others.is_empty()).then(|| locale.unwrap_or(&default_locale).clone()),
                original: locale.map(|_| original),
                locale_path: locale.cloned().unwrap_or_default(),
                version_path: config.version_path(version).unwrap_or(own).trim_matches('/').to_owned(),
            });
        }
    }
    Some(Editions {
        parts,
        default_version: has_versions.then_some(default_version),
        default_locale: (!others.is_empty()).then_some(default_locale),
    })
}

fn pages_of(version: &str) -> PathBuf {
    if version == CURRENT { "docs".into() } else { Path::new("versioned_docs").join(translated(version)) }
}

fn translated(version: &str) -> String {
    if version == CURRENT { CURRENT.to_owned() } else { format!("version-{version}") }
}

/// The versions whose pages exist: the coming one, then the released ones, the newest first.
fn versions(project: &Path, config: &Config) -> Vec<String> {
    let listed = std::fs::read_to_string(project.join("versions.json")).unwrap_or_default();
    let listed: Vec<String> = serde_json::from_str(&listed).unwrap_or_default();
    if config.flag("disableVersioning") == Some(true) || listed.is_empty() {
        return vec![CURRENT.to_owned()];
    }
    let current = (config.flag("includeCurrentVersion") != Some(false)).then(|| CURRENT.to_owned());
    let only = config.list("onlyIncludeVersions");
    current
        .into_iter()
        .chain(listed)
        .filter(|name| only.as_ref().is_none_or(|only| only.contains(name)))
        .filter(|name| project.join(pages_of(name)).is_dir())
        .collect()
}

/// The version without a path of its own: the newest one that is released.
fn default_version(config: &Config, versions: &[String]) -> Option<String> {
    let configured = config.last_version().filter(|name| versions.iter().any(|version| version == name));
    let newest = versions.iter().find(|name| *name != CURRENT).or(versions.first());
    configured.map(str::to_owned).or(newest.cloned())
}

/// The default locale, and the other ones that have translated docs.
fn locales(project: &Path, config: &Config) -> (String, Vec<String>) {
    let default = config.default_locale().unwrap_or("en").to_owned();
    let configured = config.locales();
    let entries = std::fs::read_dir(project.join("i18n")).into_iter().flatten().flatten();
    let mut others: Vec<String> = entries
        .filter(|entry| entry.path().join(TRANSLATED).is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| *name != default && configured.as_ref().is_none_or(|known| known.contains(name)))
        .collect();
    others.sort_unstable();
    (default, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(config: &str, files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("docusaurus.config.js"), config).unwrap();
        std::fs::write(folder.path().join("versions.json"), "[\"2.0\", \"1.0\"]").unwrap();
        for file in files {
            std::fs::create_dir_all(folder.path().join(file)).unwrap();
        }
        folder
    }

    const FOLDERS: [&str; 5] = [
        "docs",
        "versioned_docs/version-2.0",
        "versioned_docs/version-1.0",
        "i18n/de/docusaurus-plugin-content-docs/version-2.0",
        "i18n/fr/docusaurus-theme-classic",
    ];

    /// Folder, version, locale and address of each part.
    fn shown(config: &str, folders: &[&str]) -> Vec<String> {
        let project = project(config, folders);
        let Some(editions) = editions(project.path()) else { return Vec::new() };
        let part = |part: &Part| {
            format!(
                "{} {} {} {}",
                part.folder.display(),
                part.version.as_deref().unwrap_or("-"),
                part.locale.as_deref().unwrap_or("-"),
                part.address("https://mill.dev/book/docs", "docs")
            )
        };
        editions.parts.iter().map(part).collect()
    }

    #[test]
    fn versions_and_locales_have_the_addresses_of_docusaurus() {
        assert_eq!(
            shown("export default { baseUrl: '/book/' };", &FOLDERS),
            [
                "versioned_docs/version-2.0 2.0 en https://mill.dev/book/docs",
                "docs current en https://mill.dev/book/docs/next",
                "versioned_docs/version-1.0 1.0 en https://mill.dev/book/docs/1.0",
                "i18n/de/docusaurus-plugin-content-docs/version-2.0 2.0 de https://mill.dev/book/de/docs",
            ]
        );
    }

    #[test]
    fn the_configuration_decides_which_versions_there_are() {
        let docs = |options: &str| {
            format!(
                "export default {{ i18n: {{ defaultLocale: 'de', locales: ['de', 'fr'] }}, presets: [['classic', {{ docs: {{ {options} }} }}]] }};"
            )
        };
        let paths = "lastVersion: 'current', versions: { current: { label: 'Dev', path: 'dev' }, '1.0': { path: 'old' } }";
        assert_eq!(
            shown(&docs(paths), &FOLDERS),
            [
                "docs current - https://mill.dev/book/docs/dev",
                "versioned_docs/version-2.0 2.0 - https://mill.dev/book/docs/2.0",
                "versioned_docs/version-1.0 1.0 - https://mill.dev/book/docs/old",
            ]
        );
        let only =
            shown(&docs("includeCurrentVersion: false, onlyIncludeVersions: ['2.0', \"1.0\"]"), &FOLDERS);
        assert_eq!(only.len(), 2, "{only:?}");
        assert!(shown(&docs("disableVersioning: true"), &FOLDERS).is_empty());
        assert!(shown("export default {};", &["docs"]).is_empty());
    }

    #[test]
    fn the_project_of_a_version_or_a_translation_is_found() {
        let project = project("export default {};", &FOLDERS);
        for folder in FOLDERS.iter().take(4) {
            assert_eq!(project_of(&project.path().join(folder)).as_deref(), Some(project.path()), "{folder}");
        }
        assert_eq!(project_of(&project.path().join("docs/guide")), None);
    }
}
