//! Pages rendered by site generators: the text is kept, everything around it is removed.
//!
//! Invariant: navigation, headers and footers never become part of a page.

#![allow(clippy::unwrap_used)]

use docent_parse::html::parse_html;

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docent/tests/fixtures/sites");
    std::fs::read_to_string(format!("{folder}/{name}.html")).unwrap()
}

fn check(name: &str) {
    let parsed = parse_html(&fixture(name));
    let blocks: Vec<&str> =
        parsed.sections.iter().flat_map(|section| &section.blocks).map(|block| &*block.text).collect();
    let headings = parsed.sections.iter().filter_map(|section| section.heading.as_ref());
    let text = blocks.join("\n");
    assert!(text.contains("A relief valve opens at three bar."), "{name}: {text}");
    assert!(text.contains("It closes again at two bar."), "{name}: {text}");
    for word in ["FURNITURE", "Edit", "Last ", "helpful", "Next", "Skip", "Copyright", "Version"] {
        assert!(!text.contains(word), "{name}, {word}: {text}");
    }
    let shown: Vec<_> = headings.map(|heading| (&*heading.text, heading.anchor.as_deref())).collect();
    assert_eq!(parsed.title.as_deref(), Some("Valves"), "{name}");
    assert_eq!(shown.len(), 2, "{name}: {shown:?}");
    assert_eq!(shown[0].0, "Valves", "{name}");
    assert_eq!(shown[1], ("Closing", Some("closing")), "{name}");
}

macro_rules! pages {
    ($($test:ident $name:literal)*) => { $(
        #[test]
        fn $test() {
            check($name);
        }
    )* };
}

pages! {
    docusaurus "docusaurus"
    mdbook "mdbook"
    sphinx_of_read_the_docs "sphinx-rtd"
    mkdocs "mkdocs"
    mkdocs_material "mkdocs-material"
    vitepress "vitepress"
    gitbook "gitbook"
    hugo_docsy "hugo-docsy"
    a_page_of_no_generator "plain"
}
