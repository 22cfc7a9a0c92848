use super::*;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn read_folder(files: &[(&str, &str)]) -> (Read, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    let source = SourceRecord {
        location: folder.path().to_string_lossy().into_owned(),
        base_url: Some("https://x.org/docs".into()),
        ..SourceRecord::default()
    };
    (read(folder.path(), &source, &Reading::default()).unwrap(), folder)
}

fn urls(read: &Read) -> Vec<&str> {
    read.documents.iter().map(|document| document.url.trim_start_matches("https://x.org/docs")).collect()
}

fn warnings(read: &Read) -> Vec<String> {
    read.warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect()
}

#[test]
fn a_docusaurus_folder() {
    let (read, _folder) = read_folder(&[
        ("01-ros2/02-nodes.mdx", "---\ntitle: Nodes\n---\nimport P from './_p.mdx';\n\n<P />\n"),
        ("01-ros2/_p.mdx", "Shared words."),
        ("01-ros2/_category_.json", "{\"label\": \"ROS 2\", \"position\": 1}"),
        ("index.md", "# Hi\nText"),
        ("img/a.png", "x"),
    ]);
    assert_eq!(read.kind, "Docusaurus");
    assert_eq!(read.labels["ros2"], "ROS 2");
    assert_eq!(urls(&read), ["/ros2/nodes", "/"]);
    assert_eq!(read.documents[0].sections[0].blocks[0].text, "Shared words.");
    assert_eq!(
        warnings(&read),
        ["01-ros2/_p.mdx: partial (name starts with _): included where it is imported, not a page"]
    );
    assert_eq!(
        read.other_files.into_iter().collect::<Vec<_>>(),
        [("json".to_owned(), 1), ("png".to_owned(), 1)]
    );
}

#[test]
fn an_mdbook_in_the_order_of_its_summary() {
    let (read, _folder) = read_folder(&[
        ("book.toml", ""),
        ("src/SUMMARY.md", "- [Two](b.md)\n  - [One](a.md)\n- [Gone](gone.md)\n"),
        ("src/a.md", "# A\n{{#include ../code/x.rs}}\n"),
        ("src/b.md", "# B\ntext"),
        ("src/c.md", "# C\n"),
        ("code/x.rs", "fn main() {}"),
    ]);
    assert_eq!(read.kind, "MdBook");
    assert_eq!(
        read.labels.iter().collect::<Vec<_>>(),
        [(&"b".to_owned(), &"Two".to_owned()), (&"gone".to_owned(), &"Gone".to_owned())]
    );
    assert_eq!(urls(&read), ["/b.html", "/a.html"]);
    assert_eq!(read.documents[1].title, "One");
    assert_eq!(read.documents[1].module, "b");
    assert_eq!(read.documents[1].sections[0].blocks[0].text, "fn main() {}");
    assert_eq!(
        warnings(&read),
        [
            "gone.md: listed in SUMMARY.md but does not exist",
            "SUMMARY.md: table of contents: used for order and titles, not a page",
            "c.md: not in SUMMARY.md, so not published",
        ]
    );
}

#[test]
fn an_mdbook_include_cannot_read_files_outside_the_project() {
    let (read, _folder) = read_folder(&[
        ("src/SUMMARY.md", "- [A](a.md)\n"),
        ("book.toml", ""),
        ("src/a.md", "x {{#include ../../../../../../../../etc/hostname}}\n"),
    ]);
    assert_eq!(read.documents[0].sections[0].blocks[0].text, "x");
    assert_eq!(warnings(&read).len(), 2);
}

#[test]
fn an_include_cannot_read_files_outside_the_source() {
    let above = tempfile::tempdir().unwrap();
    write(
        above.path(),
        &[
            ("secret.txt", "secret"),
            ("book/a.adoc", "= A\n\ninclude::../secret.txt[]\n\ninclude::b/_part.adoc[]\n"),
            ("book/b/_part.adoc", "Part.\n\ninclude::../a.adoc[]\n"),
            ("book/c.rst", "C\n=\n\n.. include:: ../secret.txt\n\n.. include:: c.rst\n"),
        ],
    );
    let path = above.path().join("book");
    let source = SourceRecord {
        location: path.to_string_lossy().into_owned(),
        base_url: None,
        layout: Some("asciidoctor".into()),
        ..SourceRecord::default()
    };
    let read = read(&path, &source, &Reading::default()).unwrap();
    let text = format!("{:?}", read.documents);
    assert!(!text.contains("secret") && text.contains("Part."), "{text}");
    assert!(warnings(&read).contains(&"a.adoc: included file not found: ../secret.txt".to_owned()));
    assert!(warnings(&read).contains(&"c.rst: included file not found: ../secret.txt".to_owned()));
}

#[test]
fn a_sphinx_folder_in_the_order_of_its_toctrees() {
    let (read, _folder) = read_folder(&[
        ("index.rst", "Book\n====\n\n.. toctree::\n\n   zeta\n   Alpha <guide/index>\n   rest/*\n"),
        ("guide/index.rst", "Guide\n=====\n\n.. toctree::\n\n   two\n   one\n   /index\n"),
        ("guide/one.rst", "One\n===\n\nText\n"),
        ("guide/two.rst", "Two\n===\n\nText\n"),
        ("orphan.rst", "O\n=\n\nText\n"),
        ("rest/b.rst", "B\n=\n\nText\n"),
        ("rest/a.rst", "A\n=\n\nText\n"),
        ("zeta.rst", "Z\n=\n\nText\n"),
    ]);
    assert_eq!(
        urls(&read),
        [
            "/index.html",
            "/zeta.html",
            "/guide/index.html",
            "/guide/two.html",
            "/guide/one.html",
            "/rest/a.html",
            "/rest/b.html",
            "/orphan.html"
        ]
    );
}

#[test]
fn an_asciidoctor_folder() {
    let (read, _folder) = read_folder(&[
        ("guide/a.adoc", "= A\n\n== Setup\n\nText\n"),
        ("_part.adoc", "Part."),
        ("n.ipynb", "{\"cells\": []}"),
    ]);
    assert_eq!(read.kind, "Asciidoctor");
    assert_eq!(urls(&read), ["/guide/a.html", "/n.ipynb"]);
}

#[test]
fn gitignore_is_respected_in_a_git_checkout() {
    let files = [
        (".gitignore", "drafts/\n*.tmp.md\n!keep.tmp.md\n"),
        ("a.md", "A."),
        ("b.tmp.md", "B."),
        ("keep.tmp.md", "K."),
        ("drafts/c.md", "C."),
        ("sub/.gitignore", "d.md\n"),
        ("sub/d.md", "D."),
        ("sub/e.md", "E."),
    ];
    let (plain, _folder) = read_folder(&files);
    assert_eq!(plain.documents.len(), 6, ".gitignore applies only in a git checkout");
    let (read, folder) = read_folder(&[&files[..], &[(".git/HEAD", "ref: refs/heads/main")]].concat());
    assert_eq!(urls(&read), ["/a.md", "/keep.tmp.md", "/sub/e.md"]);
    let drafts = folder.path().join("drafts");
    let source = SourceRecord::new(drafts.to_string_lossy());
    let read = super::read(&drafts, &source, &Reading::default()).unwrap();
    assert_eq!(read.documents.len(), 1, "an ignored folder can be given explicitly");
}

#[test]
fn without_a_base_url_a_page_has_a_file_url() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("my book/a.md", "# A\ntext")]);
    let path = folder.path().join("my book/a.md");
    let source = SourceRecord::new(path.to_string_lossy());
    let read = read(&path, &source, &Reading::default()).unwrap();
    let expected =
        format!("file://{}", path.canonicalize().unwrap().display()).replace("my book", "my%20book");
    assert_eq!(read.documents[0].url, expected);
}

#[test]
fn a_file_included_by_another_page_is_not_a_page() {
    let (read, _folder) = read_folder(&[
        ("book.adoc", "= Book\n\ninclude::parts/one.adoc[]\n\ninclude::parts/two.adoc[tag=x]\n"),
        ("parts/one.adoc", "== One\n\ninclude::deep.adoc[]\n"),
        ("parts/deep.adoc", "Deep words.\n"),
        ("parts/two.adoc", "= Two\n\n// tag::x[]\nWords.\n// end::x[]\n"),
        ("alone.adoc", "= Alone\n\nWords.\n"),
        ("round/a.adoc", "= A\n\ninclude::b.adoc[]\n"),
        ("round/b.adoc", "= B\n\ninclude::a.adoc[]\n"),
    ]);
    assert_eq!(urls(&read), ["/alone.html", "/book.html", "/parts/two.html", "/round/a.html"]);
    let warnings = warnings(&read);
    for part in ["one", "deep"] {
        let warning = format!("parts/{part}.adoc: included by book.adoc, so not a page of its own");
        assert!(warnings.contains(&warning), "{warnings:?}");
    }
}

#[test]
fn a_reference_to_another_page_shows_its_title() {
    let (read, _folder) = read_folder(&[
        ("index.rst", "Book\n====\n\nSee :ref:`gate` and :doc:`guide/one`.\n"),
        ("guide/one.rst", "One\n===\n\n.. _gate:\n\nThe gate\n--------\n\nText\n"),
    ]);
    assert_eq!(read.documents[0].sections[0].blocks[0].text, "See The gate and One.");
}

#[test]
fn docusaurus_is_detected_from_its_pages() {
    let kind = |files: &[(&str, &str)]| read_folder(files).0.kind;
    assert_eq!(kind(&[("a.md", "---\nsidebar_position: 1\n---\n# A\n")]), "Docusaurus");
    assert_eq!(kind(&[("a.md", "---\nslug: /x\n---\n# A\n"), ("b.md", ":::note\nB\n:::\n")]), "Docusaurus");
    assert_eq!(kind(&[("a.md", "---\nslug: /x\n---\n# A\n")]), "Plain");
    assert_eq!(kind(&[("a.md", "sidebar_position: 1\n\n:::note\nB\n:::\n")]), "Plain");
}

fn read_project(files: &[(&str, &str)]) -> (Read, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    let location = folder.path().to_string_lossy().into_owned();
    (read(folder.path(), &SourceRecord::new(location), &Reading::default()).unwrap(), folder)
}

#[test]
fn other_parts_of_a_docusaurus_project_are_reported() {
    let (read, folder) = read_project(&[
        ("docusaurus.config.js", "module.exports = { url: 'https://mill.dev', baseUrl: '/' };"),
        ("docs/a.md", "# A\ntext"),
        ("docs/blog/b.md", "# B\ntext"),
        ("blog/c.md", "# C\ntext"),
        ("versioned_docs/version-1.0/a.md", "# A\ntext"),
        ("i18n/fr/code.json", "{}"),
        ("src/pages/index.md", "# Home\n"),
    ]);
    let urls: Vec<_> = read.documents.iter().map(|document| document.url.as_str()).collect();
    assert_eq!(urls, ["https://mill.dev/docs/a", "https://mill.dev/docs/blog/b"]);
    let root = folder.path().canonicalize().unwrap();
    let told = |name: &str, what: &str, source: &str| {
        let source = root.join(source);
        format!(
            "{name}: skipped {what}: only docs/ is read; to include them, add {} as a separate source",
            source.display()
        )
    };
    assert_eq!(
        warnings(&read),
        [
            told("blog", "the blog", "blog"),
            told("versioned_docs", "older versions", "versioned_docs/version-<version>")
        ]
    );
}

#[test]
fn all_versions_and_locales_of_a_docusaurus_project_are_read() {
    let (read, folder) = read_project(&[
        ("docusaurus.config.js", "module.exports = { url: 'https://mill.dev', baseUrl: '/book/' };"),
        ("versions.json", "[\"1.0\"]"),
        ("docs/a.mdx", "import P from '@site/parts/p.md';\n\n# A\n\n<P />\n"),
        ("parts/p.md", "shared words"),
        ("versioned_docs/version-1.0/a.mdx", "import P from '@site/parts/p.md';\n\n# A\n\n<P />\n"),
        ("versioned_docs/version-1.0/guide/b.md", "# B\ntext"),
        ("i18n/fr/docusaurus-plugin-content-docs/version-1.0/guide/b.md", "# B\ntexte"),
        ("blog/c.md", "# C\ntext"),
    ]);
    let pages: Vec<_> = read
        .documents
        .iter()
        .map(|page| {
            let (version, locale) = (page.version.as_deref().unwrap(), page.locale.as_deref().unwrap());
            format!("{} {} {version} {locale} {}", page.id, page.url, page.module)
        })
        .collect();
    assert_eq!(
        pages,
        [
            "versioned_docs/version-1.0/a.mdx https://mill.dev/book/docs/a 1.0 en docs",
            "versioned_docs/version-1.0/guide/b.md https://mill.dev/book/docs/guide/b 1.0 en guide",
            "a.mdx https://mill.dev/book/docs/next/a current en docs",
            "i18n/fr/docusaurus-plugin-content-docs/version-1.0/guide/b.md https://mill.dev/book/fr/docs/guide/b 1.0 fr guide",
            "i18n/fr/docusaurus-plugin-content-docs/version-1.0/a.mdx https://mill.dev/book/fr/docs/a 1.0 fr docs",
        ]
    );
    assert!(read.documents[0].sections[0].blocks[0].text.contains("shared words"), "{:?}", read.documents[0]);
    assert_eq!((read.kind.as_str(), warnings(&read).len()), ("Docusaurus", 1), "{:?}", warnings(&read));
    let told = &read.released[0];
    assert_eq!((told.version.as_deref(), told.locale.as_deref()), (Some("1.0"), Some("en")));

    // One of its folders can be a source of its own, at the address that it has.
    let old = folder.path().join("versioned_docs/version-1.0");
    let read = super::read(&old, &SourceRecord::default(), &Reading::default()).unwrap();
    assert_eq!(read.documents[1].url, "https://mill.dev/book/docs/guide/b");
    assert_eq!(read.documents[1].version.as_deref(), Some("1.0"));
    let given = SourceRecord { version: Some("x".into()), ..SourceRecord::default() };
    let read = super::read(folder.path(), &given, &Reading::default()).unwrap();
    assert_eq!(read.documents.len(), 1, "only docs/ is read if the version is given");
}

#[test]
fn mkdocs_pages_use_the_site_url_of_mkdocs_yml() {
    let (read, _folder) =
        read_project(&[("mkdocs.yml", "site_url: https://mill.dev/book/\n"), ("docs/a.md", "# A\ntext")]);
    assert_eq!(read.documents[0].url, "https://mill.dev/book/a/");
    let (read, _folder) = read_project(&[("mkdocs.yml", "nav: [a\nb: {\n"), ("docs/a.md", "# A\ntext")]);
    assert!(warnings(&read)[0].starts_with("mkdocs.yml: not valid YAML"), "{:?}", warnings(&read));
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed_only_inside_the_source() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("private")).unwrap();
    std::fs::write(outside.path().join("private/diary.md"), "# Diary\n\nNobody reads this.\n").unwrap();
    std::fs::write(outside.path().join("secret.txt"), "root:x:0:0\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shared")).unwrap();
    std::fs::write(folder.path().join("shared/a.md"), "# A\n\nA page.\n").unwrap();
    symlink("shared", folder.path().join("also")).unwrap();
    symlink("shared/a.md", folder.path().join("b.md")).unwrap();
    symlink(outside.path().join("private"), folder.path().join("more")).unwrap();
    symlink(outside.path().join("secret.txt"), folder.path().join("passwords.txt")).unwrap();
    symlink("../../../../../../../etc/passwd", folder.path().join("shared/users.txt")).unwrap();
    let read = read(folder.path(), &SourceRecord::default(), &Reading::default()).unwrap();
    let mut ids: Vec<_> = read.documents.iter().map(|document| document.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["also/a.md", "b.md", "shared/a.md"]);
    let mut warned: Vec<_> = read.warnings.iter().map(|warning| warning.path.as_str()).collect();
    warned.sort_unstable();
    assert_eq!(warned, ["also/users.txt", "more", "passwords.txt", "shared/users.txt"]);
    // A link given explicitly as the source is followed.
    let link = folder.path().join("more");
    assert_eq!(super::read(&link, &SourceRecord::default(), &Reading::default()).unwrap().documents.len(), 1);
}
