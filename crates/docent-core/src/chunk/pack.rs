//! Pack the blocks of a section into passages.
//!
//! Blocks that only make sense together stay together: a lead-in ("To save the map:") with the list, table,
//! code or formula after it, and code with the paragraph that introduces it. A block is cut only if it is too
//! long for one passage; then its lead-in stays with its first part.
//!
//! Invariant: no passage is longer than the limit, and no word is lost.

use super::TokenCounter;
use crate::sentence::sentences;
use crate::unit::is_item;
use docent_parse::document::{Block, BlockKind};

/// A packed passage.
#[derive(Debug)]
pub struct Packed {
    /// The text of the passage.
    pub text: String,
    /// Whether the passage begins in the middle of a block.
    pub continues: bool,
    /// Whether the passage ends in the middle of a block.
    pub breaks_off: bool,
    /// Number of tokens if known. A passage of one block has been counted already, and counting is most of
    /// the work.
    pub tokens: Option<usize>,
}

/// How strongly a block is tied to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Tie {
    /// Independent of the block before.
    Loose,
    /// Code, a table or a list after a paragraph: kept together if there is room.
    Close,
    /// A block after its lead-in: kept together, even if the block has to be cut.
    Fast,
}

/// A block with its length and its tie to the block before.
struct Piece<'a> {
    block: &'a Block,
    tokens: usize,
    tie: Tie,
}

/// Packs the blocks, in order, into passages of at most `room` tokens.
pub fn pack(blocks: &[Block], room: usize, count: TokenCounter<'_>) -> Vec<Packed> {
    let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let tie = pieces.last().map_or(Tie::Loose, |before| tie(before.block, block));
        pieces.push(Piece { block, tokens: count(&block.text), tie });
    }
    let mut filler = Filler { room, count, used: 0, done: Vec::new() };
    for run in runs(&pieces, Tie::Close) {
        filler.add_run(run);
    }
    filler.done
}

/// Splits before every piece whose tie is weaker than `least`.
fn runs<'p, 'a>(pieces: &'p [Piece<'a>], least: Tie) -> impl Iterator<Item = &'p [Piece<'a>]> {
    pieces.chunk_by(move |_, next| next.tie >= least)
}

fn tie(before: &Block, block: &Block) -> Tie {
    let introduces = matches!(before.kind, BlockKind::Text | BlockKind::Admonition);
    if introduces && leads_in(&before.text) {
        return Tie::Fast;
    }
    let shows = block.kind.is_atomic()
        || block.text.lines().next().is_some_and(is_item)
        || is_code_alone(&block.text);
    if introduces && shows { Tie::Close } else { Tie::Loose }
}

/// Whether a text introduces what comes next: it ends with a colon.
pub fn leads_in(text: &str) -> bool {
    text.trim_end().ends_with([':', '：'])
}

/// Whether a paragraph consists of a single piece of inline code.
pub fn is_code_alone(text: &str) -> bool {
    let text = text.trim();
    text.len() > 2 && text.starts_with('`') && text.ends_with('`') && !text[1..text.len() - 1].contains('`')
}

struct Filler<'a> {
    room: usize,
    count: TokenCounter<'a>,
    used: usize,
    done: Vec<Packed>,
}

impl Filler<'_> {
    /// Adds blocks that belong together: whole if they fit into one passage, else split at the weakest tie.
    fn add_run(&mut self, run: &[Piece<'_>]) {
        let tokens: usize = run.iter().map(|piece| piece.tokens).sum();
        match run {
            _ if tokens <= self.room => self.add_whole(run, tokens),
            [piece] => self.add_parts(piece.block, self.room, true),
            _ if run[1..].iter().any(|piece| piece.tie < Tie::Fast) => {
                runs(run, Tie::Fast).for_each(|part| self.add_run(part));
            }
            [lead, rest @ ..] => {
                self.add_lead(lead);
                let (first, others) = (&rest[0], &rest[1..]);
                self.add_parts(first.block, self.room.saturating_sub(self.used), false);
                others.iter().for_each(|piece| self.add_run(std::slice::from_ref(piece)));
            }
            [] => {}
        }
    }

    fn add_whole(&mut self, run: &[Piece<'_>], tokens: usize) {
        if self.used + tokens > self.room {
            self.used = self.room;
        }
        for piece in run {
            self.add(piece.block.text.clone(), piece.tokens, false, true);
        }
    }

    /// Adds a lead-in whose block has to be cut. Of a long paragraph, only the last sentence is the lead-in.
    fn add_lead(&mut self, lead: &Piece<'_>) {
        let text = &lead.block.text;
        let last = sentences(text).last().map_or(0, |span| span.start);
        let (before, last) = text.split_at(last);
        if !before.trim().is_empty() && lead.tokens > self.room / 4 {
            let block = Block::new(lead.block.kind, before.trim_end());
            let tokens = (self.count)(&block.text);
            self.add_run(&[Piece { block: &block, tokens, tie: Tie::Loose }]);
            self.start_passage();
            let block = Block::new(lead.block.kind, last);
            self.add_parts(&block, self.room, false);
        } else {
            self.start_passage();
            self.add_parts(lead.block, self.room, false);
        }
    }

    fn start_passage(&mut self) {
        self.used = self.room;
    }

    /// Adds a block in parts. The first part fills the remaining `first_room`, unless that is too little to
    /// be useful.
    fn add_parts(&mut self, block: &Block, first_room: usize, is_block: bool) {
        let tokens = (self.count)(&block.text);
        if tokens <= first_room.min(self.room) {
            return self.add(block.text.clone(), tokens, false, is_block);
        }
        let first_room = if first_room < self.room / 4 { self.room } else { first_room };
        let parts = cut(block, first_room, self.room, self.count);
        let last = parts.len().saturating_sub(1);
        for (number, (text, tokens)) in parts.into_iter().enumerate() {
            self.add(text, tokens, number > 0, false);
            if let Some(open) = self.done.last_mut().filter(|_| number < last) {
                open.breaks_off = true;
            }
        }
    }

    fn add(&mut self, text: String, tokens: usize, continues: bool, is_block: bool) {
        match self.done.last_mut() {
            Some(open) if self.used + tokens <= self.room => {
                open.text.push_str("\n\n");
                open.text.push_str(&text);
                open.tokens = None;
                self.used += tokens;
            }
            _ => {
                let tokens_known = is_block.then_some(tokens);
                self.done.push(Packed { text, continues, breaks_off: false, tokens: tokens_known });
                self.used = tokens;
            }
        }
    }
}

/// Cuts a long block: code and tables between lines, lists between items, text between sentences.
fn cut(block: &Block, first_room: usize, room: usize, count: TokenCounter<'_>) -> Vec<(String, usize)> {
    let rooms = (first_room, room);
    match block.kind {
        BlockKind::Code => {
            let (open, close) = fences(&block.text);
            let (open, close) = (format!("{open}\n"), format!("\n{close}"));
            // Very long fences, used around code with many backticks, would leave no room for the code.
            let fits = count(&open) + count(&close) <= room / 2;
            let (open, close) = if fits { (open.as_str(), close.as_str()) } else { ("", "") };
            let body: Vec<_> =
                block.text.lines().skip(1).take(block.text.lines().count().saturating_sub(2)).collect();
            group(&body, "\n", rooms, open, close, count)
        }
        BlockKind::Table => {
            let lines: Vec<_> = block.text.lines().collect();
            let header = lines.iter().take(2).copied().collect::<Vec<_>>().join("\n");
            let header = if count(&header) * 2 < room { format!("{header}\n") } else { String::new() };
            let skipped = if header.is_empty() { 0 } else { 2 };
            group(&lines[skipped.min(lines.len())..], "\n", rooms, &header, "", count)
        }
        BlockKind::Text | BlockKind::Admonition => {
            let items = items(&block.text);
            if items.iter().all(|item| count(item) <= room) && items.len() > 1 {
                return group(&items, "", rooms, "", "", count);
            }
            let spans = sentences(&block.text);
            // Keep the space or line break between sentences.
            let parts: Vec<_> = spans
                .iter()
                .enumerate()
                .map(|(number, span)| {
                    let from = if number == 0 { span.start } else { spans[number - 1].end };
                    &block.text[from..span.end]
                })
                .collect();
            group(&parts, "", rooms, "", "", count)
        }
    }
}

/// The items of a list, each with its continuation lines. Text before the first item counts as an item.
fn items(text: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at == 0 || is_item(line) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

fn fences(code: &str) -> (&str, &str) {
    (code.lines().next().unwrap_or("```"), code.lines().last().unwrap_or("```"))
}

/// Joins parts into groups that fit the room, which may be smaller for the first. A part that is too long is
/// cut between words.
fn group(
    parts: &[&str],
    separator: &str,
    (first_room, room): (usize, usize),
    before: &str,
    after: &str,
    count: TokenCounter<'_>,
) -> Vec<(String, usize)> {
    let wrapping = count(before) + count(after);
    let within = |room: usize| room.saturating_sub(wrapping).max(8);
    let mut groups: Vec<(String, usize)> = Vec::new();
    for part in parts {
        let least = within(first_room.min(room));
        for (part, tokens) in fitting(part, least, count) {
            let limit = if groups.len() <= 1 { least } else { within(room) };
            match groups.last_mut() {
                Some((open, used)) if *used + tokens <= limit => {
                    open.push_str(separator);
                    open.push_str(part);
                    *used += tokens;
                }
                _ => groups.push((part.trim_start_matches([' ', '\n']).to_owned(), tokens)),
            }
        }
    }
    groups.retain(|(text, _)| !text.trim().is_empty());
    groups
        .into_iter()
        .map(|(text, tokens)| (format!("{before}{}{after}", text.trim_end()), tokens + wrapping))
        .collect()
}

/// Halves a text, at white space if possible, until all parts fit.
fn fitting<'a>(text: &'a str, room: usize, count: TokenCounter<'_>) -> Vec<(&'a str, usize)> {
    // A text this long certainly does not fit; do not waste time counting its tokens.
    let tokens = if text.len() > room * 64 { usize::MAX } else { count(text) };
    if tokens <= room || text.chars().nth(1).is_none() {
        return vec![(text, tokens)];
    }
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let at = text[..middle].rfind(char::is_whitespace).filter(|at| *at > 0);
    let at = at.or_else(|| text[middle..].find(char::is_whitespace).map(|at| middle + at)).unwrap_or(middle);
    let (left, right) = text.split_at(at.min(text.len()));
    if left.is_empty() || right.is_empty() {
        return vec![(text, tokens)];
    }
    let mut parts = fitting(left, room, count);
    parts.extend(fitting(right, room, count));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn text(text: &str) -> Block {
        Block::new(BlockKind::Text, text)
    }

    fn code(lines: usize) -> Block {
        Block::new(BlockKind::Code, format!("```sh\n{}```", "run it now\n".repeat(lines)))
    }

    fn check(blocks: &[Block], room: usize, expected: &[&str]) {
        let packed: Vec<String> = pack(blocks, room, &words).into_iter().map(|packed| packed.text).collect();
        assert_eq!(packed, expected);
    }

    #[test]
    fn a_lead_in_moves_to_the_next_passage_with_its_block() {
        check(
            &[text("one two three four five six"), text("To save it:"), code(1)],
            10,
            &["one two three four five six", "To save it:\n\n```sh\nrun it now\n```"],
        );
        check(
            &[text("one two three four five six"), text("Keys:"), text("- a b\n- c d")],
            10,
            &["one two three four five six", "Keys:\n\n- a b\n- c d"],
        );
    }

    #[test]
    fn a_lead_in_stays_with_the_first_part_of_a_long_block() {
        let packed = pack(&[text("one two three four"), text("To save it:"), code(10)], 20, &words);
        let starts: Vec<_> = packed.iter().map(|packed| packed.text.lines().next().unwrap()).collect();
        assert_eq!(starts, ["one two three four", "To save it:", "```sh"]);
        assert_eq!(packed.iter().map(|packed| packed.continues).collect::<Vec<_>>(), [false, false, true]);
        assert!(packed.iter().all(|packed| words(&packed.text) <= 20), "{packed:?}");
    }

    #[test]
    fn a_paragraph_and_its_code_stay_together_if_they_fit() {
        check(
            &[text("one two three four five six"), text("Now start it."), code(1)],
            10,
            &["one two three four five six", "Now start it.\n\n```sh\nrun it now\n```"],
        );
    }

    #[test]
    fn a_long_list_is_cut_between_items() {
        check(
            &[text("- one two. three four\n- five six. seven eight\n- nine")],
            10,
            &["- one two. three four\n- five six. seven eight", "- nine"],
        );
    }
}
