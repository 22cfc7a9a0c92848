//! What the book does not say: questions it could not answer, those that ask the same put together.
//!
//! Two groups are as alike as their questions are on average (average link), so that a chain of small
//! steps does not lead from one topic to another. Questions are compared by their vectors, or by the
//! words they share where one of them has none.
//!
//! Invariant: the gaps depend on what was asked, not on the order in which it is passed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use docent_core::language::Language;
use docent_core::terms::Analyzer;

use super::{Asked, Outcome};

/// Questions that ask for the same thing and did not get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Indexes into what was asked. The question repeated most comes first, then the one most like all
    /// others; repeats stand together, the oldest first.
    pub questions: Vec<usize>,
    /// Breadcrumb and address of the section most of them came near to.
    pub nearest: Option<(String, String)>,
    /// How many of the answers were marked down.
    pub downs: usize,
}

/// Groups the questions that the book could not answer or whose answer was marked down, the biggest
/// group first.
pub fn gaps(asked: &[Asked]) -> Vec<Gap> {
    let missed = (0..asked.len()).filter(|number| is_missed(&asked[*number]));
    let distinct = repeats(asked, missed);
    let leaves = leaves(asked, &distinct);
    let mut gaps: Vec<(Reverse<usize>, &str, Gap)> = Vec::new();
    for group in join(leaves.clone()) {
        let mut members = group.members.clone();
        members.sort_by(|a, b| {
            let typical = |member: usize| likeness(&leaves[member], &group);
            let repeated = |member: usize| distinct[member].1.len();
            repeated(*b).cmp(&repeated(*a)).then(typical(*b).total_cmp(&typical(*a))).then(a.cmp(b))
        });
        let name = distinct[members[0]].0.as_str();
        let questions: Vec<usize> = members.iter().flat_map(|member| distinct[*member].1.clone()).collect();
        let nearest = most_frequent(questions.iter().filter_map(|number| asked[*number].nearest.as_ref()));
        let downs = questions.iter().filter(|number| asked[**number].rating == Some(false)).count();
        gaps.push((Reverse(questions.len()), name, Gap { questions, nearest: nearest.cloned(), downs }));
    }
    gaps.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    gaps.into_iter().map(|(_, _, gap)| gap).collect()
}

/// The questions that are the same but for case and punctuation, in the order of their words; repeats
/// of one question are in the order of time.
pub(super) fn repeats(
    asked: &[Asked],
    numbers: impl Iterator<Item = usize>,
) -> Vec<(String, Vec<usize>)> {
    let mut repeats: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    numbers.for_each(|number| repeats.entry(plain(&asked[number].question)).or_default().push(number));
    for numbers in repeats.values_mut() {
        numbers.sort_by_key(|number| (&asked[*number].at, &asked[*number].question));
    }
    repeats.into_iter().collect()
}

/// Words in lower case without punctuation. The signs of C++ and C# are part of their names.
fn plain(question: &str) -> String {
    let kept = |sign: char| if sign.is_alphanumeric() || matches!(sign, '+' | '#') { sign } else { ' ' };
    let spaced: String = question.to_lowercase().chars().map(kept).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.is_empty() { question.trim().to_owned() } else { words.join(" ") }
}

/// Of those equally frequent, the least.
fn most_frequent<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

fn is_missed(asked: &Asked) -> bool {
    asked.outcome != Outcome::Answered || asked.rating == Some(false)
}

/// The average likeness from which on two groups are one. For sentence vectors of MiniLM paraphrases
/// lie above it, questions that share no more than the course below.
const ALIKE: f32 = 0.6;

/// Two questions that share half of their words are as alike as two whose vectors are just alike enough.
const WORDS: f32 = ALIKE / 0.5;

/// Some questions, as the sums from which the average likeness to others follows without a look at each.
#[derive(Debug, Clone, Default)]
struct Group {
    members: Vec<usize>,
    /// Of unit vectors; empty if no member has one.
    vector: Vec<f32>,
    /// The words of members with a vector.
    seen: Words,
    /// The words of members without.
    bare: Words,
}

type Words = BTreeMap<String, f32>;

/// Each distinct question as a group of its own.
fn leaves(asked: &[Asked], distinct: &[(String, Vec<usize>)]) -> Vec<Group> {
    let vector = |numbers: &[usize]| numbers.iter().find_map(|number| unit(asked[*number].vector.as_ref()?));
    let mut vectors: Vec<Option<Vec<f32>>> = distinct.iter().map(|(_, numbers)| vector(numbers)).collect();
    // Vectors of another model say nothing about these.
    let width = most_frequent(vectors.iter().flatten().map(Vec::len));
    for vector in &mut vectors {
        vector.take_if(|vector| Some(vector.len()) != width);
    }
    let mut words = vec![Words::new(); distinct.len()];
    if vectors.iter().any(Option::is_none) {
        let texts: Vec<&str> = distinct.iter().map(|(_, numbers)| asked[numbers[0]].question.as_str()).collect();
        let analyzer = Analyzer::new(Language::detect(&texts.join("\n")));
        for (words, text) in words.iter_mut().zip(texts) {
            let terms = analyzer.distinct(text);
            let weight = 1.0 / (terms.len() as f32).sqrt();
            *words = terms.into_iter().map(|term| (term, weight)).collect();
        }
    }
    let leaf = |(number, (vector, words)): (usize, (Option<Vec<f32>>, Words))| {
        let members = vec![number];
        match vector {
            Some(vector) => Group { members, vector, seen: words, ..Group::default() },
            None => Group { members, bare: words, ..Group::default() },
        }
    };
    vectors.into_iter().zip(words).enumerate().map(leaf).collect()
}

/// The vector scaled to length one, unless it points nowhere.
fn unit(vector: &Vec<f32>) -> Option<Vec<f32>> {
    let length = dot(vector, vector).sqrt();
    (length.is_normal()).then(|| vector.iter().map(|value| value / length).collect())
}

/// Joins the groups that are alike until none are. Follows each group to the one most like it until two
/// are most alike to each other, which finds the same groups as comparing all pairs in every round.
fn join(leaves: Vec<Group>) -> Vec<Group> {
    let mut open: Vec<Option<Group>> = leaves.into_iter().map(Some).collect();
    let mut done = Vec::new();
    let mut chain: Vec<usize> = Vec::new();
    while let Some(tip) = chain.last().copied().or_else(|| open.iter().position(Option::is_some)) {
        if chain.is_empty() {
            chain.push(tip);
        }
        let before = chain.len().checked_sub(2).map(|place| chain[place]);
        let alike = nearest(&open, tip, before).filter(|(likeness, _)| *likeness >= ALIKE);
        let Some((_, other)) = alike else {
            chain.pop();
            done.extend(open[tip].take());
            continue;
        };
        // Rounding may lead to an earlier link instead of the one before; either way it is the nearest.
        if let Some(place) = chain.iter().position(|link| *link == other) {
            chain.truncate(place);
            if let (Some(first), Some(second)) = (open[tip].take(), open[other].take()) {
                open[tip.min(other)] = Some(first.with(second));
            }
        } else {
            chain.push(other);
        }
    }
    done
}

/// The group most like `tip`; of those equally alike the one before it in the chain, or else the first.
fn nearest(open: &[Option<Group>], tip: usize, before: Option<usize>) -> Option<(f32, usize)> {
    let group = open[tip].as_ref()?;
    let others = open.iter().enumerate().filter(|(number, _)| *number != tip);
    let measured = others.filter_map(|(number, other)| Some((likeness(group, other.as_ref()?), number)));
    let rank = |number: usize| (Some(number) == before, Reverse(number));
    measured.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| rank(a.1).cmp(&rank(b.1))))
}

impl Group {
    fn with(mut self, other: Self) -> Self {
        self.members.extend(other.members);
        self.vector.resize(self.vector.len().max(other.vector.len()), 0.0);
        self.vector.iter_mut().zip(other.vector).for_each(|(sum, value)| *sum += value);
        let add = |sum: &mut Words, words: Words| {
            words.into_iter().for_each(|(word, weight)| *sum.entry(word).or_default() += weight);
        };
        add(&mut self.seen, other.seen);
        add(&mut self.bare, other.bare);
        self
    }
}

/// How alike the questions of two groups are on average. The same, to the last bit, both ways round.
fn likeness(a: &Group, b: &Group) -> f32 {
    let words = shared(&a.bare, &b.bare) + (shared(&a.bare, &b.seen) + shared(&a.seen, &b.bare));
    (dot(&a.vector, &b.vector) + WORDS * words) / (a.members.len() * b.members.len()) as f32
}

fn shared(a: &Words, b: &Words) -> f32 {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    few.iter().filter_map(|(word, weight)| Some(weight * many.get(word)?)).sum()
}

/// In sixteen sums side by side, which the compiler turns into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = [0f32; 16];
    for (a, b) in a.iter().zip(b) {
        (0..16).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
