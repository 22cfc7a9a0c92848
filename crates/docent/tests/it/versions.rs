//! A Docusaurus project with several versions and locales.

use serde_json::Value;

use crate::support::Docent;

/// The wheel turns 8 times a minute in version 2.0, 6 times in 1.0 and 12 times in the coming version.
pub fn versioned_docs() -> Docent {
    let docent = Docent::new();
    docent.write(
        "site/docusaurus.config.js",
        "export default {\n  url: 'https://mill.dev',\n  baseUrl: '/',\n  i18n: { defaultLocale: 'en', locales: ['en', 'de'] },\n};\n",
    );
    docent.write("site/versions.json", "[\"2.0\", \"1.0\"]");
    let wheel = |turns: &str| {
        format!(
            "# The wheel\n\nThe wheel turns {turns} times a minute.\n\n## Grease\n\nGrease the bearing of the wheel every month.\n"
        )
    };
    for (folder, turns) in
        [("docs", "twelve"), ("versioned_docs/version-2.0", "eight"), ("versioned_docs/version-1.0", "six")]
    {
        docent.write(&format!("site/{folder}/mill/wheel.md"), &wheel(turns));
    }
    docent.write("site/docs/mill/brake.md", "# The brake\n\nThe brake stops the wheel within two turns.\n");
    docent
        .write("site/versioned_docs/version-2.0/mill/gate.md", "# The gate\n\nThe gate lets the water in.\n");
    docent.write(
        "site/i18n/de/docusaurus-plugin-content-docs/version-2.0/mill/wheel.md",
        "# Das Rad\n\nDas Rad dreht sich acht Mal pro Minute.\n",
    );
    docent
}

fn urls(found: &Value) -> Vec<&str> {
    let mut urls: Vec<&str> = found["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chunk| chunk["url"].as_str().unwrap().split('#').next().unwrap())
        .collect();
    urls.sort_unstable();
    urls.dedup();
    urls
}

#[test]
fn a_search_uses_the_released_version_unless_it_names_another_one() {
    let docent = versioned_docs();
    assert_eq!(docent.json(&["ingest", "site"])["pages"]["added"], 7);
    let found = |more: &[&str]| {
        let found = docent.json(&[&["search", "wheel turns a minute", "-k", "20"], more].concat());
        urls(&found)
            .iter()
            .map(|url| url.trim_start_matches("https://mill.dev").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["/docs/mill/gate", "/docs/mill/wheel"]);
    assert_eq!(found(&["--doc-version", "1.0"]), ["/docs/1.0/mill/wheel"]);
    assert_eq!(found(&["--doc-version", "current"]), ["/docs/next/mill/brake", "/docs/next/mill/wheel"]);
    // The page that is not translated is published below the address of the locale, too.
    assert_eq!(found(&["--locale", "de"]), ["/de/docs/mill/gate", "/de/docs/mill/wheel"]);

    // Passages with the same text in several versions are shown once, as those of the released version.
    let all = docent.json(&["search", "grease the bearing", "--doc-version", "all", "-k", "20"]);
    let greased: Vec<_> = all["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|chunk| chunk["content"].as_str().unwrap().starts_with("Grease"))
        .map(|chunk| (&chunk["version"], &chunk["url"]))
        .collect();
    assert_eq!(greased, [(&"2.0".into(), &"https://mill.dev/docs/mill/wheel#grease".into())]);
}

#[test]
fn an_answer_names_its_version() {
    let docent = versioned_docs();
    docent.ok(&["ingest", "site"]);
    let question = "How many times a minute does the wheel turn?";
    let answer = docent.json(&["ask", question]);
    assert!(answer["answer"].as_str().unwrap().contains("turns eight times a minute"), "{answer}");
    assert!(
        answer["answer"]
            .as_str()
            .unwrap()
            .contains("[The wheel (version 2.0)](https://mill.dev/docs/mill/wheel")
    );
    let citation = &answer["citations"][0];
    assert_eq!((&citation["version"], &citation["locale"]), (&"2.0".into(), &"en".into()), "{answer}");
    assert!(
        answer["sources"].as_array().unwrap().iter().all(|source| source["version"] == "2.0"),
        "{answer}"
    );

    let answer = docent.json(&["ask", question, "--doc-version", "1.0"]);
    assert!(answer["answer"].as_str().unwrap().contains("turns six times a minute"), "{answer}");
    let url = answer["citations"][0]["url"].as_str().unwrap();
    assert!(url.starts_with("https://mill.dev/docs/1.0/mill/wheel"), "{url}");
    let shown = docent.ok(&["ask", question, "--doc-version", "1.0"]);
    assert!(shown.contains("[1] The wheel (version 1.0)\n"), "{shown}");
}

#[test]
fn versions_and_locales_are_listed_and_unknown_ones_are_errors() {
    let docent = versioned_docs();
    docent.ok(&["ingest", "site"]);
    let listed = docent.ok(&["modules"]);
    assert!(
        listed.contains("versions  2.0 (default), current, 1.0\nlocales  en (default), de\n"),
        "{listed}"
    );
    let status = docent.json(&["status"]);
    assert_eq!(
        (&status["versions"][0]["name"], &status["versions"][0]["default"]),
        (&"2.0".into(), &true.into())
    );
    assert!(docent.ok(&["status"]).contains("locales    en (default), de\n"));
    docent.fails(
        &["search", "x", "--doc-version", "3.1"],
        2,
        "error: there is no version `3.1` of this book\nhint: available versions: 2.0, current, 1.0",
    );
    docent.fails(
        &["ask", "x", "--locale", "fr"],
        2,
        "error: there is no locale `fr` of this book\nhint: available locales: en, de",
    );
    let run = docent.run_with_input(&["chat"], "/version 1.0\n/version 7\n/version\n/quit\n");
    assert!(run.stderr.contains("using the whole book, version 1.0\n"), "{}", run.stderr);
    assert!(run.stderr.contains("there is no version `7`"), "{}", run.stderr);
}

#[test]
fn a_book_without_versions_has_none() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nThe wheel turns.\n");
    docent.ok(&["ingest", "book"]);
    let found = docent.json(&["search", "wheel"]);
    assert_eq!((&found["chunks"][0]["version"], &found["chunks"][0]["locale"]), (&Value::Null, &Value::Null));
    assert!(!docent.ok(&["modules"]).contains("versions") && !docent.ok(&["status"]).contains("locales"));
    docent.fails(
        &["search", "wheel", "--doc-version", "1.0"],
        2,
        "error: there is no version `1.0` of this book\nhint: the book has no versions",
    );
}

#[test]
fn sources_can_be_versions_of_one_book() {
    let docent = Docent::without_vectors();
    docent.write("old/guide.md", "# Guide\n\nThe wheel turns six times.\n");
    docent.write("new/guide.md", "# Guide\n\nThe wheel turns eight times.\n");
    let list = |version: &str| {
        format!(
            "[[sources]]\nlocation = \"old\"\nname = \"mill\"\nversion = \"1.9\"\n[[sources]]\nlocation = \"new\"\nname = \"mill\"\nversion = \"{version}\"\n"
        )
    };
    docent.write("docent.toml", &list("1.10"));
    docent.ok(&["ingest"]);
    let found = docent.json(&["search", "wheel"]);
    assert_eq!(found["chunks"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(
        (&found["chunks"][0]["version"], &found["chunks"][0]["document_id"]),
        (&"1.10".into(), &"mill/1.10/guide.md".into())
    );
    // A preview is not the default, whatever its number.
    docent.write("docent.toml", &list("2.0-beta"));
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["search", "wheel"])["chunks"][0]["version"], "1.9");
    docent.write("docent.toml", &list("1.9"));
    let run = docent.run(&["ingest"]);
    assert!(run.status == 3 && run.stderr.contains("two sources are named `mill`"), "{}", run.stderr);
    docent.write("docent.toml", &list("all"));
    assert!(docent.run(&["ingest"]).stderr.contains("version cannot be `all`"));
}
