//! `docent init`.

use crate::support::Docent;

const CONFIG: &str =
    "export default { title: 'The \"Mill\"', url: 'https://mill.dev', baseUrl: '/', presets: [] };";

fn project() -> Docent {
    let docent = Docent::without_vectors();
    docent.write("website/docusaurus.config.js", CONFIG);
    docent.write("website/docs/stones.md", "# Stones\n\nA millstone grinds grain between two faces.\n");
    docent
}

#[test]
fn a_project_is_ready_to_be_ingested() {
    let docent = project();
    let said = docent.ok(&["init"]);
    assert!(said.starts_with("Found a Docusaurus project in website; wrote ./docent.toml.\n"), "{said}");
    assert!(said.contains("scripts: [{ src: \"https://docent.example.org/widget.js\", async: true }]"));
    assert_eq!(
        std::fs::read_to_string(docent.home.path().join("docent.toml")).unwrap(),
        "[[sources]]\nlocation = \"website\"\nbase_url = \"https://mill.dev/docs\"\n\n[serve]\ntitle = \"The \\\"Mill\\\"\"\ncors_origins = [\"https://mill.dev\"]  # sites with the widget\n"
    );
    docent.ok(&["ingest"]);
    assert!(docent.ok(&["search", "millstone", "--json"]).contains("https://mill.dev/docs/stones"));
}

#[test]
fn the_logo_of_the_site_is_that_of_the_chat_page() {
    let docent = project();
    let config =
        CONFIG.replace("presets", "themeConfig: { navbar: { logo: { src: 'img/mill.svg' } } }, presets");
    docent.write("website/docusaurus.config.js", &config);
    docent.write("website/static/img/mill.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    docent.ok(&["init"]);
    let written = std::fs::read_to_string(docent.home.path().join("docent.toml")).unwrap();
    assert!(written.ends_with("\n[chat]\nlogo = \"website/static/img/mill.svg\"\n"), "{written}");
    docent.ok(&["status"]);
    // An image that the chat page cannot show is left out.
    docent.write("website/static/img/mill.svg", "BM");
    docent.ok(&["init", "--force"]);
    assert!(!std::fs::read_to_string(docent.home.path().join("docent.toml")).unwrap().contains("logo"));
}

#[test]
fn an_existing_file_is_only_replaced_on_request() {
    let docent = project();
    // Not even a valid one.
    docent.write("docent.toml", "mine = true\n");
    let run = docent.run(&["init"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("./docent.toml already exists"), "{}", run.stderr);
    assert!(run.stderr.contains("use --force to replace it"));
    assert_eq!(std::fs::read_to_string(docent.home.path().join("docent.toml")).unwrap(), "mine = true\n");
    docent.ok(&["init", "--force", "--base-url", "https://docs.mill.dev/v2"]);
    let written = std::fs::read_to_string(docent.home.path().join("docent.toml")).unwrap();
    assert!(
        written.contains("base_url = \"https://docs.mill.dev/v2\"")
            && written.contains("[\"https://docs.mill.dev\"]"),
        "{written}"
    );
}

#[test]
fn folders_without_pages_are_errors() {
    let docent = Docent::without_vectors();
    docent.write("src/main.rs", "fn main() {}\n");
    let run = docent.run(&["init", "src"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("no pages found in src"), "{}", run.stderr);
    let run = docent.run(&["init", "nowhere"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("nowhere is not a folder"), "{}", run.stderr);
    docent.write("notes/a.md", "# A\n\nText.\n");
    let said = docent.ok(&["init", "notes", "--json"]);
    assert!(said.contains("\"generator\": null"), "{said}");
}
