//! Converts the roles and tabs of d2lbook, the site generator of “Dive into Deep Learning”, to standard
//! Markdown.
//!
//! A role is written as in reStructuredText: `` :numref:`label` ``. Tabs are between `:begin_tab:` and
//! `:end_tab:`.
//!
//! Invariant: code fences and code spans are left unchanged.

use super::fence::{code_span, for_each_line};
use super::references::References;

/// The roles, and whether they are shown.
const ROLES: [(&str, bool); 9] = [
    ("begin_tab", true),
    ("numref", true),
    ("ref", true),
    ("eqref", true),
    ("cite", true),
    ("citet", true),
    ("label", false),
    ("eqlabel", false),
    ("width", false),
];

/// Text that is marked for the slides of the book; the page shows it without the marks.
const MARKS: [(&str, &str); 2] = [("[**", "**]"), ("(**", "**)")];

/// Converts a page to standard Markdown.
pub(super) fn to_markdown(source: &str, references: &References<'_>) -> String {
    let is_d2l = [":begin_tab:`", ":label:`", ":numref:`", ":eqlabel:`", ":cite:`", ":citet:`"];
    if !is_d2l.iter().any(|sign| source.contains(sign)) {
        return source.to_owned();
    }
    // A mark may be closed on a later line.
    let is_paired = |(open, close): &(&str, &str)| {
        let mut counts = (0, 0);
        for_each_line(source, |line, in_code| {
            if !in_code {
                counts = (counts.0 + line.matches(open).count(), counts.1 + line.matches(close).count());
            }
        });
        counts.0 == counts.1
    };
    let marks: Vec<(&str, &str)> = MARKS.into_iter().filter(is_paired).collect();
    let mut out = String::with_capacity(source.len());
    for_each_line(source, |line, in_code| {
        if in_code {
            out.push_str(line);
            return;
        }
        let bare = line.trim();
        if bare == ":end_tab:" {
            out.push('\n');
            return;
        }
        let mut line = line.to_owned();
        for (open, close) in &marks {
            line = line.replace(open, "").replace(close, "");
        }
        let words = roles(&line, references);
        let is_tab = bare.starts_with(":begin_tab:`");
        out.push_str(&if is_tab { format!("\n{words}\n") } else { words });
    });
    out
}

/// The label that a line gives to what is above it.
pub(super) fn label(line: &str) -> Option<&str> {
    let label = line.strip_prefix(":label:`")?.strip_suffix('`')?;
    (!label.contains('`')).then_some(label)
}

/// A title without the marks for slides.
pub(super) fn without_marks(title: &str) -> String {
    let inside = MARKS.iter().find_map(|(open, close)| title.strip_prefix(open)?.strip_suffix(close));
    inside.unwrap_or(title).to_owned()
}

/// Replaces the roles in a line with their text.
fn roles(line: &str, references: &References<'_>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', ':']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('`') {
            let span = code_span(rest);
            out.push_str(&rest[..span]);
            rest = &rest[span..];
            continue;
        }
        let role = ROLES.iter().find_map(|(name, is_shown)| {
            let after = rest[1..].strip_prefix(name)?.strip_prefix(":`")?;
            let (inside, after) = after.split_once('`')?;
            Some((*name, *is_shown, inside, after))
        });
        match role {
            Some((name, is_shown, inside, after)) => {
                if is_shown {
                    out.push_str(&role_words(name, inside, references));
                }
                rest = after;
            }
            None => {
                out.push(':');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn role_words(role: &str, inside: &str, references: &References<'_>) -> String {
    // Names contain underscores, which are not emphasis.
    let written = || inside.replace('_', "\\_");
    match role {
        "begin_tab" => inside.to_owned(),
        "numref" | "ref" => references.label(inside).map_or_else(written, str::to_owned),
        "cite" => {
            let works: Vec<String> = inside.split(',').map(|key| cited(key.trim(), ", ", "")).collect();
            format!("({})", works.join("; "))
        }
        "citet" => {
            let works: Vec<String> = inside.split(',').map(|key| cited(key.trim(), " (", ")")).collect();
            works.join(", ")
        }
        _ => written(),
    }
}

/// `Hu.Lee.ea.2018` becomes `Hu et al., 2018`; a key of another form is shown as it is written.
fn cited(key: &str, before_year: &str, after_year: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let Some((year, names)) = parts.split_last().filter(|(year, names)| {
        let is_year = year.len() >= 4 && year.chars().take(4).all(|c| c.is_ascii_digit());
        is_year && !names.is_empty()
    }) else {
        return key.replace('_', "\\_");
    };
    let names = match names {
        [one] => (*one).to_owned(),
        [one, two] if *two != "ea" => format!("{one} and {two}"),
        _ => format!("{} et al.", names[0]),
    };
    format!("{names}{before_year}{year}{after_year}").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::super::references::{References, Titles};
    use super::super::{markdown::Flavor, markdown::parse_markdown_among, shown};

    fn check(source: &str, expected: &str) {
        let mut titles = Titles::default();
        titles.add("a/softmax.md", "# Softmax `Regression`\n:label:`sec_softmax`\n\nText.\n");
        let references = References::new("a/b.md", &titles);
        let (_, parsed) = parse_markdown_among(source, Flavor::Plain, references, &mut |_| None);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn labels_and_sizes_are_not_shown_and_references_show_titles() {
        check(
            "# Page\n:label:`sec_page`\n\nSee :numref:`sec_softmax`, :numref:`sec_page` and :numref:`fig_a_b`.\n\n\
             ![A cat.](cat.png)\n:width:`400px`\n:label:`fig_a_b`\n\n$$a_1$$\n:eqlabel:`eq_x`\n\nBy :eqref:`eq_x`.\n",
            "# Page #page\n[Text] See Softmax Regression, Page and fig_a_b.\n[Text] A cat.\n[Text] $$a_1$$\n[Text] By eq_x.\n",
        );
    }

    #[test]
    fn citations_show_names_and_years() {
        check(
            "It works :cite:`Hu.Lee.ea.2018,Li.2014`, say :citet:`Adam.Eve.2020` and :cite:`odd_key`.\n",
            "[Text] It works (Hu et al., 2018; Li, 2014), say Adam and Eve (2020) and (odd_key).\n",
        );
    }

    #[test]
    fn tabs_show_their_names_and_text() {
        check(
            "Before.\n:begin_tab:`mxnet, jax`\nUse `Dense`.\n:end_tab:\n\n:begin_tab:`pytorch`\nUse it.\n:end_tab:\nAfter.\n",
            "[Text] Before.\n[Text] mxnet, jax\n[Text] Use `Dense`.\n[Text] pytorch\n[Text] Use it.\n[Text] After.\n",
        );
    }

    #[test]
    fn text_marked_for_slides_has_no_brackets() {
        check(
            "## [**Layers**]\n:label:`x`\n\nWe (**build\nit**) [here](a.md).\n",
            "## Layers #layers\n[Text] We build it here.\n",
        );
    }

    #[test]
    fn code_and_other_colons_are_left_alone() {
        check(
            "```\n:label:`x`\n[**a**]\n```\n\nUse `:label:` at 10:30: :other:`x` :cite:`A.2020`.\n",
            "[Code] ```\n:label:`x`\n[**a**]\n```\n[Text] Use `:label:` at 10:30: :other:`x` (A, 2020).\n",
        );
    }
}
