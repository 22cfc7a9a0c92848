//! reStructuredText as Sphinx reads it becomes sections: good enough to search and to cite.
//!
//! No directive is executed. Those that show their content are read through, those that
//! show nothing are left out, and an unknown one keeps its words.
//!
//! Invariant: everything that takes an id on the published page takes it in the order in
//! which docutils hands them out, so that the anchors of headings are those of the site.

mod block;
mod directive;
mod inline;
mod lines;
mod table;

use std::collections::HashMap;

use super::anchors::{AnchorStyle, Anchors};
use super::include::Includes;
use super::output::Output;
use crate::document::Parsed;

/// The sections of a page.
///
/// `load` returns the text of a file named by an include, relative to this page; a name
/// that starts with `/` is relative to the root of the book.
pub fn parse_rst(source: &str, load: &mut dyn FnMut(&str) -> Option<String>) -> Parsed {
    let mut parser = Parser {
        load,
        output: Output::default(),
        anchors: Anchors::new(AnchorStyle::Sphinx),
        title: None,
        warnings: Vec::new(),
        adornments: Vec::new(),
        substitutions: HashMap::new(),
        highlight: String::new(),
        includes: Includes::default(),
        label: None,
    };
    parser.text(source, Place { depth: 0, sections: true });
    Parsed { title: parser.title, sections: parser.output.finish(), warnings: parser.warnings }
}

/// The pages that the tables of contents of a page name, in their order: names without
/// extensions, relative to the page or, with a leading `/`, to the root; globs as they are.
pub fn toctree(source: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() != ".. toctree::" {
            continue;
        }
        let inside = |next: &&str| next.trim().is_empty() || next.len() - next.trim_start().len() > indent;
        while let Some(entry) = lines.next_if(inside) {
            let entry = entry.trim();
            // `Title <page>` names the page otherwise than itself.
            let name = entry
                .strip_suffix('>')
                .and_then(|rest| rest.rsplit_once('<'))
                .map_or(entry, |(_, name)| name);
            if !name.is_empty() && !name.starts_with(':') && !name.contains("://") && name != "self" {
                entries.push(name.trim_end_matches(".rst").to_owned());
            }
        }
    }
    entries
}

/// What is known while a page is read.
struct Parser<'load> {
    load: &'load mut dyn FnMut(&str) -> Option<String>,
    output: Output,
    anchors: Anchors,
    title: Option<String>,
    warnings: Vec<String>,
    /// The styles of section titles, outermost first: the sign, and whether it stands above too.
    adornments: Vec<(char, bool)>,
    substitutions: HashMap<String, String>,
    /// The language of literal blocks that do not name theirs.
    highlight: String,
    includes: Includes,
    /// The id of the target just above, which is also one of a heading that follows.
    label: Option<String>,
}

/// Where a body of text stands.
#[derive(Clone, Copy)]
struct Place {
    /// How many bodies it is inside.
    depth: usize,
    /// Titles open sections here; inside a list or a note they are only words.
    sections: bool,
}

impl Place {
    /// Inside an element of this body.
    fn inside(self) -> Self {
        Self { depth: self.depth + 1, sections: false }
    }

    /// Inside an element that does not show, such as a condition.
    fn through(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl Parser<'_> {
    /// Reads a whole file.
    fn text(&mut self, source: &str, place: Place) {
        let source = lines::spaced(source);
        let lines: Vec<&str> = source.lines().map(str::trim_end).collect();
        self.collect_substitutions(&lines);
        self.blocks(&lines, place);
    }

    /// Definitions may follow their use.
    fn collect_substitutions(&mut self, lines: &[&str]) {
        for (number, line) in lines.iter().enumerate() {
            let Some((name, definition)) =
                line.trim_start().strip_prefix(".. |").and_then(|rest| rest.split_once("| "))
            else {
                continue;
            };
            let Some(text) = definition.trim_start().strip_prefix("replace::") else { continue };
            let mut words = vec![text.trim()];
            let more =
                lines[number + 1..].iter().take_while(|next| lines::indent(next) > lines::indent(line));
            words.extend(more.map(|next| next.trim()));
            self.substitutions.insert(name.to_lowercase(), words.join(" "));
        }
    }

    /// The words of a text; its targets and references take their ids.
    fn words(&mut self, text: &str) -> String {
        let mut targets = Vec::new();
        let words = inline::words(text, &self.substitutions, &mut targets);
        for target in targets {
            self.anchors.next(&target, None);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Parsed {
        parse_rst(source, &mut |name| match name {
            "part.rst" => Some("Part\n----\n\n.. include:: sub/deep.rst\n".to_owned()),
            "sub/deep.rst" => Some("Deep.\n\n.. include:: ../part.rst\n\n.. include:: deep.rst\n".to_owned()),
            "code.py" => Some("a\n# start\n  b\n    c\n# end\nd\n".to_owned()),
            _ => None,
        })
    }

    /// One line a heading, `##` its level and `#id` its anchor; one entry a block.
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
    fn titles_take_their_level_from_the_order_of_their_signs() {
        check(
            "=======\n Title\n=======\n\nA\n---\n\nB\n~~~\n\nC\n---\n\n1. D\n----\n\n-----\n\nText\n",
            "# Title #title\n## A #a\n### B #b\n## C #c\n## 1. D #d\n[Text] Text\n",
        );
        assert_eq!(parse("The ``x`` *page*\n=====\n").title.as_deref(), Some("The x page"));
    }

    #[test]
    fn whatever_takes_an_id_before_a_heading_counts() {
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
    fn a_label_is_the_anchor_of_a_heading_that_would_only_have_a_number() {
        check(
            "A\n=\n\n.. _one:\n.. _two:\n\nA\n-\n\n.. _three:\n\nB\n-\n\n.. _four:\n\nText.\n\nA\n-\n\n.. _five: https://x.org\n\nA\n-\n",
            "# A #a\n## A #two\n## B #b\n[Text] Text.\n## A #id2\n## A #id3\n",
        );
    }

    #[test]
    fn inline_markup_is_reduced_to_words() {
        check(
            "A **bold** *it* ``co de`` and ``a`b``,\n:ref:`Title <x>` :doc:`../a/b` :term:`node`\n\
             :py:class:`~pkg.mod.Name` :func:`!run` :meth:`go <x.go>` :kbd:`Ctrl-C` `link <http://a_b>`__ `ref`_ word_\n\
             my_var __init__ 2*3*4 \"*\" \\*args |name| |none| ``x``\\ s\n\n.. |name| replace:: the *text*\n",
            "[Text] A bold it `co de` and ``a`b``, Title b node `Name` `run` `go` `Ctrl-C` link ref word my_var __init__ \
             2*3*4 \"*\" *args the text none `x`s\n",
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
    fn notes_are_named_and_tabs_labelled() {
        check(
            ".. note:: One\n   two.\n\n   Three.\n\n.. Warning::\n   :class: x\n\n   .. code-block:: c\n\n      int a;\n\n\
             .. admonition:: My *title*\n\n   * a\n\n.. tabs::\n\n   .. group-tab:: Linux\n\n      Text\n",
            "[Admonition] Note: One two.\n[Admonition] Three.\n[Admonition] Warning:\n[Code] ```c\nint a;\n```\n\
             [Admonition] My title:\n[Admonition] - a\n[Text] Linux:\n[Text] Text\n",
        );
    }

    #[test]
    fn lists_nest_and_code_inside_them_stands_alone() {
        check(
            "* one\n  more\n\n  * a\n  * b\n\n* two::\n\n    x\n\n  Then\n* three\n\n#. first\n#. second\n\nb) bee\n\nA. Name\nwent.\n",
            "[Text] - one more\n  - a\n  - b\n- two:\n[Code] ```\nx\n```\n[Text] Then\n- three\n\
             [Text] 1. first\n2. second\nb) bee\n[Text] A. Name went.\n",
        );
    }

    #[test]
    fn terms_fields_and_options_stand_before_their_text() {
        check(
            ":orphan:\n\nterm\n  Its text.\n\n  More.\n\nother : type\n  Text.\n\n:field: value\n  goes on\n\n-v, --verbose  Say more.\n\n| line\n| block\n",
            "[Text] term: Its text.\n[Text] More.\n[Text] other (type): Text.\n[Text] field: value goes on\n\
             [Text] `-v, --verbose`: Say more.\n[Text] line\nblock\n",
        );
    }

    #[test]
    fn drawn_tables_are_cut_at_their_borders() {
        check(
            "+---+-----+\n| a | b   |\n+===+=====+\n| 1 | two |\n|   | é   |\n+---+-----+\n| wide    |\n+---+-----+\n\n\
             ====  ====\nx     y\n====  ====\n      0\n1     ``z``\n      on\n2     w\n====  ====\n",
            "[Table] | a | b |\n| --- | --- |\n| 1 | two é |\n| wide |  |\n\
             [Table] | x | y |\n| --- | --- |\n|  | 0 |\n| 1 | `z` on |\n| 2 | w |\n",
        );
    }

    #[test]
    fn listed_tables_are_tables() {
        check(
            ".. list-table:: Sizes\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - two\n       lines\n\n\
             .. csv-table::\n   :header: \"x\", y\n\n   \"1, 2\", `z`\n",
            "[Text] Sizes:\n[Table] | a | b |\n| --- | --- |\n| 1 | two lines |\n[Table] | x | y |\n| --- | --- |\n| 1, 2 | z |\n",
        );
    }

    #[test]
    fn what_does_not_show_is_left_out() {
        check(
            ".. A comment\n   with more\n\n.. toctree::\n   :maxdepth: 1\n\n   page\n\n.. contents:: On this page\n   :local:\n\n\
             .. image:: a.png\n   :alt: gone\n\n.. figure:: b.png\n   :align: center\n\n   A caption.\n\n.. raw:: html\n\n   <b>\n\n\
             __ http://x\n\n.. only:: html\n\n   Shown\n   -----\n\nEnd.\n",
            "[Text] A caption.\n# Shown #shown\n[Text] End.\n",
        );
    }

    #[test]
    fn signatures_and_unknown_directives_keep_their_words() {
        check(
            ".. py:function:: run(x)\n              run(y)\n   :module: m\n\n   Runs it.\n\n.. autoclass:: a.B\n   :members:\n\n\
             .. versionadded:: 3.1\n   The flag.\n\n.. strange:: *arg*\n   :opt: 1\n\n   Body.\n\nText\n.. note:: No blank line.\n",
            "[Text] `run(x)`\n[Text] `run(y)`\n[Text] Runs it.\n[Text] `a.B`\n[Text] New in version 3.1: The flag.\n\
             [Text] arg\n[Text] Body.\n[Text] Text\n[Admonition] Note: No blank line.\n",
        );
    }

    #[test]
    fn includes_are_read_in_place_once() {
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
    fn a_part_of_a_file_is_chosen_by_line_by_mark_and_by_name() {
        let shown = |options: &str| {
            let file = "import a\n\n@cached\nclass Gate:\n    def lift(self):\n        return 1\n\n    def lifted(self):\n        pass\n\nlast = 2\n";
            let source = format!(".. literalinclude:: gate.py\n{options}");
            let parsed = parse_rst(&source, &mut |_| Some(file.to_owned()));
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
    fn a_table_of_contents_names_pages() {
        let source = "T\n=\n\n.. toctree::\n   :maxdepth: 1\n   :caption: Part\n\n   intro\n   Setup <install/linux>\n   /api/index.rst\n\n   \
                      https://x.org\n   self\n   guide/*\n\nText\n\n.. toctree::\n\n   last\n";
        assert_eq!(toctree(source), ["intro", "install/linux", "/api/index", "guide/*", "last"]);
    }

    #[test]
    fn a_directive_that_is_not_understood_is_a_warning() {
        let source = ".. strange:: One\n\n.. strange:: Two\n\n.. note:: Three\n";
        check(source, "[Text] One\n[Text] Two\n[Admonition] Note: Three\n");
        assert_eq!(parse(source).warnings, ["directive not understood, its words are kept: strange"]);
    }

    #[test]
    fn deep_or_broken_text_is_still_read() {
        let deep: String = (0..400).map(|depth| format!("{}- a\n\n", " ".repeat(2 * depth))).collect();
        assert!(!parse(&deep).sections.is_empty());
        for source in [
            "", "..", ".. ", "::", "====", "``", "`", "*", ":a:`", "|", "+--+", "== ==", "\t\u{b}", "- ",
            "é\n=", ".. x::",
        ] {
            parse(source);
        }
    }
}
