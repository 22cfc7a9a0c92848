//! Tests of the AsciiDoc parser. The expected ids were checked against Asciidoctor's rules.

use super::*;
use crate::references::Titles;
use crate::shown;

fn parse(source: &str) -> Parsed {
    parse_asciidoc(source, References::default(), &mut |name| match name {
        "part.adoc" => Some("= Part\n\nWords.\n\ninclude::sub/deep.adoc[]\n".to_owned()),
        "sub/deep.adoc" => Some("Deep.\n\ninclude::../part.adoc[]\n\ninclude::deep.adoc[]\n".to_owned()),
        "code.py" => Some("a\n# tag::x[]\n  b\n    c\n# end::x[]\nd\n".to_owned()),
        _ => None,
    })
}

fn check(source: &str, expected: &str) {
    assert_eq!(shown(&parse(source)), expected);
}

#[test]
fn titles_get_asciidoctors_ids() {
    check(
        "= The Book\nA. Author <a@b.c>\nv1.0, 2024\n:name: value\n\nFirst.\n\n== Hello, World!\n\n== Hello, World!\n\n=== `run()` it: C++ & C#?\n\n\
         == What's new in 2.0?\n\n== Über Größe\n\n== A -- B\n\n== foo_bar-baz.qux\n\n[#own]\n== Named\n\n[[old]]\n== Anchored\n\n== Inline [[here]]\n",
        "# The Book\n[Text] First.\n## Hello, World! #_hello_world\n## Hello, World! #_hello_world_2\n\
         ### run() it: C++ & C#? #_run_it_c_c\n## What's new in 2.0? #_whats_new_in_2_0\n## Über Größe #_über_größe\n## A -- B #_ab\n\
         ## foo_bar-baz.qux #_foo_bar_baz_qux\n## Named #own\n## Anchored #old\n## Inline #here\n",
    );
    assert_eq!(parse("= The `x` *page*\n").title.as_deref(), Some("The x page"));
}

#[test]
fn a_page_can_set_the_id_prefix_and_separator() {
    check(
        ":idprefix:\n:idseparator: -\n\n== Hello World\n\n== Hello World\n\n== --version\n",
        "## Hello World #hello-world\n## Hello World #hello-world-2\n## --version #version\n",
    );
    check(":idprefix: sec-\n:idseparator:\n\n== Hello World\n", "## Hello World #sec-helloworld\n");
}

#[test]
fn titles_may_be_underlined() {
    check(
        "Title\n=====\n\nSection\n-------\n\nText\n\nSub\n~~~\n",
        "# Title\n## Section #_section\n[Text] Text\n### Sub #_sub\n",
    );
}

#[test]
fn inline_markup_is_reduced_to_text() {
    check(
        ":product: Docent\n\nA *bold* _it_ `co de` **b**old [.role]#marked# {product} {unknown} \\{product} H~2~O E=mc^2^ +*raw*+ 2*3*4 snake_case_name\n\
         https://x.org[the site] https://y.org and link:a.html[Page,window=_blank] xref:b.adoc#c[See c] <<_setup>> <<x,there>> xref:guide/install.adoc[]\n\
         kbd:[Ctrl+C] menu:File[Save] footnote:[A note.] image:a.png[] \"`quoted`\" ((term))(((hidden))) `+{raw}+` [[spot]]end +\nnext line\n",
        "[Text] A bold it `co de` bold marked Docent {unknown} {product} H2O E=mc2 *raw* 2*3*4 snake_case_name \
         the site https://y.org and Page See c setup there install \
         `Ctrl+C` File > Save  (A note.)  \"quoted\" term `{raw}` end\nnext line\n",
    );
}

#[test]
fn a_reference_without_text_shows_the_title_of_its_target() {
    let mut titles = Titles::default();
    titles.add("b/other.adoc", "= Other `page`\n\n== Hello, World!\n\n[#own]\n== Named\n");
    let source = "See <<first>>, <<_second_part>>, xref:first[], <<sizes>>, <<none_such>>, <<first,said>>, xref:b/other.adoc[], \
                  xref:b/other.adoc#_hello_world[], <<b/other#own>>, xref:b/none.adoc[].\n\n\
                  [[first]]\n== First *one*\n\n== Second part\n\n[[sizes]]\n.All sizes\n|===\n|a\n|===\n";
    let parsed = parse_asciidoc(source, References::new("a.adoc", &titles), &mut |_| None);
    assert_eq!(
        parsed.sections[0].blocks[0].text,
        "See First one, Second part, First one, All sizes, none such, said, Other page, Hello, World!, Named, none."
    );
}

#[test]
fn only_files_included_as_a_whole_are_listed() {
    let source = "include::part.adoc[leveloffset=+1]\n\n----\ninclude::code.py[]\n----\n\ninclude::code.py[tag=x]\n\nifdef::off[]\ninclude::sub/deep.adoc[]\nendif::[]\n";
    let mut load = |name: &str| match name {
        "part.adoc" => Some("include::sub/deep.adoc[]\n".to_owned()),
        "code.py" | "sub/deep.adoc" => Some("x".to_owned()),
        _ => None,
    };
    assert_eq!(included(source, &mut load), ["part.adoc", "sub/deep.adoc"]);
}

#[test]
fn code_keeps_its_lines() {
    check(
        ".run.sh\n[source,bash]\n----\nls -l # <1>\n\n  cd {x}\n----\n<1> Lists.\n\n[,ruby]\n----\nputs <1>\n----\n\n....\nliteral\n  text\n....\n\n indented\n   more\n\n```js\nlet a;\n```\n\n[source,python,subs=\"attributes+\"]\nprint(1)\n\n[listing]\nx\n",
        "[Text] run.sh:\n[Code] ```bash\nls -l (1)\n\n  cd {x}\n```\n[Text] 1. Lists.\n[Code] ```ruby\nputs (1)\n```\n\
         [Code] ```\nliteral\n  text\n```\n[Code] ```\nindented\n  more\n```\n[Code] ```js\nlet a;\n```\n\
         [Code] ```python\nprint(1)\n```\n[Code] ```\nx\n```\n",
    );
}

#[test]
fn lists_nest_and_blocks_are_attached() {
    check(
        ".To do\n* one\ngoes on\n** a\n** b\n* two\n+\n----\ncode\n----\n+\nMore of two.\n\n. first\n.. inner\n. second\n\nAfter.\n\nterm:: Its text.\nother::\n  Below.\n  On.\nlast::\n* x\n\n3. three\n4. four\n",
        "[Text] To do:\n[Text] - one goes on\n  - a\n  - b\n- two\n[Code] ```\ncode\n```\n[Text] More of two.\n  1. first\n    1. inner\n  2. second\n\
         [Text] After.\n[Text] term: Its text.\n[Text] other: Below. On.\n[Text] last:\n[Text] - x\n  3. three\n  4. four\n",
    );
}

#[test]
fn notes_get_a_label() {
    check(
        "NOTE: Take care\nof it.\n\n[WARNING]\n.Hot\n====\nOne.\n\n* a\n====\n\n[TIP]\nShort.\n\n[quote, Ada, Notes]\n____\nWords.\n____\n\n****\nAside.\n****\n",
        "[Admonition] Note: Take care of it.\n[Admonition] Warning: Hot:\n[Admonition] One.\n[Admonition] - a\n[Admonition] Tip: Short.\n\
         [Text] Words.\n[Text] — Ada, Notes\n[Text] Aside.\n",
    );
}

#[test]
fn tables_stay_readable() {
    check(
        ".Sizes\n[cols=\"1,2a\",options=\"header\"]\n|===\n|Name |Size\n\n|`a`\n|1\nmore\n2+|wide\n|x \\| y |*z*\n|===\n\n|===\n|h1 |h2\n\n|1 |2\n|===\n\n,===\na,\"b, c\"\n,===\n",
        "[Text] Sizes:\n[Table] | Name | Size |\n| --- | --- |\n| `a` | 1 more |\n| wide |  |\n| x \\| y | z |\n\
         [Table] | h1 | h2 |\n| --- | --- |\n| 1 | 2 |\n[Table] |  |  |\n| --- | --- |\n| a | b, c |\n",
    );
}

#[test]
fn comments_and_conditions() {
    check(
        ":on:\n:version: 2\n\n// gone\n////\ngone\n////\n\nifdef::on[]\nShown.\nendif::[]\n\nifdef::off[]\nGone.\nifdef::on[]\nGone too.\nendif::[]\nendif::off[]\n\n\
         ifndef::off[Line.]\n\nifeval::[{version} > 1]\nNew.\nendif::[]\n\nifdef::backend-html5[]\nWeb.\nendif::[]\n\ntoc::[]\n\nimage::a.png[A graph]\n\n++++\n<b>raw</b>\n++++\n\n'''\n\nEnd.\n",
        "[Text] Shown.\n[Text] Line.\n[Text] New.\n[Text] Web.\n[Text] A graph\n[Text] End.\n",
    );
}

#[test]
fn includes_are_expanded_and_cycles_give_a_warning() {
    let source = "= T\n\ninclude::part.adoc[leveloffset=+1]\n\n[source,python]\n----\ninclude::code.py[tag=x,indent=0]\n----\n\n----\ninclude::code.py[lines=1;6..-1]\n----\n\ninclude::no.adoc[]\n\ninclude::https://x.org/a.adoc[]\n\nstrange::thing[]\n";
    check(
        source,
        "# T\n## Part #_part\n[Text] Words.\n[Text] Deep.\n[Code] ```python\nb\n  c\n```\n[Code] ```\na\nd\n```\n",
    );
    assert_eq!(
        parse(source).warnings,
        [
            "included file includes itself: ../part.adoc",
            "included file includes itself: deep.adoc",
            "included file not found: no.adoc",
            "includes from URLs are not supported: https://x.org/a.adoc",
            "unknown block macro: strange",
        ]
    );
}

#[test]
fn attributes_cannot_expand_a_page_without_limit() {
    let mut source = ":a0: words words words\n".to_owned();
    for number in 1..40 {
        source.push_str(&format!(":a{number}: {{a{}}}{{a{}}}\n", number - 1, number - 1));
    }
    source.push_str(&"{a39} ".repeat(10_000));
    let size: usize = parse(&source)
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .map(|block| block.text.len())
        .sum();
    assert!(size < 4 << 20, "{size}");
}

#[test]
fn deeply_nested_or_malformed_text_is_still_parsed() {
    let deep: String = (4..400).map(|length| format!("{}\n", "=".repeat(length))).collect();
    parse(&(deep + "deep"));
    let marks = "*a _b `c ".repeat(20_000);
    assert!(!parse(&marks).sections.is_empty());
    for source in [
        "",
        "=",
        "= ",
        "==",
        "----",
        "|===",
        "|===\n|",
        "[",
        "[]",
        "[[",
        "[[]]",
        "*",
        "* ",
        "::",
        "a::",
        "+",
        "`",
        "``",
        "<<",
        "<<>>",
        "<1>",
        ":a",
        ":a:",
        ".",
        "..",
        ".t",
        "////",
        "include::[]",
        "ifdef::[]",
        "endif::[]",
        "ifeval::[]",
        "\\",
        "{",
        "{}",
        "é\n=",
        "image::[]",
        "((",
        "(((",
        "a\n-",
    ] {
        parse(source);
        parse(&format!("x\n{source}\n{source}y"));
    }
}
