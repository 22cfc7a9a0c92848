//! Questions per kind, and what holds for any page.

use docent_parse::layout::{Base, Layout, Site};
use docent_parse::parse_page;
use proptest::prelude::*;

use super::*;
use crate::chunk::chunk;

fn passages(path: &str, markdown: &str) -> Vec<Chunk> {
    let site = Site::new(Layout::Plain, Base::Published("https://book.example".to_owned()));
    let (page, _) = parse_page(path, markdown.as_bytes(), &site, &mut |_| None);
    page.map(|page| chunk(&page, 256, &|text| text.len().div_ceil(4))).unwrap_or_default()
}

fn made(markdown: &str) -> Vec<QuizQuestion> {
    questions(&passages("pumps.md", markdown))
}

/// Checks the questions about a page and their answers.
fn check(markdown: &str, expected: &[(&str, &str)]) {
    let made = made(markdown);
    let shown: Vec<(&str, &str)> =
        made.iter().map(|question| (question.question.as_str(), question.answer.as_str())).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_definition_asks_for_its_meaning_or_its_term() {
    check(
        "# Pumps\n\nA pump is a machine that moves water. It is loud.\n\n## Parts\n\nAn impeller is a wheel with blades that throws water outwards.\n",
        &[
            ("What is a pump?", "a machine that moves water"),
            (
                "Which term is missing? “A(n) ____ is a wheel with blades that throws water outwards.”",
                "impeller",
            ),
        ],
    );
    check(
        "# Pumps\n\nIn hydraulics, cavitation is the formation of bubbles in a liquid. `MAX` means that the valve stays open.\n",
        &[
            ("In hydraulics, what is cavitation?", "the formation of bubbles in a liquid"),
            ("What does `MAX` mean?", "that the valve stays open"),
        ],
    );
}

#[test]
fn judgements_and_sentences_that_need_others_are_not_asked_about() {
    check(
        "# Pumps\n\nIt is a machine that moves water. The reason is a bug in the controller of the valve. \
         A clean filter is a good start for any repair. This pump is the one that we saw above. \
         Water is essential for the cooling of a pump.\n",
        &[],
    );
}

#[test]
fn a_list_is_asked_for_as_a_whole_and_by_a_description() {
    check(
        "# Pumps\n\nEvery pump has three parts:\n\n- **A body**: the metal around the water and the wheel.\n\
         - **An impeller**: the wheel.\n- **A motor**: what turns it.\n",
        &[
            ("Every pump has three parts. Name them.", "- A body\n- An impeller\n- A motor"),
            (
                "Every pump has three parts. Which one is described here? “the metal around the water and the wheel”",
                "A body",
            ),
        ],
    );
    check(
        "# Pumps\n\nA valve supports the following positions:\n\n- open\n- closed\n",
        &[("A valve supports two positions. Name them.", "- open\n- closed")],
    );
}

#[test]
fn a_list_that_its_sentence_miscounts_is_left_out() {
    check("# Pumps\n\nEvery pump has four parts:\n\n- the body\n- the motor\n", &[]);
    check("# Pumps\n\nTier 2 platforms of the pumps:\n\n- the body\n- the motor\n", &[]);
}

#[test]
fn numbered_instructions_ask_for_the_next_step() {
    let steps =
        "1. Close the valve.\n2. Drain the pump.\n3. Clean the filter. Use water.\n4. Open the valve.\n";
    check(
        &format!("# Pumps\n\n## Maintaining a pump\n\n{steps}"),
        &[("“Maintaining a pump”: which step comes right after “Drain the pump”?", "Clean the filter")],
    );
    // Goals are not steps.
    check(&format!("# Pumps\n\n## Who this is for\n\nYou will be able to:\n\n{steps}"), &[]);
}

#[test]
fn a_table_asks_for_a_cell_and_for_a_row() {
    let table = "| Setting | Meaning | Default |\n| --- | --- | --- |\n| `port` | Port to listen on | `8080` |\n\
                 | `host` | Address of the machine | `localhost` |\n| `speed` | Turns in a minute | 300 |\n";
    check(
        &format!("# Pumps\n\n## Settings of the controller\n\n{table}"),
        &[
            ("In the table under “Settings of the controller”, what is the default of `port`?", "`8080`"),
            (
                "In the table under “Settings of the controller”, what is the default of `host`?",
                "`localhost`",
            ),
        ],
    );
    let table = "| Part | Task |\n| --- | --- |\n| Impeller | Throws water outwards |\n| Motor | Turns the wheel |\n\
                 | Lamp | Shows that the pump runs |\n";
    check(
        &format!("# Pumps\n\n## Which parts are there?\n\n{table}"),
        &[
            (
                "In the table under “Which parts are there?”, which part has “Throws water outwards” in the column “Task”?",
                "Impeller",
            ),
            ("In the table under “Which parts are there?”, what is the task of “Motor”?", "Turns the wheel"),
        ],
    );
    // One column, cells that say nothing, and rows that cannot be told apart.
    check("# Pumps\n\n| Setting |\n| --- |\n| `port` |\n| `host` |\n", &[]);
    check("# Pumps\n\n| Setting | Needed |\n| --- | --- |\n| `port` | Yes |\n| `host` | No |\n", &[]);
    check("# Pumps\n\n| Setting | Value |\n| --- | --- |\n| `port` | eighty |\n| `port` | ninety |\n", &[]);
}

#[test]
fn a_command_is_asked_for_by_its_purpose() {
    check(
        "# Pumps\n\nTo list all pumps that are connected to the controller, run:\n\n```sh\npumpctl list --all\n```\n",
        &[(
            "Which command do you use to list all pumps that are connected to the controller?",
            "pumpctl list --all",
        )],
    );
    // With a prompt, other lines are output; a program is not a command.
    check(
        "# Pumps\n\n## Logs of a pump\n\nShow the log:\n\n```console\n$ pumpctl log\nok\n```\n",
        &[("In “Logs of a pump”: which command do you use to show the log?", "pumpctl log")],
    );
    check("# Pumps\n\nTo list all pumps, run:\n\n```python\nprint(pumps)\n```\n", &[]);
    check("# Pumps\n\nTo list it, run:\n\n```sh\npumpctl list --all\n```\n", &[]);
}

#[test]
fn what_something_does_and_why_are_asked_for() {
    check(
        "# Pumps\n\n- `--quiet` turns off the lamp of the pump.\n- `--loud` is new.\n\n\
         Divers use slow pumps, because fast water would carry them away.\n",
        &[
            ("What does `--quiet` do?", "turns off the lamp of the pump"),
            ("Why is this so? “Divers use slow pumps.”", "fast water would carry them away"),
        ],
    );
    // The last item of a list belongs to the answer, another subject does not.
    check(
        "# Pumps\n\n`pumpctl build` creates two folders of pumps: `mill/` for stones, and `log/` for wood.\n",
        &[(
            "What does `pumpctl build` do?",
            "creates two folders of pumps: `mill/` for stones, and `log/` for wood",
        )],
    );
    check(
        "# Pumps\n\n`--quiet` turns off the lamp of the pump, and the other lamp is what wakes the miller.\n",
        &[("What does `--quiet` do?", "turns off the lamp of the pump")],
    );
    check(
        "# Pumps\n\n`pumpctl hz` measures the rate of the pump, and `pumpctl bw` the width.\n",
        &[("What does `pumpctl hz` do?", "measures the rate of the pump")],
    );
    // A plural is not a verb, and "because" after "not" gives no reason.
    check(
        "# Pumps\n\n`GET` requests have no body at all. The pump stops, not because the valve of the pump is shut.\n",
        &[],
    );
}

#[test]
fn a_glossary_asks_for_each_entry() {
    check(
        "# Glossary\n\n- **Pump**: a machine that moves water. See [pumps](pumps.md).\n- **Valve**: a door for water.\n",
        &[
            ("What is meant by “Pump”?", "a machine that moves water"),
            ("Which term means “a door for water”?", "Valve"),
        ],
    );
}

#[test]
fn quizzes_release_notes_and_other_languages_are_left_out() {
    check("# Pumps\n\n## Quiz\n\nA pump is a machine that moves water.\n", &[]);
    check("# Pumps\n\n## Changelog\n\nA pump is a machine that moves water.\n", &[]);
    assert!(
        questions(&passages("releases/one.md", "# One\n\nA pump is a machine that moves water.\n"))
            .is_empty()
    );
    check(
        "# Pumpen\n\nEine Pumpe ist eine Maschine, die Wasser bewegt. Die Pumpe steht im Keller, weil dort das Wasser ist. \
         Jede Pumpe hat drei Teile:\n\n- Gehäuse\n- Laufrad\n- Motor\n",
        &[],
    );
}

#[test]
fn hints_lead_to_the_answer_without_giving_it_away() {
    let hints = |markdown: &str| made(markdown)[0].hints.clone();
    assert_eq!(
        hints("# Pumps\n\n## Basics for beginners\n\nA pump is a machine that moves water with a wheel.\n"),
        [
            "See the section “Basics for beginners” of “Pumps”. The answer has 8 words.",
            "It begins: “a machine …”"
        ]
    );
    assert_eq!(
        hints("# Pumps\n\nEvery pump has two parts:\n\n- the body\n- the motor\n"),
        [
            "See the page “Pumps”. The answer is a list of two.",
            "They start with these letters: t… b… · t… m…"
        ]
    );
}

#[test]
fn a_page_has_a_bounded_number_of_questions() {
    let page: String =
        (0..60).map(|n| format!("## Part {n}\n\nA part{n} is a machine that moves water.\n\n")).collect();
    assert_eq!(made(&format!("# Pumps\n\n{page}")).len(), MOST_PER_PAGE);
}

/// Pieces of Markdown that the question makers look for.
const PIECES: [&str; 24] = [
    "# Pumps\n\n",
    "## Clean the pump\n\n",
    "## Glossary\n\n",
    "A pump is a machine that moves water. ",
    "In Rust, an é is the letter that 日本 writes. ",
    "Every pump has two parts:\n\n",
    "- **A body**: the metal around the wheel, which is “é”.\n",
    "- `x` sets the speed of the machine.\n",
    "1. Open the valve.\n2. Close the valve.\n3. Clean the filter.\n",
    "  - nested\n",
    "| Setting | Default | |\n| --- | --- | --- |\n| `a|b` | é | \\| |\n| c | `日本` turns | x |\n",
    "| a | b |\n|---|---|\n| one | two three |\n| four | five six |\n",
    "To list all the pumps, run:\n\n",
    "```sh\n$ pumpctl list --all\nok\n```\n\n",
    "```\n",
    "Divers use pumps, because water would carry them away.\n\n",
    "\n\n",
    ": ",
    "`",
    "| ",
    "(",
    " because ",
    "The ____ is the “",
    "1. ",
];

proptest! {
    #[test]
    fn every_answer_is_quoted_from_its_passage(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24), other in "\\PC{0,20}") {
        let page = passages("a.md", &format!("{}{other}", pieces.concat()));
        let made = questions(&page);
        for question in &made {
            let passage = page.iter().find(|chunk| chunk.id == question.chunk_id).unwrap();
            prop_assert_eq!(passage.content.get(question.start..question.end), Some(question.quote.as_str()));
            for line in question.answer.lines() {
                let answer = line.strip_prefix("- ").unwrap_or(line);
                prop_assert!(question.quote.contains(answer) || question.quote.contains(line), "{:?}", question);
            }
            prop_assert!(!question.answer.trim().is_empty() && !question.question.contains('\n'));
            prop_assert!(question.hints.iter().all(|hint| !hint.is_empty()));
        }
        let ids: std::collections::HashSet<_> = made.iter().map(|question| question.id).collect();
        prop_assert_eq!(ids.len(), made.len());
        prop_assert_eq!(&questions(&page), &made);
        let cards = anki(&made, "Deck");
        prop_assert_eq!(cards.lines().filter(|line| !line.starts_with('#')).count(), made.len());
        prop_assert!(cards.lines().filter(|line| !line.starts_with('#')).all(|line| line.matches('\t').count() == 2));
    }
}
