//! Highlights code as HTML: comments, texts, numbers and keywords, in the languages that documentation uses.
//!
//! This is a scanner, not a parser. What it does not understand stays plain.
//!
//! Invariant: without its tags, the HTML is the code; only `<span class="code-…">` is added.

use std::fmt::Write;

use crate::plot::escape;

/// Longer code is not highlighted.
const LONGEST: usize = 50_000;

/// How a language writes what is highlighted.
struct Syntax {
    /// What begins a comment that ends with its line.
    line_comments: &'static [&'static str],
    /// What begins and ends other comments.
    block_comments: &'static [(&'static str, &'static str)],
    /// What begins and ends a text.
    quotes: &'static [char],
    keywords: &'static str,
    /// Whether keywords may be written in upper case.
    any_case: bool,
}

const C_COMMENTS: &[(&str, &str)] = &[("/*", "*/")];

const SCRIPT: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: C_COMMENTS,
    quotes: &['"', '\'', '`'],
    keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum \
               export extends false finally for from function get if implements import in instanceof interface let new \
               null of private protected public readonly return set static super switch this throw true try type typeof \
               undefined var void while yield",
    any_case: false,
};
const C_LIKE: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: C_COMMENTS,
    quotes: &['"', '\''],
    keywords: "abstract auto bool boolean break byte case catch char class const constexpr continue default defer delete do \
               double else enum explicit extends extern false final finally float for fun func go goto if implements import \
               include inline int interface internal let long map namespace new nil null nullptr object operator override \
               package private protected public range return short signed sizeof static string struct super switch template \
               this throw throws true try typedef typename unsigned using val var virtual void volatile when while",
    any_case: false,
};
const RUST: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: C_COMMENTS,
    // An apostrophe also begins a lifetime.
    quotes: &['"'],
    keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move \
               mut pub ref return self Self static struct super trait true type unsafe use where while",
    any_case: false,
};
const PYTHON: Syntax = Syntax {
    line_comments: &["#"],
    block_comments: &[],
    quotes: &['"', '\''],
    keywords: "and as assert async await break class continue def del elif else except False finally for from global if import \
               in is lambda None nonlocal not or pass raise return True try while with yield begin do done end elsif ensure \
               module nil require rescue self unless until function library",
    any_case: false,
};
const SHELL: Syntax = Syntax {
    line_comments: &["#"],
    block_comments: &[],
    quotes: &['"', '\''],
    keywords: "case do done elif else esac export fi for function if in local return set source sudo then unset until while",
    any_case: false,
};
const DATA: Syntax = Syntax {
    line_comments: &["#", ";"],
    block_comments: &[],
    quotes: &['"', '\''],
    keywords: "true false null yes no on off",
    any_case: false,
};
const JSON: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: C_COMMENTS,
    quotes: &['"'],
    keywords: "true false null",
    any_case: false,
};
const SQL: Syntax = Syntax {
    line_comments: &["--"],
    block_comments: C_COMMENTS,
    quotes: &['\'', '"'],
    keywords: "add all alter and as asc begin between by case commit create default delete desc distinct drop else end exists \
               foreign from group having if in index insert into is join key left like limit not null on or order outer primary \
               references right rollback select set table then union unique update values view when where with",
    any_case: true,
};
const MARKUP: Syntax = Syntax {
    line_comments: &[],
    block_comments: &[("<!--", "-->")],
    quotes: &['"'],
    keywords: "",
    any_case: false,
};
const STYLE: Syntax = Syntax {
    line_comments: &[],
    block_comments: C_COMMENTS,
    quotes: &['"', '\''],
    keywords: "important inherit initial none auto",
    any_case: false,
};

fn syntax(language: &str) -> Option<&'static Syntax> {
    Some(match language.to_lowercase().as_str() {
        "js" | "jsx" | "mjs" | "javascript" | "ts" | "tsx" | "typescript" | "vue" | "svelte" => &SCRIPT,
        "c" | "h" | "cpp" | "c++" | "hpp" | "cs" | "csharp" | "java" | "kotlin" | "kt" | "go" | "swift"
        | "scala" | "dart" | "php" | "objc" | "proto" | "glsl" | "cuda" => &C_LIKE,
        "rust" | "rs" => &RUST,
        "python" | "py" | "python3" | "pycon" | "ipython" | "ruby" | "rb" | "r" | "julia" => &PYTHON,
        "sh" | "bash" | "zsh" | "shell" | "console" | "shell-session" | "shellscript" | "powershell"
        | "dockerfile" | "docker" | "make" | "makefile" | "cmake" | "npm2yarn" => &SHELL,
        "yaml" | "yml" | "toml" | "ini" | "conf" | "properties" | "env" | "hcl" | "nginx" => &DATA,
        "json" | "json5" | "jsonc" => &JSON,
        "sql" => &SQL,
        "html" | "xml" | "svg" | "xhtml" | "urdf" | "xacro" | "sdf" => &MARKUP,
        "css" | "scss" | "less" => &STYLE,
        _ => return None,
    })
}

/// The code as HTML; plain if the language is not known.
pub fn html(code: &str, language: &str) -> String {
    match syntax(language) {
        Some(syntax) if code.len() <= LONGEST => highlighted(code, syntax),
        _ => escape(code),
    }
}

fn highlighted(code: &str, syntax: &Syntax) -> String {
    let mut html = String::with_capacity(code.len() * 2);
    let (mut rest, mut before) = (code, None);
    while let Some(first) = rest.chars().next() {
        let (length, class) = token(rest, first, before, syntax);
        let (token, after) = rest.split_at(length);
        match class {
            Some(class) => {
                let _ = write!(html, "<span class=\"code-{class}\">{}</span>", escape(token));
            }
            None => html.push_str(&escape(token)),
        }
        before = token.chars().next_back();
        rest = after;
    }
    html
}

/// The length of what `rest` begins with, at least one character, and how it is highlighted.
fn token(rest: &str, first: char, before: Option<char>, syntax: &Syntax) -> (usize, Option<&'static str>) {
    let line = rest.find('\n').unwrap_or(rest.len());
    // `#` in `$#` or `a#b`, and `//` in an address, begin no comment.
    let is_free = before.is_none_or(|before| before.is_whitespace() || "({[;,".contains(before));
    if is_free && syntax.line_comments.iter().any(|mark| rest.starts_with(mark)) {
        return (line, Some("comment"));
    }
    for (open, close) in syntax.block_comments {
        if let Some(inside) = rest.strip_prefix(open) {
            let end = inside.find(close).map_or(rest.len(), |at| open.len() + at + close.len());
            return (end, Some("comment"));
        }
    }
    if syntax.quotes.contains(&first)
        && before.is_none_or(|before| !before.is_alphanumeric())
        && let Some(length) = text(rest, first)
    {
        return (length, Some("text"));
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if !is_word(first) {
        return (first.len_utf8(), None);
    }
    let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    if first.is_ascii_digit() {
        return (length, Some("number"));
    }
    let is_keyword = syntax
        .keywords
        .split_whitespace()
        .any(|keyword| keyword == word || (syntax.any_case && keyword.eq_ignore_ascii_case(word)));
    // `object.type` and `--from` are names.
    let is_part = matches!(before, Some('.' | '-' | '$' | '@'));
    (length, (is_keyword && !is_part).then_some("keyword"))
}

/// The length of a text with its quotes; `None` if it does not end. Only a template may have several lines.
fn text(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote != '`' => return None,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, code: &str, expected: &str) {
        let short = html(code, language).replace("<span class=\"code-", "<").replace("</span>", "</>");
        assert_eq!(short.replace("\">", ">").replace("&quot;", "'"), expected);
    }

    #[test]
    fn comments_texts_numbers_and_keywords_are_highlighted() {
        check(
            "python",
            "def f(x):  # the \"end\"\n    return 'a\\'b' + 3",
            "<keyword>def</> f(x):  <comment># the 'end'</>\n    <keyword>return</> <text>&#39;a\\&#39;b&#39;</> + <number>3</>",
        );
        check("bash", "echo $# https://x.org//a # b", "echo $# https://x.org//a <comment># b</>");
        check("js", "`a\nb` /* c", "<text>`a\nb`</> <comment>/* c</>");
        check("rust", "fn f<'a>(x: &'a str)", "<keyword>fn</> f&lt;&#39;a&gt;(x: &amp;&#39;a str)");
        check("SQL", "SELECT a", "<keyword>SELECT</> a");
        check("json", "{\"a\": \"open", "{<text>'a'</>: 'open");
        check("toml", "key = true", "key = <keyword>true</>");
        check("unknown", "if <a>", "if &lt;a&gt;");
    }

    #[test]
    fn nothing_is_lost() {
        let code = "a = \"b\\\"<c>\" # 'é'\n/* x */ `y` // z\n--w <!-- v --> 0x1F \\ '";
        for language in ["python", "js", "c", "rust", "sh", "yaml", "json", "sql", "html", "css", "text"] {
            let html = html(code, language);
            let plain = scraper::Html::parse_fragment(&html).root_element().text().collect::<String>();
            assert_eq!(plain, code, "{language}");
        }
    }
}
