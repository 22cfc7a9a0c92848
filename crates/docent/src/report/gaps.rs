//! Gaps in the book: questions that it could not answer, grouped by similarity.
//!
//! The similarity of two groups is the average similarity of their questions (average linkage), so that a
//! chain of small steps does not join different topics. Questions are compared by their vectors, or by
//! shared words if one of them has no vector.
//!
//! Invariant: the gaps do not depend on the order of the questions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use docent_core::language::Language;
use docent_core::terms::Analyzer;

use super::{Asked, Outcome};

/// Similar questions that were not answered well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Indexes of the questions. The most repeated question comes first, then the most typical ones; repeats
    /// of a question are adjacent, oldest first.
    pub questions: Vec<usize>,
    /// Breadcrumb and URL of the section that was nearest to most of them.
    pub nearest: Option<(String, String)>,
    /// How many of the answers were marked down.
    pub downs: usize,
}

/// Groups the questions that the book could not answer or whose answer was marked down, largest
/// group first.
pub fn gaps(asked: &[Asked]) -> Vec<Gap> {
    let missed = (0..asked.len()).filter(|number| is_missed(&asked[*number]));
    let distinct = repeats(asked, missed);
    let leaves = leaves(asked, &distinct);
    let mut gaps: Vec<(Reverse<usize>, &str, Gap)> = Vec::new();
    for group in join(leaves.clone()) {
        let mut members = group.members.clone();
        members.sort_by(|a, b| {
            let typical = |member: usize| similarity(&leaves[member], &group);
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

/// Groups questions that only differ in case and punctuation, sorted by their words; repeats of a
/// question are sorted by time.
pub(super) fn repeats(asked: &[Asked], numbers: impl Iterator<Item = usize>) -> Vec<(String, Vec<usize>)> {
    let mut repeats: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    numbers.for_each(|number| repeats.entry(plain(&asked[number].question)).or_default().push(number));
    for numbers in repeats.values_mut() {
        numbers.sort_by_key(|number| (&asked[*number].at, &asked[*number].question));
    }
    repeats.into_iter().collect()
}

/// Words in lower case without punctuation. `+` and `#` are kept for names such as C++ and C#.
pub(super) fn plain(question: &str) -> String {
    let kept = |sign: char| if sign.is_alphanumeric() || matches!(sign, '+' | '#') { sign } else { ' ' };
    let spaced: String = question.to_lowercase().chars().map(kept).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.is_empty() { question.trim().to_owned() } else { words.join(" ") }
}

/// The most frequent value; of several, the smallest.
fn most_frequent<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

/// Whether the question may be part of a gap. An answer that could not be verified says nothing about the book.
pub fn is_missed(asked: &Asked) -> bool {
    matches!(asked.outcome, Outcome::Low | Outcome::Abstained) || asked.rating == Some(false)
}

/// The average similarity at which two groups are joined. With vectors of MiniLM, groups of real questions
/// from `ray-docs` and `cloud-docs` stay within one topic at this value; at 0.5, questions are joined that only
/// share the name of the product.
const ALIKE: f32 = 0.6;

/// Scales word overlap so that two questions that share half of their words are just similar enough.
const WORDS: f32 = ALIKE / 0.5;

/// A group of questions, stored as sums that give the average similarity without comparing all pairs.
#[derive(Debug, Clone, Default)]
struct Group {
    members: Vec<usize>,
    /// The sum of the members' unit vectors; empty if no member has one.
    vector: Vec<f32>,
    /// The words of members with a vector.
    seen: Words,
    /// The words of members without a vector.
    bare: Words,
}

type Words = BTreeMap<String, f32>;

/// Each distinct question as a separate group.
fn leaves(asked: &[Asked], distinct: &[(String, Vec<usize>)]) -> Vec<Group> {
    let vector = |numbers: &[usize]| numbers.iter().find_map(|number| unit(asked[*number].vector.as_ref()?));
    let mut vectors: Vec<Option<Vec<f32>>> = distinct.iter().map(|(_, numbers)| vector(numbers)).collect();
    // Vectors of a different width come from another model and cannot be compared.
    let width = most_frequent(vectors.iter().flatten().map(Vec::len));
    for vector in &mut vectors {
        vector.take_if(|vector| Some(vector.len()) != width);
    }
    let mut words = vec![Words::new(); distinct.len()];
    if vectors.iter().any(Option::is_none) {
        let texts: Vec<&str> =
            distinct.iter().map(|(_, numbers)| asked[numbers[0]].question.as_str()).collect();
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

/// The vector scaled to length one; `None` if it is zero or not finite.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = dot(vector, vector).sqrt();
    length.is_normal().then(|| vector.iter().map(|value| value / length).collect())
}

/// Joins similar groups until there are none. Uses nearest-neighbor chains: follows each group to the most
/// similar one until two are most similar to each other. This finds the same groups as comparing all pairs
/// in every round.
fn join(leaves: Vec<Group>) -> Vec<Group> {
    let mut open: Vec<Option<Group>> = leaves.into_iter().map(Some).collect();
    let mut done = Vec::new();
    let mut chain: Vec<usize> = Vec::new();
    while let Some(tip) = chain.last().copied().or_else(|| open.iter().position(Option::is_some)) {
        if chain.is_empty() {
            chain.push(tip);
        }
        let before = chain.len().checked_sub(2).map(|place| chain[place]);
        let alike = nearest(&open, tip, before).filter(|(similarity, _)| *similarity >= ALIKE);
        let Some((_, other)) = alike else {
            chain.pop();
            done.extend(open[tip].take());
            continue;
        };
        // Because of rounding, this may be an earlier link of the chain; either way it is the nearest.
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

/// The group most similar to `tip`; of several, the one before it in the chain, or else the first.
fn nearest(open: &[Option<Group>], tip: usize, before: Option<usize>) -> Option<(f32, usize)> {
    let group = open[tip].as_ref()?;
    let others = open.iter().enumerate().filter(|(number, _)| *number != tip);
    let measured = others.filter_map(|(number, other)| Some((similarity(group, other.as_ref()?), number)));
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

/// The average similarity of the questions of two groups. Exactly symmetric, to the last bit.
fn similarity(a: &Group, b: &Group) -> f32 {
    let words = shared(&a.bare, &b.bare) + (shared(&a.bare, &b.seen) + shared(&a.seen, &b.bare));
    (dot(&a.vector, &b.vector) + WORDS * words) / (a.members.len() * b.members.len()) as f32
}

fn shared(a: &Words, b: &Words) -> f32 {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    few.iter().filter_map(|(word, weight)| Some(weight * many.get(word)?)).sum()
}

/// The dot product, in sixteen parallel sums, which the compiler turns into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = [0f32; 16];
    for (a, b) in a.iter().zip(b) {
        (0..16).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question that the book hardly covers, with a vector at this angle.
    fn low(question: &str, degrees: Option<f32>) -> Asked {
        let vector = degrees.map(|degrees| vec![degrees.to_radians().cos(), degrees.to_radians().sin()]);
        Asked { question: question.to_owned(), outcome: Outcome::Low, vector, ..Asked::default() }
    }

    /// The questions of each gap.
    fn texts(asked: &[Asked]) -> Vec<Vec<&str>> {
        let text = |number: &usize| asked[*number].question.as_str();
        gaps(asked).iter().map(|gap| gap.questions.iter().map(text).collect()).collect()
    }

    /// Pseudorandom numbers from 0 to 1.
    fn noise(mut state: u32) -> impl FnMut() -> f32 {
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1u32 << 24) as f32
        }
    }

    /// `count` questions around `topics` directions in 24 dimensions; every third is asked again, every
    /// fifth has no vector.
    fn scattered(count: usize, topics: usize) -> Vec<Asked> {
        let mut noise = noise(7);
        let centers: Vec<Vec<f32>> = (0..topics).map(|_| (0..24).map(|_| noise() - 0.5).collect()).collect();
        let mut asked = Vec::new();
        for number in 0..count {
            let center = &centers[number % topics];
            let vector = center.iter().map(|value| value + 0.5 * (noise() - 0.5)).collect();
            let question = format!("topic{} aspect{} word{number}", number % topics, number % 4);
            let at = format!("2025-11-{:02}T08:00:00Z", 1 + number % 28);
            let vector = Some(vector).filter(|_| number % 5 > 0);
            asked.push(Asked { at, vector, ..low(&question, None) });
        }
        let again: Vec<Asked> = asked.iter().step_by(3).cloned().collect();
        asked.extend(
            again.into_iter().map(|first| Asked { question: first.question.to_uppercase() + "?!", ..first }),
        );
        asked
    }

    #[test]
    fn paraphrases_are_one_gap_and_other_questions_another() {
        let asked = [
            low("Can I use a lidar?", Some(0.0)),
            low("What does a battery cost?", Some(90.0)),
            low("Is a laser scanner supported?", Some(45.0)),
            low("How much are batteries?", Some(110.0)),
            low("Does it work with a lidar?", Some(20.0)),
        ];
        assert_eq!(
            texts(&asked),
            [
                vec!["Does it work with a lidar?", "Can I use a lidar?", "Is a laser scanner supported?"],
                vec!["How much are batteries?", "What does a battery cost?"],
            ]
        );
    }

    #[test]
    fn small_steps_do_not_chain_topics_together() {
        let asked: Vec<Asked> =
            (0..10).map(|step| low(&format!("q{step}"), Some(40.0 * step as f32))).collect();
        assert!(texts(&asked).iter().all(|gap| gap.len() <= 3), "{:?}", texts(&asked));
    }

    #[test]
    fn only_unanswered_and_marked_down_questions_are_gaps() {
        let answered =
            |question: &str, rating| Asked { outcome: Outcome::Answered, rating, ..low(question, None) };
        let asked = [
            answered("fine", None),
            answered("good", Some(true)),
            answered("bad", Some(false)),
            Asked { outcome: Outcome::Abstained, ..low("silent", None) },
            Asked { outcome: Outcome::Unverified, ..low("not verified", None) },
            low("low", None),
        ];
        assert_eq!(texts(&asked), [["bad"], ["low"], ["silent"]]);
        assert_eq!(gaps(&asked)[0].downs, 1);
        assert_eq!(gaps(&[]), []);
    }

    #[test]
    fn without_vectors_shared_words_decide() {
        let asked = [
            low("How do I install the simulator on Windows?", None),
            low("Is there a discount for students?", None),
            low("installing simulator: Windows", None),
            low("???", None),
            low("Student discounts", None),
        ];
        assert_eq!(
            texts(&asked),
            [
                vec!["How do I install the simulator on Windows?", "installing simulator: Windows"],
                vec!["Is there a discount for students?", "Student discounts"],
                vec!["???"],
            ]
        );
    }

    #[test]
    fn a_question_without_a_vector_joins_one_with_the_same_words() {
        let asked = [
            low("Which lidar can I use?", Some(0.0)),
            low("lidar use", None),
            low("Where is the charging station?", Some(90.0)),
            // A vector of another model, and an invalid one.
            Asked { vector: Some(vec![1.0, 0.0, 0.0]), ..low("Charging station?", None) },
            Asked { vector: Some(vec![f32::NAN, 0.0]), ..low("the use of a lidar", None) },
        ];
        let found: Vec<usize> = gaps(&asked).iter().map(|gap| gap.questions.len()).collect();
        assert_eq!(found, [3, 2], "{:?}", texts(&asked));
    }

    #[test]
    fn the_order_of_the_questions_makes_no_difference() {
        let asked = scattered(120, 9);
        let shown = |asked: &[Asked]| -> Vec<(Vec<(String, String)>, usize)> {
            let told = |number: &usize| (asked[*number].question.clone(), asked[*number].at.clone());
            gaps(asked).iter().map(|gap| (gap.questions.iter().map(told).collect(), gap.downs)).collect()
        };
        let expected = shown(&asked);
        let mut noise = noise(3);
        for _ in 0..20 {
            let mut shuffled: Vec<(f32, Asked)> =
                asked.iter().map(|asked| (noise(), asked.clone())).collect();
            shuffled.sort_by(|a, b| a.0.total_cmp(&b.0));
            let shuffled: Vec<Asked> = shuffled.into_iter().map(|(_, asked)| asked).collect();
            assert_eq!(shown(&shuffled), expected);
        }
    }

    #[test]
    fn every_missed_question_is_in_one_gap_and_no_two_gaps_are_alike() {
        let asked = scattered(150, 11);
        let mut seen: Vec<usize> = gaps(&asked).into_iter().flat_map(|gap| gap.questions).collect();
        seen.sort_unstable();
        assert_eq!(seen, Vec::from_iter(0..asked.len()));
        let joined = join(leaves(&asked, &repeats(&asked, 0..asked.len())));
        assert!((5..60).contains(&joined.len()), "{}", joined.len());
        for (number, group) in joined.iter().enumerate() {
            assert!(joined[..number].iter().all(|other| similarity(group, other) < ALIKE));
        }
    }

    /// Joins the two most similar groups until none are similar enough.
    fn join_slowly(mut groups: Vec<Group>) -> Vec<Group> {
        loop {
            let pairs = (0..groups.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
            let best = pairs.max_by(|(a, b), (c, d)| {
                similarity(&groups[*a], &groups[*b]).total_cmp(&similarity(&groups[*c], &groups[*d]))
            });
            match best {
                Some((a, b)) if similarity(&groups[a], &groups[b]) >= ALIKE => {
                    let other = groups.remove(a);
                    let group = groups.remove(b);
                    groups.push(group.with(other));
                }
                _ => return groups,
            }
        }
    }

    #[test]
    fn nearest_neighbor_chains_find_the_same_groups_as_comparing_all_pairs() {
        let members = |groups: Vec<Group>| -> Vec<Vec<usize>> {
            let sorted = |mut group: Group| {
                group.members.sort_unstable();
                group.members
            };
            let mut members: Vec<Vec<usize>> = groups.into_iter().map(sorted).collect();
            members.sort();
            members
        };
        for topics in [1, 4, 13] {
            let asked: Vec<Asked> =
                scattered(90, topics).into_iter().filter(|asked| asked.vector.is_some()).collect();
            let leaves = leaves(&asked, &repeats(&asked, 0..asked.len()));
            assert_eq!(members(join(leaves.clone())), members(join_slowly(leaves)));
        }
    }

    #[test]
    fn the_nearest_section_is_the_most_frequent_one() {
        let near = |question: &str, name: &str| Asked {
            nearest: Some((name.to_owned(), format!("https://b.org/{name}"))),
            ..low(question, Some(0.0))
        };
        let asked = [near("a", "x"), near("b", "y"), near("c", "y"), low("d", Some(0.0))];
        assert_eq!(gaps(&asked)[0].nearest, Some(("y".to_owned(), "https://b.org/y".to_owned())));
        let tied = [near("a", "y"), near("b", "x")];
        assert_eq!(gaps(&tied)[0].nearest.as_ref().map(|(name, _)| name.as_str()), Some("x"));
    }

    #[test]
    fn repeats_come_first_and_are_sorted_by_time() {
        let at = |question: &str, at: &str| Asked { at: at.to_owned(), ..low(question, Some(0.0)) };
        let asked = [at("Why C++?", "3"), at("other", "1"), at("why c++", "2"), at("Why C?", "1")];
        assert_eq!(texts(&asked), [["why c++", "Why C++?", "other", "Why C?"]]);
    }
}
