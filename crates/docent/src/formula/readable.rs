//! A formula as text: `\frac{a+b}{2}` becomes (a + b)/2 and `x_1^2` becomes x₁².

use std::iter::Peekable;
use std::slice::Iter;

use pulldown_latex::Event;
use pulldown_latex::event::{
    Content, DelimiterType, EnvironmentFlow, Grouping, ScriptPosition, ScriptType, Visual,
};

/// Deeper parts are left out.
const DEEPEST: usize = 300;

/// The text of a formula, on one line except for the rows of its environments.
pub fn text(events: &[Event<'_>]) -> String {
    let mut writer = Writer { events: events.iter().peekable(), depth: 0 };
    let mut out = String::new();
    while writer.events.peek().is_some() {
        out.push_str(&writer.element());
    }
    tidied(&out)
}

struct Writer<'a, 'e> {
    events: Peekable<Iter<'a, Event<'e>>>,
    depth: usize,
}

impl Writer<'_, '_> {
    /// The text of the next element.
    fn element(&mut self) -> String {
        let Some(event) = self.events.next() else { return String::new() };
        self.depth += 1;
        let text = if self.depth > DEEPEST { String::new() } else { self.text_of(event) };
        self.depth -= 1;
        text
    }

    fn text_of(&mut self, event: &Event<'_>) -> String {
        match event {
            Event::Content(content) => text_of_content(content),
            Event::Begin(grouping) => self.group(grouping),
            Event::Visual(Visual::SquareRoot) => format!("√{}", bracketed(&self.element())),
            Event::Visual(Visual::Root) => {
                let (radicand, index) = (self.element(), self.element());
                format!("{}√{}", raised(&index), bracketed(&radicand))
            }
            Event::Visual(Visual::Fraction(_)) => {
                let (above, below) = (self.element(), self.element());
                format!("{}/{}", bracketed(&above), bracketed(&below))
            }
            Event::Visual(Visual::Negation) => negated(&self.element()),
            Event::Script { ty, position } => self.script(*ty, *position),
            Event::Space { width: Some(_), .. } => " ".to_owned(),
            Event::EnvironmentFlow(EnvironmentFlow::NewLine { .. }) => "\n".to_owned(),
            Event::EnvironmentFlow(EnvironmentFlow::Alignment) => " ".to_owned(),
            Event::End | Event::Space { .. } | Event::StateChange(_) | Event::EnvironmentFlow(_) => {
                String::new()
            }
        }
    }

    fn group(&mut self, grouping: &Grouping) -> String {
        let mut inside = String::new();
        while let Some(event) = self.events.peek() {
            if matches!(event, Event::End) {
                self.events.next();
                break;
            }
            inside.push_str(&self.element());
        }
        let sign = |delimiter: &Option<char>| delimiter.map(String::from).unwrap_or_default();
        let rows = || tidied(&inside).replace('\n', "; ");
        match grouping {
            Grouping::LeftRight(open, close) => format!("{}{}{}", sign(open), inside.trim(), sign(close)),
            Grouping::Matrix { .. } | Grouping::Array(_) | Grouping::SubArray { .. } => rows(),
            Grouping::Cases { left: true } => format!("{{ {}", rows()),
            Grouping::Cases { left: false } => format!("{} }}", rows()),
            _ => inside,
        }
    }

    fn script(&mut self, ty: ScriptType, position: ScriptPosition) -> String {
        let base = self.element();
        // "lim x→0" and "∑ i=1..n" keep their space.
        let end = if base.ends_with(' ') { " " } else { "" };
        let base = base.trim_end();
        match ty {
            ScriptType::Subscript => format!("{base}{}{end}", lowered(&self.element())),
            ScriptType::Superscript => {
                let above = self.element();
                let accented = accented(base, &above).filter(|_| position == ScriptPosition::AboveBelow);
                accented.unwrap_or_else(|| format!("{base}{}{end}", raised(&above)))
            }
            ScriptType::SubSuperscript => {
                let (below, above) = (self.element(), self.element());
                format!("{base}{}{}{end}", lowered(&below), raised(&above))
            }
        }
    }
}

fn text_of_content(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) | Content::Number(text) => (*text).to_owned(),
        Content::Function(name) => format!("{name} "),
        Content::Ordinary { content, .. } => content.to_string(),
        Content::LargeOp { content, .. } => format!("{content} "),
        Content::BinaryOp { content, .. } => format!(" {content} "),
        Content::Relation { content, .. } => {
            let mut buffer = [0; 8];
            format!(" {} ", String::from_utf8_lossy(content.encode_utf8_to_buf(&mut buffer)))
        }
        Content::Delimiter { content, ty: DelimiterType::Fence, .. } => content.to_string(),
        Content::Delimiter { content, .. } => content.to_string(),
        Content::Punctuation(sign) => format!("{sign} "),
    }
}

/// A part as an operand: in parentheses if it consists of several parts.
fn bracketed(part: &str) -> String {
    let part = part.trim();
    let is_enclosed = part.starts_with('(') && part.find(')') == Some(part.len() - 1);
    let is_accent = |c| matches!(c, '\u{300}'..='\u{36f}' | '\u{20d7}');
    let is_one =
        part.chars().all(|c| c.is_alphanumeric() || is_accent(c) || "₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹.′".contains(c));
    if is_one || is_enclosed { part.to_owned() } else { format!("({part})") }
}

/// A letter with an accent above it, such as `x̂`; none for other parts.
fn accented(base: &str, accent: &str) -> Option<String> {
    const COMBINING: [(&str, char); 11] = [
        ("^", '\u{302}'),
        ("~", '\u{303}'),
        ("‾", '\u{304}'),
        ("˙", '\u{307}'),
        ("¨", '\u{308}'),
        ("→", '\u{20d7}'),
        ("ˇ", '\u{30c}'),
        ("˘", '\u{306}'),
        ("˚", '\u{30a}'),
        ("´", '\u{301}'),
        ("`", '\u{300}'),
    ];
    let (_, combining) = COMBINING.iter().find(|(sign, _)| *sign == accent.trim())?;
    let mut letters = base.chars();
    let is_letter = letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
    is_letter.then(|| format!("{base}{combining}"))
}

fn negated(part: &str) -> String {
    let known =
        [("=", "≠"), ("∈", "∉"), ("∃", "∄"), ("<", "≮"), (">", "≯"), ("⊂", "⊄"), ("≡", "≢"), ("∼", "≁")];
    match known.iter().find(|(plain, _)| *plain == part.trim()) {
        Some((_, negated)) => format!(" {negated} "),
        None => format!("¬{part}"),
    }
}

fn raised(part: &str) -> String {
    const RAISED: [(char, char); 19] = [
        ('0', '⁰'),
        ('1', '¹'),
        ('2', '²'),
        ('3', '³'),
        ('4', '⁴'),
        ('5', '⁵'),
        ('6', '⁶'),
        ('7', '⁷'),
        ('8', '⁸'),
        ('9', '⁹'),
        ('+', '⁺'),
        ('−', '⁻'),
        ('-', '⁻'),
        ('n', 'ⁿ'),
        ('i', 'ⁱ'),
        ('(', '⁽'),
        (')', '⁾'),
        ('′', '′'),
        ('T', 'ᵀ'),
    ];
    moved(part, &RAISED, '^')
}

fn lowered(part: &str) -> String {
    const LOWERED: [(char, char); 25] = [
        ('0', '₀'),
        ('1', '₁'),
        ('2', '₂'),
        ('3', '₃'),
        ('4', '₄'),
        ('5', '₅'),
        ('6', '₆'),
        ('7', '₇'),
        ('8', '₈'),
        ('9', '₉'),
        ('+', '₊'),
        ('−', '₋'),
        ('-', '₋'),
        ('=', '₌'),
        ('i', 'ᵢ'),
        ('j', 'ⱼ'),
        ('k', 'ₖ'),
        ('n', 'ₙ'),
        ('m', 'ₘ'),
        ('t', 'ₜ'),
        ('x', 'ₓ'),
        ('p', 'ₚ'),
        ('s', 'ₛ'),
        ('a', 'ₐ'),
        ('h', 'ₕ'),
    ];
    moved(part, &LOWERED, '_')
}

/// A script in small characters if there are some for all of it.
fn moved(part: &str, small: &[(char, char)], sign: char) -> String {
    let part = part.trim();
    let dense = part.replace(' ', "");
    let written: Option<String> =
        dense.chars().map(|c| small.iter().find(|(plain, _)| *plain == c).map(|(_, small)| *small)).collect();
    match written {
        Some(written) => written,
        None => format!("{sign}{}", bracketed(part)),
    }
}

/// Without repeated spaces, spaces inside brackets, and empty lines.
fn tidied(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split('\n') {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut line = String::new();
        for (place, word) in words.iter().enumerate() {
            line.push_str(word);
            // A sign belongs to what follows it.
            let follows = place.checked_sub(1).and_then(|place| words[place].chars().next_back());
            let is_sign = matches!(*word, "−" | "+" | "±")
                && follows.is_none_or(|before| "=<>≤≥≈([{,;∈/".contains(before));
            let is_sign = is_sign || ["(−", "[−", "{−"].iter().any(|end| word.ends_with(end));
            if !is_sign {
                line.push(' ');
            }
        }
        let line = line
            .trim_end()
            .replace("( ", "(")
            .replace(" )", ")")
            .replace("[ ", "[")
            .replace(" ]", "]")
            .replace(" ,", ",");
        if !line.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::readable;

    #[test]
    fn formulas_read_as_text() {
        for (formula, expected) in [
            ("$E = mc^2$", "E = mc²"),
            ("$$\\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$$", "(−b ± √(b² − 4ac))/2a"),
            ("\\(x_{n+1}\\)", "xₙ₊₁"),
            ("$\\sum_{i=1}^{n} x_i$", "∑ᵢ₌₁ⁿ xᵢ"),
            ("$\\sqrt[3]{x}$", "³√x"),
            ("$a \\ne b, \\; x \\in \\mathbb{R}$", "a ≠ b, x ∈ R"),
            ("$\\begin{bmatrix} 1 & 2 \\\\ 3 & 4 \\end{bmatrix}$", "[1 2; 3 4]"),
            ("$\\max(0, x)$", "max (0, x)"),
            ("$\\frac{\\hat{m}_t}{\\dot{x}}$", "m\u{302}ₜ/x\u{307}"),
            ("$\\vec{F} + \\overline{ab}$", "F\u{20d7} + ab^(‾)"),
            ("$\\text{if } x^{k} > 0$", "if x^k > 0"),
        ] {
            assert_eq!(readable(formula), expected, "{formula}");
        }
    }
}
