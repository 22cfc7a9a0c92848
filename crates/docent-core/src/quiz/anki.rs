//! Flashcards for Anki: a text file with one card per line, its fields separated by tabs.
//!
//! Invariant: whatever a book contains, a card is one line of three fields, and its text is not markup.

use super::QuizQuestion;

/// The questions as a file that Anki imports: front, back and link; the module of the page as a tag.
pub fn anki(questions: &[QuizQuestion], deck: &str) -> String {
    let mut text = String::from("#separator:tab\n#html:true\n#notetype:Basic\n");
    text.push_str(&format!("#deck:{}\n#columns:Front\tBack\tTags\n#tags column:3\n", one_line(deck)));
    for question in questions {
        let front = html(&question.question);
        let link = if question.url.starts_with("http://") || question.url.starts_with("https://") {
            format!("<a href=\"{}\">{}</a>", escape(&one_line(&question.url)), html(&place(question)))
        } else {
            html(&place(question))
        };
        let quote = if question.quote.trim() == question.answer.trim() {
            String::new()
        } else {
            format!("<blockquote>{}</blockquote>", html(&question.readable_quote()))
        };
        let tag: String = question.module_name.split_whitespace().collect::<Vec<_>>().join("-");
        let tag: String = tag.chars().filter(|sign| !sign.is_control() && *sign != '"').collect();
        text.push_str(&format!("{front}\t{}{quote}<br>{link}\t{tag}\n", html(&question.answer)));
    }
    text
}

fn place(question: &QuizQuestion) -> String {
    match &question.heading {
        Some(heading) if *heading != question.page_title => format!("{} › {heading}", question.page_title),
        _ => question.page_title.clone(),
    }
}

/// Light Markdown as HTML on one line: code in backticks and in fences, every other line as it is. A quotation mark at the
/// beginning of a field would be read as the beginning of a quoted field, so it is escaped.
fn html(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            made.push_str(if in_fence { "</pre>" } else { "<pre>" });
            in_fence = !in_fence;
            continue;
        }
        if !made.is_empty() && !made.ends_with("pre>") {
            made.push_str("<br>");
        }
        let escaped = escape(&one_line(line));
        made.push_str(&if in_fence { escaped } else { with_code(&escaped) });
    }
    if in_fence {
        made.push_str("</pre>");
    }
    made
}

/// Marks what is between two backticks as code.
fn with_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    let marked = parts.iter().enumerate().map(|(number, part)| {
        if number % 2 == 1 && !part.is_empty() { format!("<code>{part}</code>") } else { (*part).to_owned() }
    });
    marked.collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn one_line(text: &str) -> String {
    text.split(|sign: char| sign.is_control()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_markup_is_escaped() {
        assert_eq!(html("Run `ls <x>` & go"), "Run <code>ls &lt;x&gt;</code> &amp; go");
        assert_eq!(html("To list:\n\n```sh\nls\tx\ncd\n```\nDone"), "To list:<br><pre>ls x<br>cd</pre>Done");
        assert_eq!(html("\"a\nb"), "&quot;a<br>b");
        assert_eq!(html("a ` b"), "a ` b");
    }
}
