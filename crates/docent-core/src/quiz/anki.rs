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
            format!("<a href=\"{0}\">{1}</a>", html(&question.url).replace('"', "&quot;"), html(&place(question)))
        } else {
            html(&place(question))
        };
        let quote = if question.quote.trim() == question.answer.trim() {
            String::new()
        } else {
            format!("<blockquote>{}</blockquote>", html(&question.quote))
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

/// Text as HTML on one line. A quotation mark at the beginning of a field would be read as the beginning of a quoted field.
fn html(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut made = String::with_capacity(escaped.len());
    for (number, part) in escaped.split('`').enumerate() {
        match number % 2 {
            1 if escaped.matches('`').count() % 2 == 0 && !escaped.contains("```") => {
                made.push_str("<code>");
                made.push_str(part);
                made.push_str("</code>");
            }
            1 => {
                made.push('`');
                made.push_str(part);
                made.push('`');
            }
            _ => made.push_str(part),
        }
    }
    let lines: Vec<String> = made.lines().map(one_line).collect();
    lines.join("<br>")
}

fn one_line(text: &str) -> String {
    text.split(|sign: char| sign.is_control()).collect::<Vec<_>>().join(" ").trim().to_owned()
}
