//! The YAML between `---` lines at the top of a page.
//!
//! Invariant: unknown keys are ignored. Invalid YAML produces a warning; the rest of the page is still
//! parsed.

use serde::Deserialize;

/// The keys that affect the title or the URL of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FrontMatter {
    /// The page's title.
    pub title: Option<String>,
    /// The last part of the URL, or all of it when it starts with `/`.
    pub slug: Option<String>,
    /// Replaces the file name in the URL.
    pub id: Option<String>,
    /// A shorter title, used if there is no other.
    pub sidebar_label: Option<String>,
    /// The module, if it is not the first folder.
    pub module: Option<String>,
    /// Whether the author has not published this page yet.
    pub draft: Option<bool>,
}

/// Splits a page into its front matter, its body and a warning if the YAML is invalid.
pub fn split(source: &str) -> (FrontMatter, &str, Option<String>) {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let Some((yaml, body)) = fenced(source) else { return (FrontMatter::default(), source, None) };
    match serde_saphyr::from_str::<Option<FrontMatter>>(yaml) {
        Ok(front) => (front.unwrap_or_default(), body, None),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or("not valid YAML");
            (
                scan(yaml),
                body,
                Some(format!("front matter is not valid YAML ({reason}); only `key: value` lines were used")),
            )
        }
    }
}

/// Why a file is not valid YAML. Tags are ignored, because they only matter to the program that owns the
/// file, and duplicate keys are accepted, because many programs use the last one.
pub fn yaml_problem(source: &str) -> Option<String> {
    let untagged: String = source
        .split_inclusive(['\n', ' '])
        .map(|word| if word.starts_with('!') { if word.ends_with('\n') { "\n" } else { "" } } else { word })
        .collect();
    let error = serde_saphyr::from_str::<serde::de::IgnoredAny>(&untagged).err()?.to_string();
    let reason = error.lines().next().unwrap_or("not valid YAML").to_owned();
    (!reason.contains("duplicate")).then_some(reason)
}

fn fenced(source: &str) -> Option<(&str, &str)> {
    let after = source.strip_prefix("---")?;
    let first_line_end = after.find('\n')?;
    if !after[..first_line_end].trim().is_empty() {
        return None;
    }
    let yaml = &after[first_line_end + 1..];
    let mut at = 0;
    for line in yaml.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&yaml[..at], &yaml[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// Reads `key: value` lines one by one if the YAML as a whole does not parse.
fn scan(yaml: &str) -> FrontMatter {
    let value = |key: &str| {
        yaml.lines()
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
            .find(|value| !value.is_empty())
    };
    FrontMatter {
        title: value("title"),
        slug: value("slug"),
        id: value("id"),
        sidebar_label: value("sidebar_label"),
        module: value("module"),
        draft: value("draft").map(|draft| draft == "true"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_tags_and_duplicate_keys_are_accepted() {
        for fine in ["", "a: 1\na: 2\n", "a: !!python/name:x.y\nb: !ENV [A, 'b']\n", "# only words\n"] {
            assert_eq!(yaml_problem(fine), None, "{fine}");
        }
        assert!(yaml_problem("a: [1\nb: 2\n").is_some());
        assert!(yaml_problem("a:\n\t- b\n").is_some());
    }

    #[test]
    fn known_keys_are_read_and_unknown_keys_ignored() {
        let (front, body, warning) = split(
            "---\ntitle: \"Nodes: a tour\"\nslug: /nodes\ntags: [a, b]\nsidebar_position: 2\n---\n# Hi\n",
        );
        assert_eq!(front.title.as_deref(), Some("Nodes: a tour"));
        assert_eq!(front.slug.as_deref(), Some("/nodes"));
        assert_eq!(body, "# Hi\n");
        assert_eq!(warning, None);
    }

    #[test]
    fn invalid_yaml_still_gives_the_title() {
        let (front, body, warning) = split("---\ntitle: Nodes: a tour\nbad: [1\n---\nText\n");
        assert_eq!(front.title.as_deref(), Some("Nodes: a tour"));
        assert_eq!(body, "Text\n");
        assert!(warning.is_some());
    }

    #[test]
    fn a_horizontal_rule_at_the_top_is_not_front_matter() {
        let (front, body, _) = split("---\nno end");
        assert_eq!(front, FrontMatter::default());
        assert_eq!(body, "---\nno end");
    }

    #[test]
    fn a_number_as_title_or_id_becomes_text() {
        let (front, _, warning) = split("---\nid: 42\ntitle: 2024\n---\n");
        assert_eq!(front.id.as_deref(), Some("42"), "{warning:?}");
    }
}
