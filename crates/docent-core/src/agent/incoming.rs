//! Cut a model's answer into pieces while it is still arriving.
//!
//! A piece is returned as soon as no later text can change where it ends. Only the last, unfinished paragraph
//! is cut again, and only after it has grown by a fraction of its length, so the work is linear in the
//! answer.
//!
//! Invariant: the pieces do not depend on how the text was split in transit.

use std::ops::Range;

use crate::unit::{UnitKind, units};

/// The unfinished paragraph is cut again after it has grown by 1/`GROWTH` of its length.
const GROWTH: usize = 32;

/// A piece as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The white space before the piece, with at most one empty line.
    pub separator: String,
    /// The text of the piece.
    pub text: String,
}

/// The text of one model call as it arrives.
#[derive(Debug, Default)]
pub struct Incoming {
    /// Everything received, including a `<think>` block.
    text: String,
    /// Where the answer begins; none until that is known.
    begin: Option<usize>,
    /// Where the unfinished paragraph begins.
    open: usize,
    /// The end of the last piece that was returned.
    taken_to: usize,
    /// Length of the text when it was last cut.
    looked_at: usize,
    #[cfg(test)]
    bytes_cut: usize,
}

impl Incoming {
    /// Adds text and returns the pieces that are now complete.
    pub fn push(&mut self, text: &str) -> Vec<Raw> {
        self.text.push_str(text);
        let grown = self.text.len() - self.looked_at;
        if grown * GROWTH < self.text.len() - self.open {
            return Vec::new();
        }
        self.take(false)
    }

    /// Returns the remaining pieces at the end of the answer.
    pub fn finish(&mut self) -> Vec<Raw> {
        self.take(true)
    }

    /// The answer so far, without a `<think>` block.
    pub fn spoken(&self) -> &str {
        spoken(&self.text)
    }

    fn take(&mut self, is_end: bool) -> Vec<Raw> {
        self.looked_at = self.text.len();
        if self.begin.is_none() {
            self.begin = begin(&self.text);
            let Some(begin) = self.begin else { return Vec::new() };
            (self.open, self.taken_to) = (begin, begin);
        }
        let from = self.open;
        let open = &self.text[from..];
        #[cfg(test)]
        {
            self.bytes_cut += open.len();
        }
        let mut pieces = pieces(open);
        if !is_end && let Some(last) = pieces.pop() {
            // Later text may belong to the last piece. And whether a full stop before closing quotes ends a
            // sentence is only known once something follows them.
            let is_undecided = open[last.span.clone()].chars().all(is_undecided);
            let first_left = is_undecided.then(|| pieces.pop()).flatten().unwrap_or(last);
            self.open = from + first_left.paragraph_start;
        }
        let mut raw = Vec::new();
        for piece in pieces {
            let span = from + piece.span.start..from + piece.span.end;
            if span.start >= self.taken_to {
                let separator = separator(&self.text[self.taken_to..span.start]);
                raw.push(Raw { separator, text: self.text[span.clone()].to_owned() });
                self.taken_to = span.end;
            }
        }
        raw
    }
}

/// The answer without a `<think>` block, which some models send in the same stream.
pub fn spoken(text: &str) -> &str {
    begin(text).map_or("", |begin| &text[begin..])
}

/// Where the answer begins; none inside a `<think>` block or while the text may still become one.
fn begin(text: &str) -> Option<usize> {
    let bare = text.trim_start();
    match bare.strip_prefix("<think>") {
        Some(thought) => {
            let end = thought.find("</think>")?;
            Some(text.len() - thought.len() + end + "</think>".len())
        }
        None if "<think>".starts_with(bare) => None,
        None => Some(0),
    }
}

struct Cut {
    span: Range<usize>,
    /// Where the first line of its paragraph begins.
    paragraph_start: usize,
}

/// Cuts text into sentences, lists, tables and code blocks. A formula in `$$` or `\[` … `\]` stays in one
/// piece.
fn pieces(text: &str) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut paragraph = None;
    let (mut dollars, mut brackets) = (0, 0_isize);
    for unit in units(text) {
        let is_same = paragraph == Some(unit.paragraph);
        let is_in_formula = is_same && (dollars % 2 == 1 || brackets > 0);
        let paragraph_start = match cuts.last() {
            Some(last) if is_same => last.paragraph_start,
            _ => text[..unit.span.start].rfind('\n').map_or(0, |at| at + 1),
        };
        paragraph = Some(unit.paragraph);
        if !is_in_formula {
            (dollars, brackets) = (0, 0);
        }
        if unit.kind != UnitKind::Code {
            let words = &text[unit.span.clone()];
            dollars += words.matches("$$").count();
            brackets += words.matches("\\[").count() as isize - words.matches("\\]").count() as isize;
        }
        match cuts.last_mut() {
            Some(last) if is_in_formula => last.span.end = unit.span.end,
            _ => cuts.push(Cut { span: unit.span, paragraph_start }),
        }
    }
    cuts
}

/// Characters after which it is not yet known whether the full stop before them ended a sentence.
fn is_undecided(c: char) -> bool {
    matches!(c, '"' | '”' | '’' | ')' | ']' | ' ')
}

/// The white space between two pieces, with at most one empty line. Indentation is kept, because it matters
/// in lists.
fn separator(gap: &str) -> String {
    let blank: String = gap.chars().filter(|c| *c != '\r').collect();
    let Some((lines, indentation)) = blank.rsplit_once('\n') else {
        return if gap.is_empty() { String::new() } else { " ".to_owned() };
    };
    if lines.contains('\n') { format!("\n\n{indentation}") } else { format!("{lines}\n{indentation}") }
}

#[cfg(test)]
pub(in crate::agent) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(deltas: &[&str]) -> Vec<Raw> {
        let mut incoming = Incoming::default();
        let mut raw: Vec<Raw> = deltas.iter().flat_map(|delta| incoming.push(delta)).collect();
        raw.extend(incoming.finish());
        raw
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let raw = cut(&[text]);
        let found: Vec<_> = raw.iter().map(|raw| (raw.separator.as_str(), raw.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_piece_keeps_the_white_space_before_it() {
        check("Run:\n```bash\nls\n```\nDone.", &[("", "Run:"), ("\n", "```bash\nls\n```"), ("\n", "Done.")]);
        check("One.  \nTwo.\n\n\n\nThree.", &[("", "One."), ("  \n", "Two."), ("\n\n", "Three.")]);
        check("节点是进程。话题是通道。", &[("", "节点是进程。"), ("", "话题是通道。")]);
        check("Steps:\n\n   Indented.", &[("", "Steps:"), ("\n\n   ", "Indented.")]);
    }

    #[test]
    fn a_formula_is_one_piece() {
        check("So:\n$$\na = b.\nC\n$$\nEnd.", &[("", "So:"), ("\n", "$$\na = b.\nC\n$$"), ("\n", "End.")]);
        check("\\[ x. Y \\] Then.", &[("", "\\[ x. Y \\] Then.")]);
        check("$$ never closed.\n\nNext.", &[("", "$$ never closed."), ("\n\n", "Next.")]);
    }

    #[test]
    fn a_think_block_is_not_part_of_the_answer() {
        let raw = cut(&["<th", "ink>Hm. Well.</thi", "nk>One. ", "Two"]);
        assert_eq!(raw.iter().map(|raw| raw.text.as_str()).collect::<Vec<_>>(), ["One.", "Two"]);
    }

    #[test]
    fn a_sentence_is_returned_before_the_answer_is_complete() {
        let mut incoming = Incoming::default();
        assert!(incoming.push("A node is a process. \"").is_empty(), "the sentence may go on");
        assert_eq!(incoming.push("Topics").len(), 1);
    }

    #[test]
    fn the_work_is_linear_for_a_paragraph_without_end() {
        for line in ["no end in sight, ", "- item. Next\n", "`code. ", "$$ x. Y ", "A. ", "<think>"] {
            let mut incoming = Incoming::default();
            let mut length = 0;
            while length < 300_000 {
                for piece in line.as_bytes().chunks(4) {
                    incoming.push(std::str::from_utf8(piece).unwrap());
                    length += piece.len();
                }
            }
            incoming.finish();
            assert!(incoming.bytes_cut < 50 * length, "{line}: {} for {length}", incoming.bytes_cut);
        }
    }

    /// Markdown as models write it, and broken Markdown.
    pub fn markdown() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[A-Za-z]{1,6}[.!?,:]?",
            Just(". \"x\" y".to_owned()),
            prop::sample::select(vec![
                " ",
                "\n",
                "\n\n",
                "\n\n\n",
                "  \n",
                "\r\n",
                "- ",
                "1. ",
                "  - ",
                "```",
                "```sh\n",
                "`",
                "``",
                "| a | b |\n| --- | --- |\n",
                "| 1 | 2 |\n",
                "$$",
                "$$\n",
                "\\[",
                "\\]",
                "\\(x\\)",
                "$x$",
                "[1]",
                "[2, 1]",
                "# ",
                "> ",
                "**",
                "。",
                "e.g. ",
                ". ",
                ".\" ",
                ".) ",
                "? (",
                "é",
                "\t",
                "---",
            ])
            .prop_map(str::to_owned),
        ];
        prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    /// Cuts a text at each of `places` that is a character boundary.
    pub fn divided(text: &str, places: &[usize]) -> Vec<String> {
        let mut places: Vec<usize> = places.iter().copied().filter(|at| text.is_char_boundary(*at)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_how_the_text_arrives(
            text in markdown(),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let places: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
            let deltas = divided(&text, &places);
            let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
            let whole = cut(&[&text]);
            prop_assert_eq!(&cut(&deltas), &whole);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            prop_assert_eq!(&cut(&letters), &whole);
            // Nothing but white space is lost or changed.
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            let joined: String = whole.iter().map(|raw| format!("{}{}", raw.separator, raw.text)).collect();
            prop_assert_eq!(bare(&joined), bare(spoken(&text)));
        }
    }
}
