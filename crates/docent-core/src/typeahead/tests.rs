use proptest::prelude::*;

use super::*;
use crate::index::Filter;
use crate::testing::{LetterEmbedder, MemoryIndex, chunk};

/// A book: page, heading, text.
const BOOK: [(&str, &str, &str); 6] = [
    ("Installation", "", "Install the package with the package manager. It needs Node 20."),
    ("Installation", "Project structure", "The folder contains the configuration file."),
    ("Deployment", "", "Build the site, then upload it."),
    ("Deployment", "Deploying to GitHub Pages", "Set the trailing slash and run the deploy command."),
    ("Versioning", "Tagging a new version", "Each version has a folder of its own."),
    ("Plugins", "", "A plugin adds pages. Deployment plugins exist, too. Its pluginName is unique."),
];

fn index() -> MemoryIndex {
    let chunks = BOOK.iter().zip(0..).map(|((page, heading, text), number)| {
        let mut chunk = chunk(page, number, text);
        if !heading.is_empty() {
            chunk.heading = Some((*heading).to_owned());
            chunk.heading_hierarchy = vec![(*heading).to_owned()];
        }
        let vector = LetterEmbedder::vector(text);
        (chunk, vector)
    });
    MemoryIndex::new(chunks.collect())
}

async fn find(typed: &str, filter: &Filter) -> Vec<PageMatch> {
    let (index, analyzer) = (index(), Analyzer::new(Default::default()));
    let outline = Arc::new(index.outline().await.unwrap());
    let typeahead = Typeahead::new(outline, index.vocabulary().await.unwrap(), &analyzer);
    typeahead.find(typed, filter, 5, &index, &analyzer).await.unwrap()
}

async fn pages(typed: &str) -> Vec<String> {
    find(typed, &Filter::default()).await.into_iter().map(|page| page.document_id).collect()
}

/// The text with the matching parts in brackets.
fn marked(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| if piece.matched { format!("[{}]", piece.text) } else { piece.text.clone() })
        .collect()
}

#[tokio::test]
async fn titles_and_headings_come_before_mentions_in_the_text() {
    assert_eq!(pages("deployment").await, ["Deployment", "Plugins"]);
    assert_eq!(pages("plugin").await[0], "Plugins");
    assert_eq!(pages("new version").await[0], "Versioning");
}

#[tokio::test]
async fn unfinished_and_misspelled_words_are_found() {
    for (typed, page) in [
        ("insta", "Installation"),
        ("instalation", "Installation"),
        ("depolyment", "Deployment"),
        ("how to depl", "Deployment"),
        ("verisoning", "Versioning"),
        ("gihtub", "Deployment"),
        ("trailing sla", "Deployment"),
        ("plugni", "Plugins"),
        ("pluginname", "Plugins"),
        ("pluginna", "Plugins"),
        ("versionng", "Versioning"),
        ("versionin", "Versioning"),
        ("project struct", "Installation"),
    ] {
        assert_eq!(pages(typed).await.first().map(String::as_str), Some(page), "{typed}");
    }
}

#[tokio::test]
async fn matching_words_are_marked() {
    let found = find("trailing slahs", &Filter::default()).await;
    let section = &found[0].sections[0];
    assert_eq!(marked(&section.heading), "Deploying to GitHub Pages");
    assert_eq!(marked(&section.text), "Set the [trailing] [slash] and run the deploy command.");
    assert_eq!(marked(&found[0].title), "Deployment");
    assert!(section.url.ends_with("#s3"));
}

#[tokio::test]
async fn nothing_is_found_for_words_that_are_not_in_the_book() {
    for typed in ["", "  ", "?!", "zebra crossing", "the"] {
        assert_eq!(pages(typed).await, Vec::<String>::new(), "{typed}");
    }
}

#[tokio::test]
async fn a_filter_excludes_other_modules() {
    let filter = Filter::of_module(Some("other".to_owned()));
    assert_eq!(find("deployment", &filter).await, []);
    let filter = Filter::of_module(Some("m".to_owned()));
    assert!(!find("deployment", &filter).await.is_empty());
}

#[tokio::test]
async fn a_long_sentence_is_shortened_around_the_first_match() {
    let text = format!("{} the needle {}.", "word ".repeat(60), "more ".repeat(60));
    let page = chunk("page", 0, &text);
    let index = MemoryIndex::new(vec![(page, LetterEmbedder::vector(&text))]);
    let analyzer = Analyzer::new(Default::default());
    let outline = Arc::new(index.outline().await.unwrap());
    let typeahead = Typeahead::new(outline, index.vocabulary().await.unwrap(), &analyzer);
    let found = typeahead.find("needle", &Filter::default(), 5, &index, &analyzer).await.unwrap();
    let shown = marked(&found[0].sections[0].text);
    assert!(
        shown.starts_with("… word") && shown.contains("[needle]") && shown.ends_with("more …"),
        "{shown}"
    );
    assert!(shown.chars().count() < LONGEST_TEXT + 10, "{shown}");
}

proptest! {
    #[test]
    fn any_text_can_be_typed(typed in "\\PC{0,60}|[a-z ]{0,30}|(deploy|instal|vers|é| |-)* ?") {
        let found = futures_util::FutureExt::now_or_never(find(&typed, &Filter::default())).unwrap();
        for page in found {
            let sections = page.sections.iter().flat_map(|section| section.heading.iter().chain(&section.text));
            prop_assert!(page.title.iter().chain(sections).any(|piece| piece.matched), "{typed}");
        }
    }
}

#[test]
fn text_is_shown_without_markup() {
    for (text, shown) in [
        ("- Set the `trailing` slash,\n  **always**.", "Set the trailing slash, always."),
        ("| `name` | The name  |", "name · The name"),
        ("> A quote.", "A quote."),
        ("2 > 1", "2 > 1"),
    ] {
        assert_eq!(without_markup(text), shown);
    }
}
