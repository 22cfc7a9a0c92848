//! Tests of the reStructuredText parser.

use super::super::references::Titles;
use super::*;

fn parse(source: &str) -> Parsed {
    parse_rst(source, References::default(), &mut |name| match name {
        "part.rst" => Some("Part\n----\n\n.. include:: sub/deep.rst\n".to_owned()),
        "sub/deep.rst" => Some("Deep.\n\n.. include:: ../part.rst\n\n.. include:: deep.rst\n".to_owned()),
        "code.py" => Some("a\n# start\n  b\n    c\n# end\nd\n".to_owned()),
        _ => None,
    })
}

/// Compares one line per heading (`##` for its level, `#id` for its anchor) and one entry per block.
fn check(source: &str, expected: &str) {
    let mut out = String::new();
    for section in parse(source).sections {
        if let Some(heading) = &section.heading {
            let anchor = heading.anchor.as_deref().unwrap_or_default();
            out.push_str(&format!("{} {} #{anchor}\n", "#".repeat(heading.level.into()), heading.text));
        }
        for block in &section.blocks {
            out.push_str(&format!("[{:?}] {}\n", block.kind, block.text));
        }
    }
    assert_eq!(out, expected);
}

#[test]
fn title_levels_follow_the_order_of_adornments() {
    check(
        "=======\n Title\n=======\n\nA\n---\n\nB\n~~~\n\nC\n---\n\n1. D\n----\n\n-----\n\nText\n",
        "# Title #title\n## A #a\n### B #b\n## C #c\n## 1. D #d\n[Text] Text\n",
    );
    assert_eq!(parse("The ``x`` *page*\n=====\n").title.as_deref(), Some("The x page"));
}

#[test]
fn references_and_footnotes_use_up_numbered_ids() {
    check(
        ".. _setup:\n\nSetup\n=====\n\nSee `here <u>`_, `here <u>`_ and [1]_.\n\nSetup\n-----\n\n.. [1] Note.\n\nSetup\n-----\n",
        "# Setup #setup\n\
         [Text] See here, here and [1].\n\
         ## Setup #id4\n\
         [Text] [1] Note.\n\
         ## Setup #id6\n",
    );
}

#[test]
fn a_label_replaces_a_numbered_anchor() {
    check(
        "A\n=\n\n.. _one:\n.. _two:\n\nA\n-\n\n.. _three:\n\nB\n-\n\n.. _four:\n\nText.\n\nA\n-\n\n.. _five: https://x.org\n\nA\n-\n",
        "# A #a\n## A #two\n## B #b\n[Text] Text.\n## A #id2\n## A #id3\n",
    );
}

#[test]
fn inline_markup_is_reduced_to_text() {
    check(
        "A **bold** *it* ``co de`` and ``a`b``,\n:ref:`Title <x>` :doc:`../a/b` :term:`node`\n\
         :py:class:`~pkg.mod.Name` :func:`!run` :meth:`go <x.go>` :kbd:`Ctrl-C` `link <http://a_b>`__ `ref`_ word_\n\
         my_var __init__ 2*3*4 \"*\" \\*args |name| |none| ``x``\\ s\n\n.. |name| replace:: the *text*\n",
        "[Text] A bold it `co de` and ``a`b``, Title b node `Name` `run` `go` `Ctrl-C` link ref word my_var __init__ \
         2*3*4 \"*\" *args the text none `x`s\n",
    );
}

#[test]
fn a_reference_without_text_shows_the_title_of_its_target() {
    let mut titles = Titles::default();
    titles.add("guide/install.rst", ".. _setup:\n.. _Old  Setup:\n\nInstall ``ros2``\n================\n");
    titles.add("start.md", "# Start here\n");
    let source = "See :ref:`setup`, :ref:`old setup`, :ref:`own`, :ref:`sizes`, :ref:`loop`, :ref:`said <setup>`, :doc:`install`,\n\
                  :doc:`/start`, :doc:`../none/x`, :ref:`none`.\n\n.. _own:\n\n=====\nBelow\n=====\n\n.. _sizes:\n\n\
                  .. list-table:: All sizes\n\n   * - 1\n\n.. _loop:\n\n.. figure:: a.png\n   :alt: x\n\n   The loop.\n";
    let parsed = parse_rst(source, References::new("guide/a.rst", &titles), &mut |_| None);
    assert_eq!(
        parsed.sections[0].blocks[0].text,
        "See Install ros2, Install ros2, Below, All sizes, The loop., said, Install ros2, Start here, x, none."
    );
}

#[test]
fn code_is_fenced_and_dedented() {
    check(
        "Run::\n\n    a\n      b\n\n.. code-block:: bash\n   :linenos:\n   :caption: run.sh\n\n   ls\n\n     ```\n\n\
         >>> 1 + 1\n2\n\n.. code::\n\n   x\n\n.. math:: a^2\n\n::\n\n> quoted\n> too\n",
        "[Text] Run:\n[Code] ```\na\n  b\n```\n[Text] run.sh:\n[Code] ````bash\nls\n\n  ```\n````\n\
         [Code] ```python\n>>> 1 + 1\n2\n```\n[Code] ```\nx\n```\n[Code] ```\na^2\n```\n[Code] ```\n> quoted\n> too\n```\n",
    );
}

#[test]
fn notes_and_tabs_get_a_label() {
    check(
        ".. note:: One\n   two.\n\n   Three.\n\n.. Warning::\n   :class: x\n\n   .. code-block:: c\n\n      int a;\n\n\
         .. admonition:: My *title*\n\n   * a\n\n.. tabs::\n\n   .. group-tab:: Linux\n\n      Text\n",
        "[Admonition] Note: One two.\n[Admonition] Three.\n[Admonition] Warning:\n[Code] ```c\nint a;\n```\n\
         [Admonition] My title:\n[Admonition] - a\n[Text] Linux:\n[Text] Text\n",
    );
}

#[test]
fn lists_nest_and_code_inside_them_is_a_separate_block() {
    check(
        "* one\n  more\n\n  * a\n  * b\n\n* two::\n\n    x\n\n  Then\n* three\n\n#. first\n#. second\n\nb) bee\n\nA. Name\nwent.\n",
        "[Text] - one more\n  - a\n  - b\n- two:\n[Code] ```\nx\n```\n[Text] Then\n- three\n\
         [Text] 1. first\n2. second\nb) bee\n[Text] A. Name went.\n",
    );
}

#[test]
fn terms_fields_and_options_precede_their_text() {
    check(
        ":orphan:\n\nterm\n  Its text.\n\n  More.\n\nother : type\n  Text.\n\n:field: value\n  goes on\n\n-v, --verbose  Say more.\n\n| line\n| block\n",
        "[Text] term: Its text.\n[Text] More.\n[Text] other (type): Text.\n[Text] field: value goes on\n\
         [Text] `-v, --verbose`: Say more.\n[Text] line\nblock\n",
    );
}

#[test]
fn the_name_of_a_field_may_be_a_literal() {
    check(
        "Text.\n\n:``name``: What it is\n  called.\n:``a:b``: Both.\n\n:ref:`x <y>`: is no field.\n",
        "[Text] Text.\n[Text] `name`: What it is called.\n[Text] `a:b`: Both.\n[Text] x: is no field.\n",
    );
}

#[test]
fn a_word_wider_than_its_column_is_not_split() {
    check(
        "====  ====\nname  b\n====  ====\nundefined 1\nx     y\n====  ====\n",
        "[Table] | name | b |\n| --- | --- |\n| undefined | 1 |\n| x | y |\n",
    );
}

#[test]
fn grid_and_simple_tables_are_parsed() {
    check(
        "+---+-----+\n| a | b   |\n+===+=====+\n| 1 | two |\n|   | é   |\n+---+-----+\n| wide    |\n+---+-----+\n\n\
         ====  ====\nx     y\n====  ====\n      0\n1     ``z``\n      on\n2     w\n====  ====\n",
        "[Table] | a | b |\n| --- | --- |\n| 1 | two é |\n| wide |  |\n\
         [Table] | x | y |\n| --- | --- |\n|  | 0 |\n| 1 | `z` on |\n| 2 | w |\n",
    );
}

#[test]
fn list_tables_and_csv_tables_are_parsed() {
    check(
        ".. list-table:: Sizes\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - two\n       lines\n\n\
         .. csv-table::\n   :header: \"x\", y\n\n   \"1, 2\", `z`\n",
        "[Text] Sizes:\n[Table] | a | b |\n| --- | --- |\n| 1 | two lines |\n[Table] | x | y |\n| --- | --- |\n| 1, 2 | z |\n",
    );
}

#[test]
fn only_declared_header_rows_of_a_list_table_are_headers() {
    let rows = "\n   * - a\n     - b\n   * - 1\n     - 2\n";
    let table = |options: &str| format!(".. list-table::\n{options}{rows}");
    let headed = "[Table] | a | b |\n| --- | --- |\n| 1 | 2 |\n";
    check(&table("   :header-rows: 1\n   :stub-columns: 1\n"), headed);
    check(&table("   :header-rows: 2\n"), headed);
    let bare = "[Table] |  |  |\n| --- | --- |\n| a | b |\n| 1 | 2 |\n";
    check(&table("   :header-rows: 0\n   :stub-columns: 1\n"), bare);
    check(&table("   :widths: 1 2\n"), bare);
}

#[test]
fn comments_and_hidden_directives_are_not_shown() {
    check(
        ".. A comment\n   with more\n\n.. toctree::\n   :maxdepth: 1\n\n   page\n\n.. contents:: On this page\n   :local:\n\n\
         .. image:: a.png\n   :alt: gone\n\n.. figure:: b.png\n   :align: center\n\n   A caption.\n\n.. raw:: html\n\n   <b>\n\n\
         __ http://x\n\n.. only:: html\n\n   Shown\n   -----\n\nEnd.\n",
        "[Text] A caption.\n# Shown #shown\n[Text] End.\n",
    );
}

#[test]
fn signatures_and_unknown_directives_keep_their_text() {
    check(
        ".. py:function:: run(x)\n              run(y)\n   :module: m\n\n   Runs it.\n\n.. autoclass:: a.B\n   :members:\n\n\
         .. versionadded:: 3.1\n   The flag.\n\n.. strange:: *arg*\n   :opt: 1\n\n   Body.\n\nText\n.. note:: No blank line.\n",
        "[Text] `run(x)`\n[Text] `run(y)`\n[Text] Runs it.\n[Text] `a.B`\n[Text] New in version 3.1: The flag.\n\
         [Text] arg\n[Text] Body.\n[Text] Text\n[Admonition] Note: No blank line.\n",
    );
}

#[test]
fn includes_are_expanded_and_cycles_give_a_warning() {
    let source = "T\n=\n\n.. include:: part.rst\n\n.. literalinclude:: code.py\n   :language: python\n   \
                  :start-after: # start\n   :end-before: # end\n\n.. literalinclude:: code.py\n   :lines: 1, 4-\n\n.. include:: no.rst\n";
    check(
        source,
        "# T #t\n## Part #part\n[Text] Deep.\n[Code] ```python\nb\n  c\n```\n[Code] ```\na\n    c\n# end\nd\n```\n",
    );
    assert_eq!(
        parse(source).warnings,
        [
            "included file includes itself: ../part.rst",
            "included file includes itself: deep.rst",
            "included file not found: no.rst"
        ]
    );
}

#[test]
fn part_of_a_file_can_be_included_by_line_marker_or_name() {
    let shown = |options: &str| {
        let file = "import a\n\n@cached\nclass Gate:\n    def lift(self):\n        return 1\n\n    def lifted(self):\n        pass\n\nlast = 2\n";
        let source = format!(".. literalinclude:: gate.py\n{options}");
        let parsed = parse_rst(&source, References::default(), &mut |_| Some(file.to_owned()));
        parsed.sections[0].blocks[0].text.trim_matches(['`', '\n']).to_owned()
    };
    assert_eq!(shown("   :pyobject: Gate.lift\n"), "def lift(self):\n    return 1");
    assert!(shown("   :pyobject: Gate\n").starts_with("@cached\nclass Gate:"));
    assert!(shown("   :pyobject: Gate\n").ends_with("        pass"));
    assert_eq!(shown("   :start-at: def lifted\n   :end-at: pass\n"), "def lifted(self):\n    pass");
    assert_eq!(shown("   :start-after: @cached\n   :end-before: def lift\n"), "class Gate:");
    assert_eq!(shown("   :start-line: -1\n"), "last = 2");
    assert_eq!(shown("   :end-line: 1\n"), "import a");
}

#[test]
fn a_toctree_lists_pages() {
    let source = "T\n=\n\n.. toctree::\n   :maxdepth: 1\n   :caption: Part\n\n   intro\n   Setup <install/linux>\n   /api/index.rst\n\n   \
                  https://x.org\n   self\n   guide/*\n\nText\n\n.. toctree::\n\n   last\n";
    assert_eq!(toctree(source), ["intro", "install/linux", "/api/index", "guide/*", "last"]);
}

#[test]
fn the_text_of_an_unknown_directive_is_kept_with_a_warning() {
    let source = ".. strange:: One\n\n   Text.\n\n.. strange:: Two\n   Text.\n\n.. note:: Three\n";
    check(source, "[Text] One\n[Text] Text.\n[Text] Two Text.\n[Admonition] Note: Three\n");
    assert_eq!(parse(source).warnings, ["unknown directive; only its text is kept: strange"]);
}

#[test]
fn an_unknown_directive_without_content_only_marks_a_place() {
    let source = "Settings.\n\n.. setting:: LIMIT\n\nLIMIT\n-----\n\nThe most.\n";
    check(source, "[Text] Settings.\n# LIMIT #limit\n[Text] The most.\n");
    assert!(parse(source).warnings.is_empty());
}

#[test]
fn code_that_an_extension_also_runs_is_code() {
    let source = ".. click:example::\n\n   import x\n\n.. click:run::\n\n   invoke(x)\n";
    check(source, "[Code] ```\nimport x\n```\n");
}

#[test]
fn deeply_nested_or_malformed_text_is_still_parsed() {
    let deep: String = (0..400).map(|depth| format!("{}- a\n\n", " ".repeat(2 * depth))).collect();
    assert!(!parse(&deep).sections.is_empty());
    for source in [
        "", "..", ".. ", "::", "====", "``", "`", "*", ":a:`", "|", "+--+", "== ==", "\t\u{b}", "- ", "é\n=",
        ".. x::",
    ] {
        parse(source);
    }
}

#[test]
fn references_to_a_gallery_show_the_file_of_the_example() {
    check(
        "* :ref:`sphx_glr_auto_examples_svm_plot_iris.py`, :ref:`sphx_glr_other`\n",
        "[Text] - plot_iris.py, sphx_glr_other\n",
    );
}

#[test]
fn tabs_may_start_directly_below_their_directive() {
    check(
        ".. tabs::\n .. code-tab:: gdscript GDScript\n\n    func a():\n        pass\n\n .. code-tab:: csharp\n\n    A();\n",
        "[Text] GDScript:\n[Code] ```gdscript\nfunc a():\n    pass\n```\n[Code] ```csharp\nA();\n```\n",
    );
    check(
        ".. code-block:: rst\n   :caption: Try\n   .. note::\n      x\n",
        "[Text] Try:\n[Code] ```rst\n.. note::\n   x\n```\n",
    );
}

#[test]
fn figures_have_the_words_of_their_caption() {
    let source = ".. figure:: img/wheel.png\n   :alt: A wheel\n\n   The *big* wheel\n   turns.\n\n   It is old.\n\n\
                  .. figure:: pond.png\n   :alt: The pond\n\n.. image:: plain.png\n";
    let parsed = parse_rst(source, References::default(), &mut |_| None);
    let figures: Vec<_> = parsed.sections.iter().flat_map(|section| &section.figures).collect();
    let shown: Vec<_> = figures.iter().map(|one| (one.caption.as_str(), one.image.as_str())).collect();
    assert_eq!(shown, [("The big wheel turns.", "img/wheel.png"), ("The pond", "pond.png")]);
}

#[test]
fn a_mermaid_diagram_is_code() {
    let source = ".. mermaid::\n   :caption: The states\n\n   graph TD\n     A --> B\n";
    let parsed = parse_rst(source, References::default(), &mut |_| None);
    assert_eq!(crate::shown(&parsed), "[Text] The states:\n[Code] ```mermaid\ngraph TD\n  A --> B\n```\n");
}
