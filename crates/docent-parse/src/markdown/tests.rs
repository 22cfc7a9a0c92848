//! Tests of each Markdown flavor.

use super::*;
use proptest::prelude::*;

fn render(source: &str, flavor: Flavor) -> String {
    let (_, parsed) = parse_markdown(source, flavor, &mut |_| None);
    let mut out = String::new();
    for section in parsed.sections {
        if let Some(heading) = section.heading {
            let anchor = heading.anchor.map_or(String::new(), |anchor| format!(" #{anchor}"));
            out.push_str(&format!("H{} {}{anchor}\n", heading.level, heading.text));
        }
        for block in section.blocks {
            out.push_str(&format!("[{:?}] {}\n", block.kind, block.text));
        }
    }
    out
}

fn check(source: &str, flavor: Flavor, expected: &str) {
    assert_eq!(render(source, flavor), expected);
}

#[test]
fn docusaurus_titles_have_no_anchor_but_count_as_duplicates() {
    check(
        "# Nodes\nHi.\n## Nodes\n### `create_node()` {#make}\n## Ünï 🚀 & more!\n",
        Flavor::Docusaurus,
        "H1 Nodes\n[Text] Hi.\nH2 Nodes #nodes-1\nH3 create_node() #make\nH2 Ünï 🚀 & more! #ünï---more\n",
    );
}

#[test]
fn mdbook_headings_all_have_anchors() {
    check(
        "# The Book\n## Using `?` {#question}\n## Why\n## Why\n",
        Flavor::MdBook,
        "H1 The Book #the-book\nH2 Using ? #question\nH2 Why #why\nH2 Why #why-1\n",
    );
}

#[test]
fn inline_markup_is_reduced_to_text() {
    check(
        "A **bold** [link](x.md) and `code`,\nnext *line*.\n",
        Flavor::Plain,
        "[Text] A bold link and `code`, next line.\n",
    );
}

#[test]
fn lists_keep_their_markers_and_nesting() {
    check(
        "Before:\n\n1. One\n   - a\n   - b\n2. Two\n\n   More of two.\n",
        Flavor::Plain,
        "[Text] Before:\n[Text] 1. One\n  - a\n  - b\n2. Two\n  More of two.\n",
    );
}

#[test]
fn code_in_a_list_is_a_separate_block() {
    check(
        "1. Run:\n   ```bash\n   ls -l\n     cd\n   ```\n2. Done\n",
        Flavor::Plain,
        "[Text] 1. Run:\n[Code] ```bash\nls -l\n  cd\n```\n[Text] 2. Done\n",
    );
}

#[test]
fn tables_stay_readable() {
    check(
        "| a | b |\n|---|---|\n| `x` | 1 \\| 2 |\n",
        Flavor::Plain,
        "[Table] | a | b |\n| --- | --- |\n| `x` | 1 \\| 2 |\n",
    );
}

#[test]
fn an_escaped_pipe_in_code_does_not_split_cells() {
    check(
        "| type |\n|---|\n| `string \\| number` |\n",
        Flavor::Plain,
        "[Table] | type |\n| --- |\n| `string \\| number` |\n",
    );
}

#[test]
fn admonitions_get_a_label() {
    check(
        ":::tip Try\nIt works.\n\n```sh\nls\n```\n:::\nAfter.\n",
        Flavor::Docusaurus,
        "[Admonition] Tip: Try\n[Admonition] It works.\n[Code] ```sh\nls\n```\n[Text] After.\n",
    );
}

#[test]
fn code_titles_are_kept_and_magic_comments_removed() {
    check(
        "```js title=\"a.js\" {1}\n// highlight-next-line\nlet a;\n```\n",
        Flavor::Docusaurus,
        "[Code] ```js title=\"a.js\"\nlet a;\n```\n",
    );
}

#[test]
fn mdbook_hidden_lines_of_rust_are_removed() {
    check(
        "```rust,ignore\n# use std::fmt;\nfn main() {}\n#\n```\n",
        Flavor::MdBook,
        "[Code] ```rust\nfn main() {}\n```\n",
    );
}

#[test]
fn adjacent_code_spans_are_merged() {
    check(
        "**`undefine`**`d` is `a` `b`\n\n| x |\n|---|\n| **`undefine`**`d` |\n",
        Flavor::Plain,
        "[Text] `undefined` is `a` `b`\n[Table] | x |\n| --- |\n| `undefined` |\n",
    );
}

#[test]
fn html_comments_are_removed_even_across_blocks() {
    check(
        "A.\n\n<!-- one\ntwo -->\n\nB <!-- three\nfour --> c.\n\n<!--\n# Five\n\nsix\n-->\nD.\n",
        Flavor::Plain,
        "[Text] A.\n[Text] B  c.\n[Text] D.\n",
    );
    check(
        "<div>\n<!-- one\n\n# Two\n\n- `three`\n\n| x |\n|---|\n| y |\n\nfour -->\n</div>\n\nAfter.\n",
        Flavor::MdBook,
        "[Text] After.\n",
    );
    check("    <!-- code\n    too -->\n", Flavor::Plain, "[Code] ```\n<!-- code\ntoo -->\n```\n");
}

#[test]
fn multi_line_tags_are_removed_and_words_stay_separate() {
    check(
        "<img\n  src=\"a.png\"\n  alt=\"b\">\n\n<p>one\ntwo</p>\n<p>three</p>\n",
        Flavor::Plain,
        "[Text] one two\nthree\n",
    );
}

#[test]
fn raw_html_keeps_its_text() {
    check(
        "<details>\n<summary>More</summary>\n\nHidden.\n\n</details>\nA<br/>b <kbd>Ctrl</kbd>\n",
        Flavor::Plain,
        "[Text] More\n[Text] Hidden.\n[Text] A b Ctrl\n",
    );
}

proptest! {
    #[test]
    fn no_input_panics(source in "\\PC*(\n[#>:`|<{ -]{0,4}\\PC{0,20}){0,12}") {
        for flavor in [Flavor::Docusaurus, Flavor::MdBook, Flavor::Plain] {
            parse_markdown(&source, flavor, &mut |_| None);
        }
    }
}

#[test]
fn links_to_objects_of_an_api_show_their_text() {
    let source = "A [`Decimal`][decimal.Decimal], [`int`][], [the model][pydantic.BaseModel] a[0][1] [a-z][0-9] [x][].\n";
    let rest = "a[0][1] [a-z][0-9] [x][].\n";
    check(source, Flavor::Plain, &format!("[Text] A `Decimal`, `int`, the model {rest}"));
    check(
        "See [Other page][other-page] or x[0][1].\n",
        Flavor::MkDocs,
        "[Text] See Other page or x[0][1].\n",
    );
}

#[test]
fn character_references_in_raw_html_are_text() {
    check(
        "<table><tr><td>a &lt; b &amp;&nbsp;&#39;c&#x27; &unknown; &</td></tr></table>\n",
        Flavor::Plain,
        "[Text] a < b & 'c' &unknown; &\n",
    );
}

#[test]
fn the_kind_of_a_quoted_note_is_its_label() {
    check(
        "> [!WARNING]\n> Stand *back*.\n\nAfter.\n\n> Said.\n",
        Flavor::Plain,
        "[Admonition] Warning:\n[Admonition] Stand back.\n[Text] After.\n[Admonition] Said.\n",
    );
}

fn figures(source: &str, flavor: Flavor) -> Vec<(String, String)> {
    let (_, parsed) = parse_markdown(source, flavor, &mut |_| None);
    let figures = parsed.sections.into_iter().flat_map(|section| section.figures);
    figures.map(|figure| (figure.caption, figure.image)).collect()
}

#[test]
fn images_with_words_are_figures() {
    let source = "# ![Logo](logo.png) Title\n\n![The graph\nof nodes](./graph.png)\n\nSee ![a `pump`](/pump.svg \"T\").\n\n\
                  ![](blank.png) ![x](data:image/png;base64,AAAA)\n";
    let expected = [("The graph of nodes", "./graph.png"), ("a `pump`", "/pump.svg")];
    let expected = expected.map(|(caption, image)| (caption.to_owned(), image.to_owned()));
    assert_eq!(figures(source, Flavor::Plain), expected);
    assert_eq!(figures(source, Flavor::Docusaurus), expected);
    let html = "<figure>\n  <img src='a/wheel.png' alt='A wheel'>\n  <figcaption>The &lt;big&gt; wheel</figcaption>\n</figure>\n";
    assert_eq!(figures(html, Flavor::Plain), [("The <big> wheel".to_owned(), "a/wheel.png".to_owned())]);
}
