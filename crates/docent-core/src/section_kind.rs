//! Classify sections: body text, or a quiz, a glossary, release notes …
//!
//! The latter use the words of a chapter without explaining them, so they rank lower unless the question asks
//! for them. They are recognized by their headings, and a quiz also by its form.
//!
//! Invariant: the kind depends only on the title of the page and on the section.

use serde::{Deserialize, Serialize};

use docent_parse::document::Section;

/// The kind of a section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionKind {
    /// Body text.
    #[default]
    Body,
    /// Questions for the learner.
    Quiz,
    /// Tasks for the learner.
    Exercise,
    /// Answers to a quiz or an exercise.
    Solution,
    /// What a chapter is going to teach, or a summary of it.
    Objectives,
    /// Changes between versions.
    ReleaseNotes,
    /// Terms with short definitions.
    Glossary,
    /// A table of contents.
    Contents,
    /// An index of words, references or further reading.
    Index,
}

impl SectionKind {
    /// Whether this is body text.
    pub fn is_body(&self) -> bool {
        *self == Self::Body
    }

    /// The purpose of the section, as returned by the API.
    pub fn role(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Quiz | Self::Exercise | Self::Solution => "exercise",
            Self::Glossary => "glossary",
            Self::ReleaseNotes => "changelog",
            Self::Objectives | Self::Contents | Self::Index => "navigation",
        }
    }

    /// The name stored in the index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Quiz => "quiz",
            Self::Exercise => "exercise",
            Self::Solution => "solution",
            Self::Objectives => "objectives",
            Self::ReleaseNotes => "release_notes",
            Self::Glossary => "glossary",
            Self::Contents => "contents",
            Self::Index => "index",
        }
    }

    /// The kind with this name; body text if the name is unknown.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }

    const ALL: [Self; 9] = [
        Self::Body,
        Self::Quiz,
        Self::Exercise,
        Self::Solution,
        Self::Objectives,
        Self::ReleaseNotes,
        Self::Glossary,
        Self::Contents,
        Self::Index,
    ];

    /// Whether a question asks for this kind of section.
    pub fn is_sought(self, question: &str) -> bool {
        let question = format!(" {} ", words(question));
        let names = |list: &[&str]| list.iter().any(|name| question.contains(&format!(" {name} ")));
        match self {
            Self::Body => true,
            Self::ReleaseNotes => {
                names(HEADINGS_OF_RELEASE_NOTES)
                    || names(&[
                        "version",
                        "release",
                        "released",
                        "since",
                        "changed",
                        "new in",
                        "removed",
                        "deprecated",
                    ])
            }
            kind => KNOWN_HEADINGS.iter().any(|(known, list)| *known == kind && names(list)),
        }
    }
}

const HEADINGS_OF_RELEASE_NOTES: &[&str] = &[
    "release notes",
    "changelog",
    "change log",
    "changes",
    "what s new",
    "whats new",
    "news",
    "version history",
    "neuerungen",
    "notes de version",
    "novedades",
];

/// Headings by kind, in lower case, with punctuation replaced by spaces.
const KNOWN_HEADINGS: &[(SectionKind, &[&str])] = &[
    (
        SectionKind::Quiz,
        &[
            "quiz",
            "quizzes",
            "knowledge check",
            "check your understanding",
            "check your knowledge",
            "review questions",
            "self check",
            "self assessment",
            "self test",
            "test yourself",
            "test your knowledge",
            "multiple choice",
            "practice questions",
            "assessment",
            "assessment questions",
            "questions for review",
            "discussion questions",
            "kontrollfragen",
            "preguntas",
            "questionnaire",
        ],
    ),
    (
        SectionKind::Exercise,
        &[
            "exercise",
            "exercises",
            "hands on exercise",
            "hands on exercises",
            "hands on lab",
            "lab",
            "labs",
            "lab exercise",
            "practice",
            "practice problems",
            "practice exercises",
            "assignment",
            "assignments",
            "homework",
            "problem set",
            "problem sets",
            "try it yourself",
            "coding challenge",
            "aufgaben",
            "übungen",
            "übung",
            "exercices",
            "exercice",
            "ejercicios",
            "ejercicio",
        ],
    ),
    (
        SectionKind::Solution,
        &[
            "answer key",
            "answers",
            "solutions to the exercises",
            "solutions to exercises",
            "quiz answers",
            "exercise solutions",
            "lösungen",
        ],
    ),
    (
        SectionKind::Objectives,
        &[
            "objectives",
            "learning objectives",
            "learning goals",
            "learning outcomes",
            "chapter objectives",
            "what you will learn",
            "what you ll learn",
            "lernziele",
            "objectifs",
            "objetivos",
        ],
    ),
    (SectionKind::ReleaseNotes, HEADINGS_OF_RELEASE_NOTES),
    (SectionKind::Glossary, &["glossary", "key terms", "glossar", "glossaire", "glosario"]),
    (
        SectionKind::Contents,
        &[
            "contents",
            "table of contents",
            "in this chapter",
            "inhalt",
            "inhaltsverzeichnis",
            "table des matières",
            "índice",
        ],
    ),
    (
        SectionKind::Index,
        &["index", "references", "bibliography", "further reading", "see also", "literatur"],
    ),
];

/// Classifies a section by the innermost known heading. Sections under "Quiz" thus belong to the quiz.
pub fn section_kind(title: &str, section: &Section) -> SectionKind {
    let named = section.hierarchy.iter().rev().find_map(|heading| of_heading(heading));
    // The title counts for the whole page, except "Index", which is often just the file name of a start page.
    let titled = || of_heading(title).filter(|kind| *kind != SectionKind::Index);
    match named.or_else(titled) {
        Some(kind) => kind,
        None if is_quiz(section) => SectionKind::Quiz,
        None => SectionKind::Body,
    }
}

/// The kind a heading names, either as a whole or before or after a colon, dash or parenthesis
/// ("Exercise 3: Blink").
fn of_heading(heading: &str) -> Option<SectionKind> {
    let parts = heading.split([':', '–', '—', '(']).map(words);
    let mut parts = parts.map(|part| without_numbers(&part)).filter(|part| !part.is_empty());
    parts.find_map(|part| {
        KNOWN_HEADINGS.iter().find(|(_, names)| names.contains(&part.as_str())).map(|(kind, _)| *kind)
    })
}

fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Removes numbering: "exercise 3 2" becomes "exercise", "chapter 2 quiz" becomes "quiz".
fn without_numbers(words: &str) -> String {
    let is_number = |word: &&str| {
        word.chars().all(|c| c.is_ascii_digit())
            || matches!(*word, "chapter" | "section" | "module" | "part" | "kapitel")
    };
    words.split(' ').filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a section without a known heading looks like a quiz: several questions in a row, or multiple
/// choice.
fn is_quiz(section: &Section) -> bool {
    let lines: Vec<&str> = section
        .blocks
        .iter()
        .filter(|block| !block.kind.is_atomic())
        .flat_map(|block| block.text.lines())
        .map(str::trim)
        .collect();
    let asks = lines.iter().filter(|line| line.ends_with('?')).count();
    let choices = lines.iter().filter(|line| is_choice(line)).count();
    (asks >= 3 && asks * 10 >= lines.len() * 7) || (asks >= 1 && choices >= 3 && choices * 2 >= lines.len())
}

/// Whether a line is an answer choice: `A) …`, `- b. …`, `[ ] …`.
fn is_choice(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', ' ']);
    let mut characters = line.chars();
    let letter = characters.next().is_some_and(|c| matches!(c.to_ascii_lowercase(), 'a'..='f'));
    line.starts_with("[ ]")
        || (letter
            && characters.next().is_some_and(|c| matches!(c, ')' | '.'))
            && characters.next() == Some(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_parse::document::{BlockKind, SectionBuilder};

    fn kind(title: &str, headings: &[&str], text: &str) -> SectionKind {
        let mut builder = SectionBuilder::default();
        for (heading, level) in headings.iter().zip(2..) {
            builder.heading(level, heading, None);
        }
        builder.block(BlockKind::Text, text);
        section_kind(title, builder.finish().last().unwrap())
    }

    #[test]
    fn the_kind_is_detected_by_the_heading() {
        let of = |heading: &str| kind("Sensors", &[heading], "Text.");
        assert_eq!(of("Quiz"), SectionKind::Quiz);
        assert_eq!(of("Chapter 3 Quiz"), SectionKind::Quiz);
        assert_eq!(of("Exercise 3.2: Blink a light"), SectionKind::Exercise);
        assert_eq!(of("Learning Objectives"), SectionKind::Objectives);
        assert_eq!(of("What's new"), SectionKind::ReleaseNotes);
        assert_eq!(of("Glossary"), SectionKind::Glossary);
        assert_eq!(of("Lab setup on Linux"), SectionKind::Body);
        assert_eq!(of("Index a column"), SectionKind::Body);
    }

    #[test]
    fn sections_inside_a_quiz_are_part_of_it() {
        assert_eq!(kind("Sensors", &["Quiz", "Question 1"], "Text."), SectionKind::Quiz);
        assert_eq!(kind("Glossary", &["ROS 2 terms"], "Text."), SectionKind::Glossary);
    }

    #[test]
    fn a_quiz_is_detected_by_its_form() {
        let choices = "1. What does a lidar measure?\n- A) Light\n- B) Distance\n- C) Sound";
        assert_eq!(kind("Sensors", &["Before you go on"], choices), SectionKind::Quiz);
        let questions = "- What is a node?\n- Why is it small?\n- Who starts it?";
        assert_eq!(kind("Sensors", &["Before you go on"], questions), SectionKind::Quiz);
        assert_eq!(
            kind("Sensors", &["Why?"], "Why is it small? Because it does one job."),
            SectionKind::Body
        );
    }

    #[test]
    fn a_question_can_ask_for_a_kind_of_section() {
        assert!(SectionKind::Exercise.is_sought("Show me the exercises of chapter 3"));
        assert!(!SectionKind::Exercise.is_sought("How does a lidar work?"));
        assert!(SectionKind::ReleaseNotes.is_sought("since which version is there a lidar?"));
    }
}
