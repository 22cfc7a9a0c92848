//! The ids that site generators give to headings.
//!
//! Invariant: for the same headings in the same order, the anchors equal those in the site generator's
//! output. A wrong anchor is a broken citation link.

use std::collections::HashMap;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whose rules for anchors to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnchorStyle {
    /// `github-slugger`, as used by Docusaurus and GitHub itself.
    GitHub,
    /// mdBook's own rules.
    MdBook,
    /// docutils' `make_id`, as used by Sphinx.
    Sphinx,
    /// Python-Markdown's `toc`, as used by MkDocs.
    MkDocs,
    /// `@mdit-vue/shared`, as used by VitePress.
    VitePress,
    /// The rules of Jupyter and nbviewer: the words unchanged, joined by hyphens.
    Jupyter,
}

/// Generates the anchors of one page and remembers those already used.
#[derive(Debug)]
pub struct Anchors {
    style: AnchorStyle,
    used: HashMap<String, usize>,
    numbered: usize,
}

impl Anchors {
    /// Creates an empty set of anchors for one page.
    pub fn new(style: AnchorStyle) -> Self {
        Self { style, used: HashMap::new(), numbered: 0 }
    }

    /// Returns the anchor of the next heading with this text. An id written in the source takes precedence.
    pub fn next(&mut self, heading: &str, explicit: Option<&str>) -> String {
        if let Some(id) = explicit {
            if self.style != AnchorStyle::GitHub {
                self.used.entry(id.to_owned()).or_insert(0);
            }
            return id.to_owned();
        }
        match self.style {
            AnchorStyle::GitHub => self.suffixed(github(heading)),
            AnchorStyle::MdBook => self.suffixed(mdbook(heading)),
            AnchorStyle::Sphinx => self.sphinx(heading),
            AnchorStyle::MkDocs => self.counted(python_markdown(heading)),
            AnchorStyle::VitePress => self.suffixed(vitepress(heading)),
            AnchorStyle::Jupyter => heading.trim().replace(' ', "-"),
        }
    }

    /// `setup`, then `setup-1`, `setup-2` …, skipping anchors that are already used.
    fn suffixed(&mut self, slug: String) -> String {
        let mut unique = slug.clone();
        while self.used.contains_key(&unique) {
            let count = self.used.entry(slug.clone()).or_insert(0);
            *count += 1;
            unique = format!("{slug}-{count}");
        }
        self.used.insert(unique.clone(), 0);
        unique
    }

    /// `setup`, then `setup_1`, `setup_2` …: a number at the end is incremented even if it is part of the
    /// heading.
    fn counted(&mut self, slug: String) -> String {
        let mut unique = slug;
        while unique.is_empty() || self.used.contains_key(&unique) {
            let counted =
                unique.rsplit_once('_').and_then(|(stem, count)| Some((stem, count.parse::<u64>().ok()?)));
            unique = match counted {
                Some((stem, count)) => format!("{stem}_{}", count.saturating_add(1)),
                None => format!("{unique}_1"),
            };
        }
        self.used.insert(unique.clone(), 0);
        unique
    }

    /// docutils numbers empty and repeated ids across the whole page: `id1`, `id2` …
    fn sphinx(&mut self, heading: &str) -> String {
        let id = docutils(heading);
        if !id.is_empty() && !self.used.contains_key(&id) {
            self.used.insert(id.clone(), 0);
            return id;
        }
        loop {
            self.numbered += 1;
            let id = format!("id{}", self.numbered);
            if !self.used.contains_key(&id) {
                self.used.insert(id.clone(), 0);
                return id;
            }
        }
    }
}

/// Keeps letters, marks, digits, connectors and hyphens, replaces spaces with hyphens and drops the rest.
fn github(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|&c| {
            c == ' '
                || c == '-'
                || c.is_alphabetic()
                || c.general_category_group() == GeneralCategoryGroup::Mark
                || matches!(
                    c.general_category(),
                    GeneralCategory::DecimalNumber | GeneralCategory::ConnectorPunctuation
                )
        })
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn mdbook(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        })
        .collect()
}

/// Keeps ASCII letters, digits and underscores; runs of spaces and hyphens become one hyphen.
fn python_markdown(heading: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    let kept: String = heading
        .nfkd()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-' || c.is_ascii_whitespace())
        .collect();
    hyphenated(kept.trim().to_lowercase().chars().map(|c| if c.is_whitespace() { '-' } else { c }))
}

/// Words without accents and punctuation, joined by single hyphens; a leading digit gets an underscore
/// prefix.
fn vitepress(heading: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    const SIGNS: &str = "~`!@#$%^&*()-_+=[]{}|\\;:\"'“”‘’<>,.?/";
    let is_accent = |c: &char| ('\u{300}'..='\u{36f}').contains(c);
    let plain = heading.nfkd().filter(|c| !is_accent(c) && !('\0'..='\u{1f}').contains(c));
    let slug = hyphenated(plain.map(|c| if c.is_whitespace() || SIGNS.contains(c) { '-' } else { c }));
    let slug = slug.trim_matches('-').to_lowercase();
    if slug.starts_with(|c: char| c.is_ascii_digit()) { format!("_{slug}") } else { slug }
}

/// Collapses each run of hyphens into one.
fn hyphenated(characters: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in characters {
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    out
}

/// ASCII words joined by single hyphens, starting with a letter.
fn docutils(heading: &str) -> String {
    let mut id = String::new();
    for c in heading.chars().flat_map(char::to_lowercase) {
        for c in plain_ascii(c).chars() {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                id.push(c);
            } else if !id.ends_with('-') {
                id.push('-');
            }
        }
    }
    id.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()).trim_end_matches('-').to_owned()
}

/// A character without its accents; empty if it has no ASCII form.
fn plain_ascii(c: char) -> String {
    match c {
        'ß' => "sz".to_owned(),
        'æ' => "ae".to_owned(),
        'œ' => "oe".to_owned(),
        'ø' => "o".to_owned(),
        'đ' => "d".to_owned(),
        'ħ' => "h".to_owned(),
        'ı' => "i".to_owned(),
        'ł' => "l".to_owned(),
        c => {
            use unicode_normalization::UnicodeNormalization;
            c.nfkd().filter(char::is_ascii).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(style: AnchorStyle, headings: &[&str], expected: &[&str]) {
        let mut anchors = Anchors::new(style);
        let got: Vec<_> = headings.iter().map(|heading| anchors.next(heading, None)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn docusaurus_headings() {
        check(
            AnchorStyle::GitHub,
            &[
                "Hello World",
                "Hello World",
                "Hello World",
                "Hello World 1",
                "C++ & C#?",
                "What's new in 2.0?",
                "create_node()",
                "🚀 Launch",
                "⚙️ Setup",
                "a  b",
                "Über Größe",
                "日本語の見出し",
                "foo/bar: baz",
                "x² + y²",
                "--ros-args",
            ],
            &[
                "hello-world",
                "hello-world-1",
                "hello-world-2",
                "hello-world-1-1",
                "c--c",
                "whats-new-in-20",
                "create_node",
                "-launch",
                "\u{fe0f}-setup",
                "a--b",
                "über-größe",
                "日本語の見出し",
                "foobar-baz",
                "x--y",
                "--ros-args",
            ],
        );
    }

    #[test]
    fn mdbook_headings() {
        check(
            AnchorStyle::MdBook,
            &[
                "Hello, World!",
                "Hello, World!",
                "The `?` Operator",
                "Match & if let",
                "🚀 Go",
                "  Spaces  ",
                "Ünïcode",
            ],
            &["hello-world", "hello-world-1", "the--operator", "match--if-let", "-go", "spaces", "ünïcode"],
        );
    }

    #[test]
    fn sphinx_headings() {
        check(
            AnchorStyle::Sphinx,
            &[
                "Hello, World!",
                "Hello, World!",
                "2.1 Install it",
                "C++ API",
                "Größe",
                "日本語",
                "rclpy.create_node",
                "Hello, World!",
                "🚀 Launch",
            ],
            &[
                "hello-world",
                "id1",
                "install-it",
                "c-api",
                "grosze",
                "id2",
                "rclpy-create-node",
                "id3",
                "launch",
            ],
        );
    }

    #[test]
    fn mkdocs_headings() {
        check(
            AnchorStyle::MkDocs,
            &[
                "Hello, World!",
                "Hello, World!",
                "Hello, World!",
                "A -- b --- c",
                "Größe & more",
                "日本語",
                "日本語",
                "step_1",
                "step_1",
                "100 % ready",
                "Gate<T>",
            ],
            &[
                "hello-world",
                "hello-world_1",
                "hello-world_2",
                "a-b-c",
                "groe-more",
                "_1",
                "_2",
                "step_1",
                "step_2",
                "100-ready",
                "gatet",
            ],
        );
    }

    #[test]
    fn vitepress_headings() {
        check(
            AnchorStyle::VitePress,
            &[
                "Hello, World!",
                "Hello, World!",
                "What's new in 2.0?",
                "1. First",
                "Über snake_case",
                "日本語",
            ],
            &["hello-world", "hello-world-1", "what-s-new-in-2-0", "_1-first", "uber-snake-case", "日本語"],
        );
    }

    #[test]
    fn jupyter_headings_keep_their_words() {
        check(
            AnchorStyle::Jupyter,
            &["Load the Data", "What's new?", "Load the Data"],
            &["Load-the-Data", "What's-new?", "Load-the-Data"],
        );
    }

    #[test]
    fn docusaurus_explicit_ids_win_and_are_not_counted() {
        let mut anchors = Anchors::new(AnchorStyle::GitHub);
        assert_eq!(anchors.next("Setup", Some("install")), "install");
        assert_eq!(anchors.next("Install", None), "install");
    }
}
