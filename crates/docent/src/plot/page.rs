//! The HTML page that contains charts: a single file without scripts or external resources.
//!
//! Invariant: text that went through [`escape`] is never parsed as markup.

const STYLE: &str = include_str!("page.css");

/// A complete page. Title and subtitle are text; the body is HTML whose texts went through [`escape`].
pub fn page(title: &str, subtitle: &str, body: &str) -> String {
    let (title, subtitle) = (escape(title), escape(subtitle));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"quiet\">{subtitle}</p>\n</header>\n\
         <main>\n{body}\n</main>\n</body>\n</html>\n"
    )
}

/// Escapes text for use between tags and in quoted attributes, in HTML and XML. Control characters, which XML
/// cannot represent, become replacement characters.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            '\t' | '\n' | '\r' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ if character.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_tags_and_attributes() {
        assert_eq!(escape("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
        assert_eq!(escape("ä\n\u{1b}[0m"), "ä\n\u{fffd}[0m");
    }

    #[test]
    fn a_page_loads_nothing_and_runs_nothing() {
        let page = page("a < b", "today", "<p>body</p>");
        assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
        assert!(page.contains("<h1>a &lt; b</h1>") && page.contains("<p>body</p>"));
        assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("url("));
    }
}
