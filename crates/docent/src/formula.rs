//! Shows formulas: as MathML on pages, as readable text on terminals.
//!
//! Formulas come from the book or from a model. Macros could make a short one endless, and deep nesting could
//! exhaust the stack; such formulas are shown as they are written.
//!
//! Invariant: whatever the formula, the result is its MathML, its text, or its escaped source.

mod readable;

use std::borrow::Cow;
use std::convert::Infallible;

use pulldown_latex::config::DisplayMode;
use pulldown_latex::{Event, Parser, RenderConfig, Storage, push_mathml};

use crate::plot::escape;

/// Longer formulas, and formulas with more commands or deeper braces, are shown as they are written.
const LONGEST: usize = 4_000;
const MOST_COMMANDS: usize = 250;
const DEEPEST: usize = 50;

/// Commands that define macros.
const DEFINITIONS: [&str; 6] = ["def", "let", "futurelet", "newcommand", "renewcommand", "providecommand"];

/// The formula as MathML, followed by its source for copying: the style sheet hides the source and makes the MathML
/// unselectable. The source as code if it cannot be shown.
pub fn html(formula: &str) -> String {
    let (latex, display_mode) = without_delimiters(formula);
    let config = RenderConfig { display_mode, ..RenderConfig::default() };
    let (latex, storage) = (in_rows(latex), Storage::new());
    let mut maths = String::new();
    let written = events(&latex, &storage)
        .map(|events| push_mathml(&mut maths, events.into_iter().map(Ok::<_, Infallible>), config));
    let source = escape(formula);
    match written {
        Some(Ok(())) => {
            format!(
                "<span class=\"formula\">{maths}<span class=\"formula-source\" aria-hidden=\"true\">{source}</span></span>"
            )
        }
        _ => format!("<code>{source}</code>"),
    }
}

/// The formula as text for a terminal; its source if it cannot be shown.
pub fn readable(formula: &str) -> String {
    let (latex, _) = without_delimiters(formula);
    let (latex, storage) = (in_rows(latex), Storage::new());
    let text = events(&latex, &storage).map(|events| readable::text(&events));
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| formula.to_owned())
}

fn without_delimiters(formula: &str) -> (&str, DisplayMode) {
    let delimiters = [
        ("$$", "$$", DisplayMode::Block),
        ("\\[", "\\]", DisplayMode::Block),
        ("$", "$", DisplayMode::Inline),
        ("\\(", "\\)", DisplayMode::Inline),
    ];
    delimiters
        .into_iter()
        .find_map(|(open, close, mode)| Some((formula.strip_prefix(open)?.strip_suffix(close)?.trim(), mode)))
        .unwrap_or((formula, DisplayMode::Inline))
}

/// Line breaks outside an environment, which MathJax and KaTeX allow.
fn in_rows(latex: &str) -> Cow<'_, str> {
    if !latex.contains("\\\\") || latex.contains("\\begin") {
        return Cow::Borrowed(latex);
    }
    let rows = latex.trim_end().trim_end_matches("\\\\");
    let environment = if rows.contains('&') { "aligned" } else { "gathered" };
    Cow::Owned(format!("\\begin{{{environment}}}{rows}\\end{{{environment}}}"))
}

/// What the formula consists of; `None` if it has errors, is too large, or defines macros.
fn events<'a>(latex: &'a str, storage: &'a Storage) -> Option<Vec<Event<'a>>> {
    let commands = || latex.split('\\').skip(1);
    let defines = |command: &str| {
        let name = command.split(|c: char| !c.is_ascii_alphabetic()).next();
        name.is_some_and(|name| DEFINITIONS.contains(&name))
    };
    if latex.len() > LONGEST
        || commands().count() > MOST_COMMANDS
        || deepest_brace(latex) > DEEPEST
        || commands().any(defines)
    {
        return None;
    }
    Parser::new(latex, storage).collect::<Result<_, _>>().ok()
}

fn deepest_brace(latex: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for sign in latex.bytes() {
        match sign {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMULAS: &str = include_str!("../tests/fixtures/formulas.txt");

    #[test]
    fn formulas_of_public_documentation_are_shown_with_their_source() {
        assert!(FORMULAS.lines().count() >= 60);
        for latex in FORMULAS.lines() {
            let formula = format!("$${latex}$$");
            let shown = html(&formula);
            assert!(
                shown.starts_with("<span class=\"formula\"><math display=\"block\">"),
                "{latex}: {shown}"
            );
            assert!(!shown.contains("<merror"), "{latex}");
            assert!(shown.ends_with(&format!(">{}</span></span>", escape(&formula))), "{latex}");
        }
    }

    /// `DOCENT_TEST_FORMULAS=FILE cargo test -p docent --bin docent formulas_of_a_file -- --ignored --nocapture`
    #[test]
    #[ignore = "counts the formulas of a file, one per line, that are shown"]
    #[allow(clippy::print_stdout)]
    fn formulas_of_a_file_are_shown() {
        let Ok(file) = std::env::var("DOCENT_TEST_FORMULAS") else {
            return println!("set DOCENT_TEST_FORMULAS to a file with one formula per line");
        };
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let failed: Vec<&&str> =
            lines.iter().filter(|line| !html(&format!("$${line}$$")).contains("<math")).collect();
        for line in &failed {
            println!("as its source: {line}");
        }
        println!("{} of {} formulas are shown", lines.len() - failed.len(), lines.len());
    }

    #[test]
    fn the_delimiters_say_how_a_formula_is_shown() {
        for (formula, mode) in
            [("$x$", "inline"), ("\\(x\\)", "inline"), ("$$x$$", "block"), ("\\[ x \\]", "block")]
        {
            let maths = format!("<math display=\"{mode}\"><mi>x</mi></math>");
            assert!(html(formula).contains(&maths), "{formula}");
        }
    }

    #[test]
    fn line_breaks_need_no_environment() {
        for formula in ["$$a = 1, \\\\ b = 2. \\\\$$", "$$a &= 1 \\\\ b &= 2$$"] {
            let shown = html(formula);
            assert!(shown.contains("<mtable") && shown.contains(&escape(formula)), "{shown}");
        }
        assert_eq!(readable("$$a = 1 \\\\ b = 2$$"), "a = 1\nb = 2");
    }

    #[test]
    fn a_formula_that_cannot_be_shown_is_shown_as_it_is_written() {
        for formula in ["$\\unknown{x}$", "$\\frac{a}{$", "$\\def\\a{x}\\a$", "$\\newcommand\\b{<b>}\\b$"] {
            assert_eq!(html(formula), format!("<code>{}</code>", escape(formula)));
            assert_eq!(readable(formula), formula);
        }
    }

    #[test]
    fn hostile_formulas_do_not_exhaust_the_stack() {
        let around = |open: &str, count: usize, close: &str| {
            format!("${}x{}$", open.repeat(count), close.repeat(count))
        };
        for formula in [
            around("{", 1_900, "}"),
            around("x^{", 1_200, "}"),
            around("\\sqrt ", 250, ""),
            around("\\sqrt ", 600, ""),
            around("\\frac ", 250, ""),
            around("\\hat ", 250, ""),
            around("\\left(", 120, "\\right)"),
            around("\\begin{matrix}", 120, "\\end{matrix}"),
            around("\\text{", 49, "}"),
        ] {
            assert!(html(&formula).len() < 60 * formula.len() + 1_000);
            readable(&formula);
        }
    }
}
