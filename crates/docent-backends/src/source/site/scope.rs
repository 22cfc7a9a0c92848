//! Decides which addresses belong to a site.
//!
//! A site is a folder on one host: everything at and below the start address. Addresses are normalized here,
//! so that a page has one address however it is linked.
//!
//! Invariant: an accepted address is http or https, on the site's host, and has no fragment.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use reqwest::Url;

use crate::index::contents::SiteOptions;

/// Maximum length of an address; longer ones are crawler traps.
const LONGEST_ADDRESS: usize = 2000;

/// How often a folder name may occur in a path; more occurrences indicate a crawler trap.
const MOST_REPEATS: usize = 3;

/// Extensions of files that are not pages.
const NO_PAGES: [&str; 46] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "bmp", "css", "js", "mjs", "map", "json",
    "xml", "rss", "atom", "yaml", "yml", "csv", "woff", "woff2", "ttf", "eot", "otf", "mp3", "mp4", "webm",
    "ogg", "wav", "zip", "gz", "tgz", "bz2", "xz", "tar", "7z", "whl", "exe", "dmg", "deb", "rpm", "msi",
    "pdf", "epub", "inv",
];

/// Generated pages without content of their own, such as indexes and search pages.
const TOOLS: [&str; 9] = [
    "genindex.html",
    "search.html",
    "py-modindex.html",
    "print.html",
    "404.html",
    "genindex",
    "search",
    "py-modindex",
    "404",
];

/// Folders with copies of the sources.
const COPIES: [&str; 3] = ["_sources", "_modules", "_static"];

/// The addresses that belong to a site.
#[derive(Debug)]
pub struct Scope {
    /// The folder of the site; its path ends with a slash.
    pub folder: Url,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Scope {
    /// The site that begins at `start`; an invalid pattern is an error.
    pub fn new(start: &Url, options: &SiteOptions) -> Result<Self, String> {
        let include = match options.include.as_slice() {
            [] => None,
            patterns => Some(globs(patterns)?),
        };
        Ok(Self { folder: folder(start), include, exclude: globs(&options.exclude)? })
    }

    /// Normalizes an address; `None` if it does not belong to this site.
    pub fn own(&self, url: &Url) -> Option<Url> {
        let mut url = url.clone();
        url.set_fragment(None);
        // A link with http instead of https leads to the same page.
        if url.scheme() == "http" && self.folder.scheme() == "https" && url.port().is_none() {
            url.set_scheme("https").ok()?;
        }
        let same_host = url.scheme() == self.folder.scheme()
            && url.host_str() == self.folder.host_str()
            && url.port_or_known_default() == self.folder.port_or_known_default()
            && url.username().is_empty()
            && url.password().is_none();
        let inside = self.relative(&url).is_some();
        (same_host && inside && url.as_str().len() <= LONGEST_ADDRESS && !is_trap(&url)).then_some(url)
    }

    /// Resolves an address on a page at `base`; `None` if it does not belong to this site.
    pub fn resolve(&self, base: &Url, address: &str) -> Option<Url> {
        self.own(&base.join(address.trim()).ok()?)
    }

    /// Whether a link to this address is worth following: it has no query and does not look like an image, a
    /// download or a generated index.
    pub fn leads_to_page(&self, url: &Url) -> bool {
        let name = url.path().rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_copy = url.path().split('/').any(|folder| COPIES.contains(&folder));
        let no_page = ending.is_some_and(|ending| NO_PAGES.contains(&ending.as_str()));
        url.query().is_none() && !no_page && !is_copy && !TOOLS.contains(&name)
    }

    /// Whether the include and exclude patterns select this page.
    pub fn wants(&self, url: &Url) -> bool {
        let relative = self.relative(url).unwrap_or_default();
        let any = |globs: &GlobSet| {
            globs.is_match(url.path()) || globs.is_match(relative) || globs.is_match(url.as_str())
        };
        self.include.as_ref().is_none_or(any) && !any(&self.exclude)
    }

    /// The path below the site's folder.
    pub fn relative<'a>(&self, url: &'a Url) -> Option<&'a str> {
        let folder = self.folder.path();
        let path = url.path();
        if path == folder.trim_end_matches('/') { Some("") } else { path.strip_prefix(folder) }
    }
}

/// The folder of a start address: the parent of a file, or else the address itself.
pub fn folder(start: &Url) -> Url {
    let mut url = start.clone();
    url.set_fragment(None);
    url.set_query(None);
    let path = url.path().to_owned();
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let folder =
        if name.is_empty() || name.contains('.') { format!("{parent}/") } else { format!("{path}/") };
    url.set_path(&folder);
    url
}

/// The same key for all spellings of an address: `/a`, `/a/` and `/a/index.html`.
pub fn key(url: &Url) -> String {
    let path = url.path();
    let path = path.strip_suffix("index.html").or_else(|| path.strip_suffix("index.htm")).unwrap_or(path);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{}{query}", url.origin().ascii_serialization(), path.trim_end_matches('/'))
}

/// Whether a path repeats the same folders, as wrong relative links produce.
fn is_trap(url: &Url) -> bool {
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    parts.iter().any(|part| parts.iter().filter(|other| *other == part).count() > MOST_REPEATS)
}

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| format!("invalid pattern `{pattern}`: {}", error.kind()))?);
    }
    set.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(start: &str, include: &[&str], exclude: &[&str]) -> Scope {
        let all = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let options = SiteOptions { include: all(include), exclude: all(exclude), ..SiteOptions::default() };
        Scope::new(&Url::parse(start).unwrap(), &options).unwrap()
    }

    #[test]
    fn a_site_is_a_folder_on_one_host() {
        let scope = scope("https://x.org/docs", &[], &[]);
        let own = |address: &str| scope.resolve(&Url::parse("https://x.org/docs/a/b").unwrap(), address);
        let shown = |address: &str| own(address).map(|url| url.to_string());
        assert_eq!(shown("c#d").as_deref(), Some("https://x.org/docs/a/c"));
        assert_eq!(shown("http://x.org/docs/").as_deref(), Some("https://x.org/docs/"));
        assert_eq!(shown("/docs").as_deref(), Some("https://x.org/docs"));
        for other in [
            "/docs2/a",
            "/",
            "../../blog",
            "https://y.org/docs/a",
            "https://x.org:444/docs/a",
            "mailto:a@x.org",
            "javascript:alert(1)",
            "https://u:p@x.org/docs/a",
            "/docs/a/a/a/a/a",
        ] {
            assert_eq!(shown(other), None, "{other}");
        }
        assert_eq!(
            folder(&Url::parse("https://x.org/docs/index.html?a#b").unwrap()).as_str(),
            "https://x.org/docs/"
        );
        assert_eq!(folder(&Url::parse("https://x.org").unwrap()).as_str(), "https://x.org/");
    }

    #[test]
    fn patterns_match_relative_and_absolute_paths() {
        let scope = scope("https://x.org/docs/", &["guide/**", "/docs/api/*"], &["**/old/**"]);
        let wants = |path: &str| scope.wants(&Url::parse(&format!("https://x.org/docs/{path}")).unwrap());
        assert!(wants("guide/a/b") && wants("api/a"));
        assert!(!wants("api/a/b") && !wants("guide/old/a") && !wants("blog"));
        let broken = SiteOptions { include: vec!["[".into()], ..SiteOptions::default() };
        assert!(Scope::new(&scope.folder, &broken).unwrap_err().contains("`[`"));
    }

    #[test]
    fn spellings_of_an_address_have_the_same_key_and_generated_indexes_are_not_followed() {
        let url = |path: &str| Url::parse(&format!("https://x.org{path}")).unwrap();
        assert_eq!(key(&url("/a/index.html")), key(&url("/a")));
        assert_eq!(key(&url("/a/")), key(&url("/a")));
        assert_ne!(key(&url("/a?b")), key(&url("/a")));
        let scope = scope("https://x.org/", &[], &[]);
        assert!(scope.leads_to_page(&url("/v1.2")) && scope.leads_to_page(&url("/a.html")));
        for path in ["/a.png", "/a?b=c", "/_sources/a.txt", "/genindex.html", "/print.html"] {
            assert!(!scope.leads_to_page(&url(path)), "{path}");
        }
    }
}
