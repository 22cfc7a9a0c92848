//! Detects Docusaurus and reads its configuration.
//!
//! The configuration is a program: only settings with literal values are found, by text search.
//!
//! Invariant: an address is returned only if it is certainly that of the site.

use std::path::Path;

use docent_parse::Format;
use docent_parse::document::Warning;

/// Maximum number of files checked to detect Docusaurus, and bytes read of each.
const MOST_FILES: usize = 200;
const HEAD: usize = 8 << 10;

/// Whether the folder contains a Docusaurus configuration.
pub(super) fn is_project(folder: &Path) -> bool {
    config(folder).is_some()
}

fn config(folder: &Path) -> Option<std::path::PathBuf> {
    ["js", "ts", "mjs", "cjs"]
        .iter()
        .map(|extension| folder.join(format!("docusaurus.config.{extension}")))
        .find(|file| file.is_file())
}

/// Whether files were written for Docusaurus, judging by their names and by syntax specific to Docusaurus.
pub(super) fn is_written_for(root: &Path, files: &[String]) -> bool {
    const NAMES: [&str; 3] = ["_category_.json", "_category_.yml", "_category_.yaml"];
    let is_named = |file: &String| file.ends_with(".mdx") || NAMES.iter().any(|name| file.ends_with(name));
    if files.iter().any(is_named) {
        return true;
    }
    const KEYS: [&str; 7] = [
        "sidebar_position:",
        "sidebar_label:",
        "sidebar_class_name:",
        "displayed_sidebar:",
        "pagination_next:",
        "pagination_prev:",
        "hide_table_of_contents:",
    ];
    let (mut has_slug, mut has_notes) = (false, false);
    let pages = files.iter().filter(|file| Format::of(file) == Some(Format::Markdown));
    for page in pages.take(MOST_FILES) {
        let head = head(&root.join(page));
        let front = head.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
        let (front, body) = front.unwrap_or(("", &head));
        if front.lines().any(|line| KEYS.iter().any(|key| line.starts_with(key))) {
            return true;
        }
        // Other site generators use slugs or `:::` admonitions, but only Docusaurus uses both.
        has_slug |= front.lines().any(|line| line.starts_with("slug:"));
        let is_note = |line: &str| {
            line.strip_prefix(":::").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        has_notes |= body.lines().any(is_note);
    }
    has_slug && has_notes
}

fn head(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::with_capacity(HEAD);
    if let Ok(file) = std::fs::File::open(path) {
        // If it cannot be read, a warning follows when it is parsed.
        let _ = file.take(HEAD as u64).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

/// The address where the docs in this folder are published, if it is configured. Versions are below it.
pub(super) fn base_url(root: &Path) -> Option<String> {
    Config::read(root.parent().filter(|_| root.ends_with("docs"))?)?.address()
}

/// The configuration of a project.
pub(super) struct Config {
    text: String,
}

impl Config {
    /// Reads the configuration; none if there is none.
    pub fn read(project: &Path) -> Option<Self> {
        Some(Self { text: without_comments(&std::fs::read_to_string(config(project)?).ok()?) })
    }

    /// The address where the docs are published.
    pub fn address(&self) -> Option<String> {
        // There may be several `url` settings; that of the site is the one next to `baseUrl`.
        let base_at = values(&self.text, "baseUrl").into_iter().next()?;
        let base = quoted(base_at)?;
        let url =
            values(&self.text, "url").into_iter().min_by_key(|url| url.len().abs_diff(base_at.len()))?;
        let url = quoted(url).filter(|url| is_published(url))?;
        let route = self.route()?;
        let path: Vec<&str> =
            base.split('/').chain(route.split('/')).filter(|part| !part.is_empty()).collect();
        Some(format!("{}/{}", url.trim_end_matches('/'), path.join("/")))
    }

    /// The path of the docs below the site; none if it is computed.
    pub fn route(&self) -> Option<&str> {
        if has_key(self.docs(), "routeBasePath") {
            setting(self.docs(), "routeBasePath")
        } else {
            Some("docs")
        }
    }

    fn docs(&self) -> &str {
        section(&self.text, "docs").unwrap_or_default()
    }

    /// A switch of the docs.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let value = values(self.docs(), key).into_iter().next()?;
        match value {
            value if value.starts_with("true") => Some(true),
            value if value.starts_with("false") => Some(false),
            _ => None,
        }
    }

    /// A list of strings in the options of the docs.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        listed(values(self.docs(), key).into_iter().next()?)
    }

    /// The version at the address of the docs, if it is configured.
    pub fn last_version(&self) -> Option<&str> {
        setting(self.docs(), "lastVersion")
    }

    /// The path of a version below the docs, if it is configured.
    pub fn version_path(&self, version: &str) -> Option<&str> {
        setting(section(section(self.docs(), "versions")?, version)?, "path")
    }

    /// The default locale, if it is configured.
    pub fn default_locale(&self) -> Option<&str> {
        setting(section(&self.text, "i18n")?, "defaultLocale")
    }

    /// All locales, if they are configured.
    pub fn locales(&self) -> Option<Vec<String>> {
        listed(values(section(&self.text, "i18n")?, "locales").into_iter().next()?)
    }
}

/// The strings of a literal list.
fn listed(value: &str) -> Option<Vec<String>> {
    let inside = value.strip_prefix('[')?.split(']').next()?;
    let items = inside.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| quoted(item).map(str::to_owned)).collect()
}

/// The title of the site.
pub(super) fn title(project: &Path) -> Option<String> {
    let text = without_comments(&std::fs::read_to_string(config(project)?).ok()?);
    setting(&text, "title").map(str::to_owned)
}

/// The image in the navigation bar, below the folder `static`.
pub(super) fn logo(project: &Path) -> Option<String> {
    let text = without_comments(&std::fs::read_to_string(config(project)?).ok()?);
    setting(section(section(&text, "navbar")?, "logo")?, "src").map(str::to_owned)
}

/// Whether an address is public, and not a placeholder from a template.
pub(super) fn is_published(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default().to_lowercase();
    // RFC 2606 reserves these names for examples.
    let reserved = ["example.com", "example.org", "example.net", "example", "test", "invalid", "localhost"];
    let is_reserved = reserved.iter().any(|name| host == *name || host.ends_with(&format!(".{name}")));
    let is_template = host.starts_with("your-") || host.starts_with("my-site") || host.starts_with("127.");
    matches!(scheme, "http" | "https") && !host.is_empty() && !is_reserved && !is_template
}

/// Warnings about pages of a project outside its docs, and how to include them. `are_read` says whether its versions
/// and translations are.
pub(super) fn unread(
    project: &Path,
    shown: &Path,
    are_read: bool,
    has_pages: impl Fn(&Path) -> bool,
) -> Vec<Warning> {
    let mut names: Vec<String> = std::fs::read_dir(project)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort_unstable();
    let mut warnings = Vec::new();
    for name in names {
        let (what, example) = match name.as_str() {
            "blog" => ("the blog", name.clone()),
            "i18n" if !are_read => {
                ("translations", format!("{name}/<locale>/docusaurus-plugin-content-docs/current"))
            }
            // Other docs plugins have versions in folders with other names.
            other if other.ends_with("versioned_docs") && !(are_read && other == "versioned_docs") => {
                ("older versions", format!("{name}/version-<version>"))
            }
            _ => continue,
        };
        let folder = project.join(&name);
        if folder.is_dir() && has_pages(&folder) {
            let source = shown.join(example);
            let message = format!(
                "skipped {what}: only docs/ is read; to include them, add {} as a separate source",
                source.display()
            );
            warnings.push(Warning::new(name, message));
        }
    }
    warnings
}

/// Removes comment lines and `/* … */`.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The text from each value of a key on, the outermost first.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let mut found: Vec<(isize, &str)> = Vec::new();
    let (mut depth, mut counted) = (0_isize, 0);
    for (at, _) in text.match_indices(key) {
        for sign in text[counted..at].bytes() {
            depth += isize::from(sign == b'{') - isize::from(sign == b'}');
        }
        counted = at;
        let is_inside =
            text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'));
        let after = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
        if let Some(value) = after.strip_prefix(':').filter(|_| !is_inside) {
            found.push((depth, value.trim_start()));
        }
    }
    found.sort_by_key(|(depth, _)| *depth);
    found.into_iter().map(|(_, value)| value).collect()
}

fn has_key(text: &str, key: &str) -> bool {
    !values(text, key).is_empty()
}

/// The value of a key, if it is a literal string.
pub(super) fn setting<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    quoted(values(text, key).into_iter().next()?)
}

/// The literal string at the start of `value`.
pub(super) fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inside = value[1..].split(quote).next()?;
    (!inside.contains("${")).then_some(inside)
}

/// The text between the braces of a key's value.
fn section<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let value = values(text, key).into_iter().find(|value| value.starts_with('{'))?;
    let mut depth = 0_usize;
    for (at, sign) in value.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(&value[1..at]),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(config: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("docusaurus.config.ts"), config).unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        base_url(&folder.path().join("docs"))
    }

    #[test]
    fn the_base_url_combines_url_base_url_and_route() {
        let check =
            |config: &str, expected: Option<&str>| assert_eq!(base(config).as_deref(), expected, "{config}");
        check("export default { url: 'https://mill.dev', baseUrl: '/' };", Some("https://mill.dev/docs"));
        check(
            "const config: Config = {\n  // url: 'https://old.dev',\n  \"url\": \"https://mill.dev/\",\n  baseUrl: `/book/`,\n  \
             presets: [['classic', {\n    docs: { routeBasePath: '/', editUrl: 'https://git.dev' },\n    blog: { routeBasePath: 'news' },\n  }]],\n};",
            Some("https://mill.dev/book"),
        );
        check(
            "const logo = { url: 'https://img.dev' };\nmodule.exports = {\n  url: 'https://mill.dev',\n  baseUrl: '/',\n  docs: { routeBasePath: 'guide' },\n};",
            Some("https://mill.dev/guide"),
        );
    }

    #[test]
    fn computed_addresses_and_template_placeholders_are_ignored() {
        for config in [
            "export default { baseUrl: '/' };",
            "export default { url: process.env.URL, baseUrl: '/' };",
            "export default { url: 'https://mill.dev', baseUrl: base };",
            "export default { url: `https://${host}`, baseUrl: '/' };",
            "export default { url: 'https://your-docusaurus-site.example.com', baseUrl: '/' };",
            "export default { url: 'https://your-docusaurus-test-site.com', baseUrl: '/' };",
            "export default { url: 'http://localhost:3000', baseUrl: '/' };",
        ] {
            assert_eq!(base(config), None, "{config}");
        }
    }
}
