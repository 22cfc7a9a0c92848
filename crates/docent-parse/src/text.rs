//! Plain text.
//!
//! Invariant: blank lines separate paragraphs; there is no other structure.

use crate::document::{BlockKind, Parsed, SectionBuilder};

/// Parses plain text.
pub fn parse_text(source: &str) -> Parsed {
    let mut builder = SectionBuilder::default();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in source.lines().chain([""]) {
        if !line.trim().is_empty() {
            paragraph.push(line.trim_end());
        } else if !paragraph.is_empty() {
            builder.block(BlockKind::Text, &std::mem::take(&mut paragraph).join("\n"));
        }
    }
    Parsed { sections: builder.finish(), ..Parsed::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_separate_paragraphs() {
        let blocks = parse_text("one\ntwo\n\n\nthree").sections.remove(0).blocks;
        let texts: Vec<_> = blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["one\ntwo", "three"]);
    }
}
