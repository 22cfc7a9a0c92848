//! Recognizes names of versions and locales, also in addresses.
//!
//! Invariant: what is found in addresses is a guess. It counts only if it tells at least two versions or locales of
//! the same work apart, which the ingest decides.

/// Names of versions without a number, those that are released first.
const NAMED: [&str; 12] = [
    "stable", "latest", "current", "next", "main", "master", "dev", "devel", "develop", "nightly", "edge",
    "canary",
];

/// The two-letter codes of ISO 639.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de \
    dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is \
    it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na \
    nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr \
    ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Whether a folder name is that of a version: `1.2`, `v3`, `2.x`, `stable`.
pub(crate) fn is_version(name: &str) -> bool {
    NAMED.contains(&name) || number(name).is_some()
}

/// Whether a folder name is the code of a locale: `en`, `pt-BR`, `zh_CN`, `zh-Hans`.
pub(crate) fn is_locale(name: &str) -> bool {
    let (language, region) = name.split_once(['-', '_']).unwrap_or((name, "US"));
    let is_region = (2..=4).contains(&region.len()) && region.chars().all(|c| c.is_ascii_alphanumeric());
    language.len() == 2 && is_region && LANGUAGES.split(' ').any(|known| known == language)
}

/// The numbers of a version such as `v1.2.x`, and whether it has nothing but numbers.
fn number(name: &str) -> Option<(Vec<u64>, bool)> {
    let bare = name.strip_prefix("version-").unwrap_or(name);
    let bare = bare.strip_prefix(['v', 'V']).unwrap_or(bare);
    let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
    let (numbers, rest) = bare.split_at(end);
    let is_final = rest.is_empty() || (rest == "x" && numbers.ends_with('.'));
    let is_early = is_preview(rest.trim_start_matches(['-', '_', '.']));
    let numbers: Option<Vec<u64>> =
        numbers.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
    numbers.filter(|_| is_final || is_early).map(|numbers| (numbers, is_final))
}

/// Whether this is the part after the number of a preview version: `beta`, `rc1`, `a2`.
fn is_preview(rest: &str) -> bool {
    let is_number =
        |rest: &str| rest.trim_start_matches(['-', '.']).chars().all(|c| c.is_ascii_digit() || c == '.');
    let named = ["alpha", "beta", "rc", "pre", "preview", "dev"];
    named.iter().any(|name| rest.strip_prefix(name).is_some_and(is_number))
        || rest.strip_prefix(['a', 'b']).is_some_and(|rest| !rest.is_empty() && is_number(rest))
}

/// The version that most users have: `stable`, else `latest`, else the highest number that is not a preview, else the
/// first one.
pub(crate) fn released<'a>(names: &[&'a str]) -> Option<&'a str> {
    let called = |wanted: &str| names.iter().find(|name| **name == wanted).copied();
    let highest = || {
        let numbered = names
            .iter()
            .filter_map(|name| number(name).map(|(numbers, is_final)| (is_final, numbers, *name)));
        numbered.max_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1))).map(|(_, _, name)| name)
    };
    called("stable").or_else(|| called("latest")).or_else(highest).or_else(|| names.first().copied())
}

/// A version and a locale found in an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InAddress {
    /// The address above them.
    pub work: String,
    pub version: String,
    pub locale: String,
}

/// The version and the locale in an address of Read the Docs: `/en/stable/`.
pub(crate) fn in_address(url: &str) -> Option<InAddress> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"))?;
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    // The first part is the host, and after the last slash there is a page.
    let at =
        (1..parts.len().saturating_sub(2)).find(|at| is_locale(parts[*at]) && is_version(parts[at + 1]))?;
    Some(InAddress {
        work: format!("{scheme}://{}", parts[..at].join("/")),
        version: parts[at + 1].to_owned(),
        locale: parts[at].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_locales_are_recognized() {
        for name in ["1.2", "v3", "2.x", "stable", "version-1.0", "2.0rc1", "2024"] {
            assert!(is_version(name), "{name}");
        }
        for name in ["", "v", "guide", "3d", "1-introduction", "x"] {
            assert!(!is_version(name), "{name}");
        }
        for name in ["en", "pt-BR", "zh_CN", "zh-Hans"] {
            assert!(is_locale(name), "{name}");
        }
        for name in ["js", "go", "api", "en-", "e"] {
            assert!(!is_locale(name), "{name}");
        }
    }

    #[test]
    fn the_released_version_is_the_default() {
        for (names, expected) in [
            (&["latest", "1.0", "stable"][..], "stable"),
            (&["1.0", "latest"], "latest"),
            (&["1.9", "1.10", "2.0-beta", "next"], "1.10"),
            (&["main", "v2", "v10"], "v10"),
            (&["cobalt", "amber"], "cobalt"),
            (&["2.0rc1", "main"], "2.0rc1"),
        ] {
            assert_eq!(released(names), Some(expected), "{names:?}");
        }
        assert_eq!(released(&[]), None);
    }

    #[test]
    fn addresses_of_read_the_docs_name_a_locale_and_a_version() {
        let found = |url: &str| {
            in_address(url).map(|found| format!("{} {} {}", found.work, found.locale, found.version))
        };
        let stable = Some("https://mill.readthedocs.io en stable".to_owned());
        assert_eq!(found("https://mill.readthedocs.io/en/stable/guide/a.html#x"), stable);
        assert_eq!(found("https://mill.readthedocs.io/en/stable/"), stable);
        assert_eq!(found("https://x.org/p/de/1.2/"), Some("https://x.org/p de 1.2".to_owned()));
        assert_eq!(found("https://x.org/en/guide/"), None);
        assert_eq!(found("https://x.org/js/1.2/"), None);
        assert_eq!(found("file:///home/en/1.2/a.md"), None);
    }
}
