//! The YAML between `---` lines at the top of a page.
//!
//! Invariant: unknown keys are the author's business and ignored; broken YAML costs the
//! front matter and a warning, never the page.

use serde::Deserialize;

/// The keys that change what a page is called or where it is published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct FrontMatter {
    /// The page's title.
    pub title: Option<String>,
    /// The last part of the URL, or all of it when it starts with `/`.
    pub slug: Option<String>,
    /// Replaces the file's name in the URL.
    pub id: Option<String>,
    /// A shorter title, used when there is no other.
    pub sidebar_label: Option<String>,
    /// The module, when it is not the first folder.
    pub module: Option<String>,
    /// A page the author does not publish.
    pub draft: Option<bool>,
}

/// Splits a page into its front matter and the rest.
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
                Some(format!("front matter is not valid YAML ({reason}); only its plain lines are used")),
            )
        }
    }
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

/// Reads `key: value` lines one by one when the whole does not parse.
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
    fn keys_we_know_are_read_and_others_ignored() {
        let (front, body, warning) = split(
            "---\ntitle: \"Nodes: a tour\"\nslug: /nodes\ntags: [a, b]\nsidebar_position: 2\n---\n# Hi\n",
        );
        assert_eq!(front.title.as_deref(), Some("Nodes: a tour"));
        assert_eq!(front.slug.as_deref(), Some("/nodes"));
        assert_eq!(body, "# Hi\n");
        assert_eq!(warning, None);
    }

    #[test]
    fn broken_yaml_still_gives_the_title() {
        let (front, body, warning) = split("---\ntitle: Nodes: a tour\nbad: [1\n---\nText\n");
        assert_eq!(front.title.as_deref(), Some("Nodes: a tour"));
        assert_eq!(body, "Text\n");
        assert!(warning.is_some());
    }

    #[test]
    fn a_rule_at_the_top_is_not_front_matter() {
        let (front, body, _) = split("---\nno end");
        assert_eq!(front, FrontMatter::default());
        assert_eq!(body, "---\nno end");
    }

    #[test]
    fn a_number_as_title_or_id_is_text() {
        let (front, _, warning) = split("---\nid: 42\ntitle: 2024\n---\n");
        assert_eq!(front.id.as_deref(), Some("42"), "{warning:?}");
    }
}
