//! Protects formulas in Markdown: they are replaced by placeholders before parsing and restored afterwards.
//!
//! Otherwise Markdown would drop the backslashes of `\[ … \]` and `\frac`, and treat `a_1` and `b_1` as
//! emphasis.
//!
//! Invariant: a formula is restored exactly as it was written, whether in a paragraph, a table cell or code.

use super::fence::{code_span, for_each_line};

/// A placeholder is the number of the formula between two private-use characters that no page should contain.
const OPEN: char = '\u{f0f8e}';
const CLOSE: char = '\u{f0f8f}';

/// If no closing `$` is found within this many bytes, the `$` does not start a formula.
const LONGEST: usize = 4_000;

/// The formulas of a page.
#[derive(Debug, Default)]
pub struct Maths {
    formulas: Vec<Formula>,
}

#[derive(Debug)]
struct Formula {
    /// With its delimiters.
    source: String,
    /// Whether it is in a row of a table, where `|` is written `\|`.
    is_in_row: bool,
}

impl Maths {
    /// Replaces formulas by placeholders. Code is left unchanged.
    pub fn hidden(&mut self, source: &str) -> String {
        if !source.contains(['$', '\\']) {
            return source.to_owned();
        }
        let mut out = String::with_capacity(source.len());
        let mut paragraph = String::new();
        for_each_line(source, |line, in_code| {
            // A formula ends within its paragraph.
            if in_code || line.trim().is_empty() {
                self.paragraph(&std::mem::take(&mut paragraph), &mut out);
                out.push_str(line);
            } else {
                paragraph.push_str(line);
            }
        });
        self.paragraph(&paragraph, &mut out);
        out
    }

    /// Restores the formulas.
    pub fn shown(&self, text: &str) -> String {
        self.restored(text, |formula| formula.source.clone())
    }

    /// Replaces the placeholders by what `show` makes of the formulas; it receives them with their delimiters.
    pub fn replaced(&self, text: &str, show: impl Fn(&str) -> String) -> String {
        self.restored(text, |formula| match formula.is_in_row {
            true => show(&formula.source.replace("\\|", "|")),
            false => show(&formula.source),
        })
    }

    fn restored(&self, text: &str, show: impl Fn(&Formula) -> String) -> String {
        if self.formulas.is_empty() || !text.contains(OPEN) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            out.push_str(before);
            let mark = after.split_once(CLOSE);
            let formula = mark.and_then(|(number, _)| self.formulas.get(number.parse::<usize>().ok()?));
            match (mark, formula) {
                (Some((_, after)), Some(formula)) => {
                    out.push_str(&show(formula));
                    rest = after;
                }
                _ => {
                    out.push(OPEN);
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn paragraph(&mut self, text: &str, out: &mut String) {
        let mut at = 0;
        let mut unclosed: Vec<&str> = Vec::new();
        while let Some(found) = text[at..].find(['$', '\\', '`']) {
            out.push_str(&text[at..at + found]);
            at += found;
            let rest = &text[at..];
            if rest.starts_with('`') {
                let span = code_span(rest);
                out.push_str(&rest[..span]);
                at += span;
                continue;
            }
            match formula(rest, &text[..at], &mut unclosed) {
                Some(length) => {
                    out.push_str(&format!("{OPEN}{}{CLOSE}", self.formulas.len()));
                    self.formulas.push(Formula::new(&rest[..length], &text[..at]));
                    at += length;
                }
                None => {
                    // Keep a backslash and the character it escapes together.
                    let escaped = rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
                    let length = 1 + escaped.map_or(0, char::len_utf8);
                    out.push_str(&rest[..length]);
                    at += length;
                }
            }
        }
        out.push_str(&text[at..]);
    }
}

impl Formula {
    /// The formula `source`, after the text `before` of the same paragraph.
    fn new(source: &str, before: &str) -> Self {
        let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        Self { source: without_prefix(source, line), is_in_row: line.trim_start().starts_with('|') }
    }
}

/// The length of the formula at the start of `rest`. `unclosed` holds the delimiters known to be missing from
/// the rest of the paragraph.
fn formula(rest: &str, before: &str, unclosed: &mut Vec<&'static str>) -> Option<usize> {
    let (open, close) = [("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)")]
        .into_iter()
        .find(|(open, _)| rest.starts_with(open))?;
    if unclosed.contains(&close) {
        return None;
    }
    let inside = &rest[open.len()..];
    let is_last = inside.len() <= LONGEST;
    let inside = &inside[..inside.floor_char_boundary(LONGEST)];
    let ends = |at: usize| {
        let escaped = inside[..at].len() - inside[..at].trim_end_matches('\\').len();
        escaped.is_multiple_of(2)
    };
    let Some(end) = inside.match_indices(close).map(|(at, _)| at).find(|at| ends(*at)) else {
        // The rest of the paragraph was searched; do not search it again.
        if is_last {
            unclosed.push(close);
        }
        return None;
    };
    let content = &inside[..end];
    let after = inside[end + close.len()..].chars().next();
    let is_formula = match open {
        "$$" => !content.trim().is_empty(),
        // `$5 and $10` are prices, not a formula (Pandoc's rule).
        "$" => {
            !content.is_empty()
                && !content.starts_with(char::is_whitespace)
                && !content.ends_with(char::is_whitespace)
                && !content.contains('`')
                // Between two cells of a table in HTML.
                && !content.contains("</")
                && !after.is_some_and(|c| c.is_ascii_digit() || c == '$')
                && !before.ends_with(|c: char| c.is_alphanumeric())
        }
        open => looks_like_maths(content, open == "\\["),
    };
    is_formula.then_some(open.len() + end + close.len())
}

/// Distinguishes formulas from escaped brackets such as `\[1\]` and `\(see below\)`.
fn looks_like_maths(content: &str, is_display: bool) -> bool {
    let bare = content.trim();
    let is_command =
        |(at, _): (usize, &str)| bare[at + 1..].starts_with(|c: char| c == '\\' || c.is_ascii_alphabetic());
    if bare.contains(['^', '=', '{', '}', '+', '<', '>']) || bare.match_indices('\\').any(is_command) {
        return true;
    }
    let is_set_apart = content.starts_with(char::is_whitespace)
        && content.ends_with(char::is_whitespace)
        && !bare.is_empty();
    let longest_word = bare.split(|c: char| !c.is_alphabetic()).map(str::len).max().unwrap_or(0);
    is_set_apart || (!is_display && (1..=2).contains(&longest_word))
}

/// Removes the quote markers from a formula that spans several lines of a quote; `line` is the text before it in its line.
fn without_prefix(formula: &str, line: &str) -> String {
    let is_prefix = |c: char| matches!(c, ' ' | '\t' | '>');
    let prefix = line.len() - line.trim_start_matches(is_prefix).len();
    if prefix == 0 || !formula.contains('\n') {
        return formula.to_owned();
    }
    let mut lines = formula.lines();
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let own = line.len() - line.trim_start_matches(is_prefix).len();
        out.push('\n');
        out.push_str(&line[own.min(prefix)..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};
    use super::*;

    fn check_as(flavor: Flavor, source: &str, expected: &str) {
        let (_, parsed) = parse_markdown(source, flavor, &mut |_| None);
        assert_eq!(shown(&parsed), expected, "{flavor:?}");
    }

    /// Checks that every flavor keeps the formula exactly as written.
    fn check_kept(formula: &str) {
        for flavor in [Flavor::Plain, Flavor::Docusaurus, Flavor::MkDocs, Flavor::MdBook, Flavor::VitePress] {
            check_as(flavor, &format!("So {formula} holds.\n"), &format!("[Text] So {formula} holds.\n"));
        }
    }

    #[test]
    fn formulas_are_kept_exactly() {
        check_kept("\\[ \\frac{a}{b} \\\\ c\\_1 \\]");
        check_kept("\\(x\\)");
        check_kept("\\( a_1 * b_1 * c \\)");
        check_kept("$a_1 \\_ b_1 *c*$");
        check_kept("$x<y$");
        check_kept("$$ \\begin{bmatrix} 1 & 2 \\\\ 3 & 4 \\end{bmatrix} $$");
    }

    #[test]
    fn dollars_in_two_cells_of_an_html_table_are_not_a_formula() {
        check_as(
            Flavor::Plain,
            "<table>\n<tr><td>., * or $,</td>\n<td>One</td></tr>\n<tr><td>$</td><td>Two</td></tr>\n</table>\n",
            "[Text] ., * or $,\nOne\n$\nTwo\n",
        );
    }

    #[test]
    fn a_formula_may_span_several_lines() {
        check_as(
            Flavor::Plain,
            "Here:\n\n\\[\nx_1 \\\\\ny_1\n\\]\n\n> $$\n> a_1\n> $$\n",
            "[Text] Here:\n[Text] \\[\nx_1 \\\\\ny_1\n\\]\n[Admonition] $$\na_1\n$$\n",
        );
        check_as(
            Flavor::MkDocs,
            "!!! note\n    $$\n    a_1\n    $$\n",
            "[Admonition] Note:\n[Admonition] $$\na_1\n$$\n",
        );
    }

    #[test]
    fn a_pipe_in_a_formula_does_not_split_cells() {
        check_as(
            Flavor::Plain,
            "| a |\n|---|\n| \\(|x|\\) |\n",
            "[Table] | a |\n| --- |\n| \\(\\|x\\|\\) |\n",
        );
    }

    #[test]
    fn escaped_brackets_prices_and_code_are_not_formulas() {
        check_as(
            Flavor::Plain,
            "See \\[RFC 1\\] \\(there\\), \\[1\\]; from $5 to **$10**, `$a` or `\\(x\\)`.\n",
            "[Text] See [RFC 1] (there), [1]; from $5 to $10, `$a` or `\\(x\\)`.\n",
        );
        check_as(Flavor::Plain, "```sh\necho \\(x\\) $a$\n```\n", "[Code] ```sh\necho \\(x\\) $a$\n```\n");
        check_as(Flavor::Plain, "A\n\n    \\(x_1\\) $a$\n", "[Text] A\n[Code] ```\n\\(x_1\\) $a$\n```\n");
    }

    #[test]
    fn formulas_can_be_shown_as_something_else() {
        let mut maths = Maths::default();
        let hidden = maths.hidden("So $a_1$.\n\n| a |\n|---|\n| \\(\\|x\\|\\) |\n");
        assert_eq!(
            maths.replaced(&hidden, |formula| format!("<{formula}>")),
            "So <$a_1$>.\n\n| a |\n|---|\n| <\\(|x|\\)> |\n"
        );
    }

    #[test]
    fn placeholder_characters_already_on_the_page_are_kept() {
        let mut maths = Maths::default();
        let source = format!("{OPEN}7{CLOSE} $x$ {OPEN}");
        assert_eq!(maths.shown(&maths.shown("a")), "a");
        let hidden = maths.hidden(&source);
        assert_eq!(maths.shown(&hidden), source);
    }
}
