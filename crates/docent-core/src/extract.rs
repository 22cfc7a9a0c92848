//! Write an extractive answer: choose the spans of the passages that answer the question.
//!
//! A span is a run of statements in one passage. The first one is the short run that is most likely to answer
//! the question. Others are added only if they are likely enough themselves, or if they contain words of the
//! question that no chosen span has. If there is none, the passage beside the first span may continue the answer: sections
//! are often longer than a passage.
//!
//! Invariant: every line of a span is in its passage word for word. A span that begins with a reference
//! ("This …") includes the statement it refers to, if that is close enough. A span that only repeats the question
//! includes what follows, if there is room.

mod shorten;

use std::collections::HashSet;
use std::ops::Range;

use crate::chunk::Chunk;
use crate::question_kind::QuestionKind;
use crate::read::Read;
use crate::statement::StatementKind;
use crate::terms::Analyzer;

/// A span chosen for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Extract {
    /// Index of the passage in [`Material::chunks`].
    pub passage: usize,
    /// The text to show: the span, or the relevant lines of a long list or table.
    pub text: String,
    /// The quoted part of the passage's content, in bytes.
    pub span: Range<usize>,
    /// The estimated probability that the span answers the question.
    pub chance: f32,
}

/// Limits for the length of an answer, in words.
struct Lengths {
    /// Length of the first span.
    first: usize,
    /// Length of each further span.
    next: usize,
    /// Length of all spans together.
    total: usize,
    /// Number of spans.
    spans: usize,
}

impl Lengths {
    /// Steps and lists need longer spans; a comparison, or several questions at once, need more spans.
    fn of(asked: &QuestionKind, parts: usize) -> Self {
        let first = if asked.how_to || asked.list || asked.trouble { 95 } else { 84 };
        let several = asked.comparison || parts > 1;
        Self {
            first,
            next: 40,
            total: first + if several { 75 } else { 40 },
            spans: if several { 3 } else { 2 },
        }
    }
}

/// Penalty per word: of two spans that answer equally well, the shorter one is chosen.
const COST_OF_A_WORD: f32 = 0.0006;

/// Minimum probability of a further span …
const LEAST_CHANCE: f32 = 0.2;

/// … or this, if no passage is likely to answer, so that a second span is worth showing …
const LEAST_CHANCE_IN_DOUBT: f32 = 0.08;

/// … or this, if it contains many words of the question that no chosen span has.
const LEAST_CHANCE_OF_NEW: f32 = 0.06;

/// Share of the question's weighted words that a span must add to count as new.
const MUCH_OF_THE_QUESTION: f32 = 0.25;

/// Minimum probability of a span about the other side of a comparison.
const LEAST_CHANCE_OF_A_SIDE: f32 = 0.001;

/// Minimum probability of a span that continues the answer in the passage beside the first span, and its length in words.
const LEAST_CHANCE_OF_CONTINUATION: f32 = 0.03;
const CONTINUATION: usize = 60;

/// How far back, in words, a span is extended to include what its first statement refers to. The statement directly before
/// may be longer, because a span that begins with "This is called" says nothing without it.
const REACH_BACK: usize = 45;
const REACH_BACK_ONCE: usize = 80;

/// A span with fewer words than this beside those of the question and the headings only repeats the question.
const LEAST_NEWS: usize = 3;

/// The input of the extraction.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    /// The query that was searched for.
    pub question: &'a str,
    /// The terms of the query with their weights.
    pub terms: &'a [(String, f32)],
    /// The passages.
    pub chunks: &'a [&'a Chunk],
    /// Their statements, with the probability that each answers the question.
    pub read: &'a [Read],
    /// How many questions the user asked at once.
    pub parts: usize,
    /// Whether the reader judged that no passage is likely to answer the question.
    pub in_doubt: bool,
}

/// Chooses the spans that answer the question, most likely first.
pub fn extract(material: &Material<'_>, analyzer: &Analyzer) -> Vec<Extract> {
    let asked = QuestionKind::of(material.question);
    let lengths = Lengths::of(&asked, material.parts);
    let least_chance = if material.in_doubt { LEAST_CHANCE_IN_DOUBT } else { LEAST_CHANCE };
    let mut chosen: Vec<Extract> = Vec::new();
    let mut taken: HashSet<(usize, usize)> = HashSet::new();
    let mut said: HashSet<String> = HashSet::new();
    let mut words = 0;
    for number in 0..lengths.spans {
        let room = if chosen.is_empty() {
            lengths.first
        } else {
            lengths.next.min(lengths.total.saturating_sub(words))
        };
        // If there are several questions, each gets a span of its own first.
        let part = Some(number).filter(|part| *part < material.parts && material.parts > 1);
        // A comparison gets a span about a side that is not named yet.
        let sides = if asked.comparison && part.is_none() && !chosen.is_empty() {
            Sides::of(material, &said, analyzer)
        } else {
            Sides::default()
        };
        let choice = Choice { room, part, sides: &sides, said: &said, beside: None };
        let about_a_side = match sides.unsaid.is_empty() {
            true => None,
            false => best_run(material, &taken, &choice, analyzer)
                .filter(|run| run.chance >= LEAST_CHANCE_OF_A_SIDE),
        };
        let run = match about_a_side {
            Some(run) => run,
            None => {
                let of_any = Choice { sides: &Sides::default(), ..choice };
                let Some(run) = best_run(material, &taken, &of_any, analyzer) else { break };
                let is_likely = run.chance >= least_chance || (run.adds && run.chance >= LEAST_CHANCE_OF_NEW);
                if !chosen.is_empty() && part.is_none() && !is_likely {
                    break;
                }
                run
            }
        };
        let extract = run.extract(material, analyzer);
        words += count(&extract.text);
        said.extend(analyzer.distinct(&extract.text));
        taken.extend(material.read[run.from..=run.to].iter().map(|read| (read.passage, read.span.start)));
        join(&mut chosen, extract, material.chunks);
    }
    if let [only] = chosen.as_slice() {
        let sides = Sides::default();
        let choice =
            Choice { room: CONTINUATION, part: None, sides: &sides, said: &said, beside: Some(only.passage) };
        let run = best_run(material, &taken, &choice, analyzer);
        chosen.extend(
            run.filter(|run| run.chance >= LEAST_CHANCE_OF_CONTINUATION)
                .map(|run| run.extract(material, analyzer)),
        );
    }
    chosen
}

/// Adds a span, and merges it with one directly before or after it.
fn join(chosen: &mut Vec<Extract>, extract: Extract, chunks: &[&Chunk]) {
    let content = chunks[extract.passage].content.as_str();
    // A shortened list or table is not shown completely, so nothing is adjacent to it.
    let is_whole = |extract: &Extract| extract.text == content[extract.span.clone()];
    let gap = |from: usize, to: usize| from <= to && content[from..to].trim().is_empty();
    for known in chosen.iter_mut().filter(|known| known.passage == extract.passage) {
        let follows = gap(known.span.end, extract.span.start);
        if is_whole(known) && is_whole(&extract) && (follows || gap(extract.span.end, known.span.start)) {
            known.span = known.span.start.min(extract.span.start)..known.span.end.max(extract.span.end);
            known.text = content[known.span.clone()].to_owned();
            known.chance += extract.chance;
            return;
        }
    }
    chosen.push(extract);
}

/// A run of statements in one passage.
struct Run {
    from: usize,
    to: usize,
    chance: f32,
    value: f32,
    adds: bool,
}

impl Run {
    fn extract(&self, material: &Material<'_>, analyzer: &Analyzer) -> Extract {
        let read = material.read;
        let passage = read[self.from].passage;
        let content = material.chunks[passage].content.as_str();
        let span = read[self.from].span.start..read[self.to].span.end;
        // A single statement can be too long for an answer: a long list or table.
        let only = (self.from == self.to).then(|| &read[self.from]);
        let shortened = only.and_then(|only| {
            shorten::shortened(content, only, &QuestionKind::of(material.question), material.terms, analyzer)
        });
        let (text, span) = shortened.unwrap_or_else(|| (content[span.clone()].to_owned(), span));
        Extract { passage, text, span, chance: self.chance }
    }
}

/// The terms that name the sides of a comparison: those of the words beside "or", "vs" and the like.
#[derive(Default)]
struct Sides {
    /// Terms that no chosen span has.
    unsaid: HashSet<String>,
    /// Terms that a chosen span has.
    said: HashSet<String>,
}

impl Sides {
    fn of(material: &Material<'_>, said: &HashSet<String>, analyzer: &Analyzer) -> Self {
        const BETWEEN: [&str; 5] = ["or", "vs", "vs.", "versus", "and"];
        let words: Vec<&str> = material.question.split_whitespace().collect();
        let beside = words.windows(3).filter(|three| BETWEEN.contains(&three[1].to_lowercase().as_str()));
        let terms = beside.flat_map(|three| [three[0], three[2]]).flat_map(|word| analyzer.distinct(word));
        let known = terms.filter(|term| material.terms.iter().any(|(known, _)| known == term));
        let (said, unsaid) = known.partition(|term| said.contains(term));
        Self { unsaid, said }
    }
}

/// What kind of run to choose.
#[derive(Clone, Copy)]
struct Choice<'a> {
    /// Maximum length in words.
    room: usize,
    /// If the user asked several questions at once: the one it is for.
    part: Option<usize>,
    /// If there are unsaid ones, the run is in a section named after one of them and not after the others or, if there is no
    /// such section, mentions one.
    sides: &'a Sides,
    /// The words of the chosen spans.
    said: &'a HashSet<String>,
    /// Only in a passage beside this one, in the same section.
    beside: Option<usize>,
}

/// The run with the highest probability, minus the penalty for its length.
fn best_run(
    material: &Material<'_>,
    taken: &HashSet<(usize, usize)>,
    choice: &Choice<'_>,
    analyzer: &Analyzer,
) -> Option<Run> {
    let Choice { room, part, sides, said, beside } = *choice;
    let read = material.read;
    let is_about = about_sides(material, sides, analyzer);
    let mut best: Option<Run> = None;
    for from in 0..read.len() {
        let (passage, asked) = (read[from].passage, read[from].part);
        let is_elsewhere = |near: usize| !material.chunks[passage].is_beside(material.chunks[near]);
        if part.is_some_and(|part| part != asked) || beside.is_some_and(is_elsewhere) {
            continue;
        }
        let mut about = false;
        let content = material.chunks[passage].content.as_str();
        let mut chance = 0.0;
        for to in from..read.len() {
            let here = &read[to];
            if here.passage != passage || here.part != asked || taken.contains(&(passage, here.span.start)) {
                break;
            }
            chance += read[to].chance;
            about |= is_about[to];
            let length = count(&content[read[from].span.start..read[to].span.end]);
            if to > from && length > room {
                break;
            }
            let value = chance - COST_OF_A_WORD * length.min(room) as f32;
            if about && best.as_ref().is_none_or(|best| value > best.value) {
                best = Some(Run { from, to, chance, value, adds: false });
            }
        }
    }
    let mut best = best?;
    reach_back(material, taken, &mut best);
    reach_on(material, taken, &mut best, room, analyzer);
    if !said.is_empty() {
        let span = read[best.from].span.start..read[best.to].span.end;
        let new: HashSet<String> =
            analyzer.distinct(&material.chunks[read[best.from].passage].content[span]).into_iter().collect();
        let total: f32 = material.terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
        let added = material.terms.iter().filter(|(term, _)| new.contains(term) && !said.contains(term));
        best.adds = added.map(|(_, weight)| weight).sum::<f32>() / total >= MUCH_OF_THE_QUESTION;
    }
    Some(best)
}

/// Whether each statement is about an unsaid side; all are if there is none.
fn about_sides(material: &Material<'_>, sides: &Sides, analyzer: &Analyzer) -> Vec<bool> {
    if sides.unsaid.is_empty() {
        return vec![true; material.read.len()];
    }
    let names =
        |text: &str, terms: &HashSet<String>| analyzer.distinct(text).iter().any(|term| terms.contains(term));
    let is_named = |chunk: &&Chunk| {
        let heading = chunk.breadcrumb();
        names(&heading, &sides.unsaid) && !names(&heading, &sides.said)
    };
    let named: Vec<bool> = material.chunks.iter().map(is_named).collect();
    let is_about = |read: &Read| match named.contains(&true) {
        true => named[read.passage],
        false => names(&material.chunks[read.passage].content[read.span.clone()], &sides.unsaid),
    };
    material.read.iter().map(is_about).collect()
}

/// Extends a run backwards to include what its first statement refers to.
fn reach_back(material: &Material<'_>, taken: &HashSet<(usize, usize)>, run: &mut Run) {
    let read = material.read;
    let passage = read[run.from].passage;
    let content = material.chunks[passage].content.as_str();
    let mut words = 0;
    while run.from > 0 && refers_back(&content[read[run.from].span.clone()]) {
        let before = &read[run.from - 1];
        let is_other = before.passage != passage || before.part != read[run.from].part;
        if is_other || taken.contains(&(passage, before.span.start)) {
            break;
        }
        words += count(&content[before.span.clone()]);
        let is_next = words == count(&content[before.span.clone()]);
        if words > if is_next { REACH_BACK_ONCE } else { REACH_BACK } {
            break;
        }
        run.from -= 1;
    }
}

/// Extends a run that only repeats the question, such as the error message that was asked about, by the statements after it.
fn reach_on(
    material: &Material<'_>,
    taken: &HashSet<(usize, usize)>,
    run: &mut Run,
    room: usize,
    analyzer: &Analyzer,
) {
    let read = material.read;
    let chunk = material.chunks[read[run.from].passage];
    let asked: HashSet<String> =
        [material.question, &chunk.breadcrumb()].iter().flat_map(|text| analyzer.distinct(text)).collect();
    let start = read[run.from].span.start;
    loop {
        let shown = &chunk.content[start..read[run.to].span.end];
        let news = analyzer.distinct(shown).iter().filter(|term| !asked.contains(*term)).count();
        let Some(next) = read.get(run.to + 1).filter(|_| news < LEAST_NEWS) else { return };
        let is_free = next.passage == read[run.to].passage
            && next.part == read[run.to].part
            && !taken.contains(&(next.passage, next.span.start));
        if !is_free || count(&chunk.content[start..next.span.end]) > room {
            return;
        }
        run.to += 1;
        run.chance += next.chance;
    }
}

/// Whether a sentence begins with a reference to the text before it.
fn refers_back(text: &str) -> bool {
    const OPENINGS: [&str; 26] = [
        "this",
        "these",
        "those",
        "that",
        "it",
        "its",
        "they",
        "them",
        "their",
        "such",
        "he",
        "she",
        "however",
        "therefore",
        "thus",
        "instead",
        "otherwise",
        "then",
        "also",
        "but",
        "and",
        "so",
        "both",
        "similarly",
        "consequently",
        "likewise",
    ];
    const PHRASES: [&str; 9] = [
        "in that",
        "in this",
        "as a result",
        "for this",
        "the former",
        "the latter",
        "in addition",
        "doing so",
        "if so",
    ];
    let lower = text.trim_start_matches(['*', '_', '-', ' ']).to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    OPENINGS.contains(&first) || PHRASES.iter().any(|phrase| lower.starts_with(phrase))
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Whether a statement is a list, a table or code.
fn is_block(kind: StatementKind) -> bool {
    kind != StatementKind::Sentence
}

#[cfg(test)]
mod tests;
