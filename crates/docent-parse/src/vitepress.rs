//! Converts VitePress containers to quotes and removes scripts; the rest is standard Markdown.
//!
//! Invariant: code fences are left unchanged.

use super::admonition::admonitions;
use super::fence::for_each_line;

/// Containers that show only their content.
const SILENT: [&str; 3] = ["code-group", "raw", "v-pre"];

/// Converts a page to standard Markdown.
pub fn to_markdown(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    // The end tag of the open script or style.
    let mut until: Option<&str> = None;
    let mut silent = 0_usize;
    for_each_line(source, |line, in_code| {
        let bare = line.trim();
        if let Some(end) = until.filter(|_| !in_code) {
            until = (!bare.contains(end)).then_some(end);
            return;
        }
        let script = ["script", "style"].iter().zip(["</script>", "</style>"]).find(|(name, _)| {
            bare.strip_prefix('<').is_some_and(|rest| rest.starts_with(**name) && !rest.contains("/>"))
        });
        if let Some((_, end)) = script.filter(|_| !in_code) {
            until = (!bare.contains(end)).then_some(end);
        } else if in_code || !bare.starts_with(":::") {
            let is_contents = !in_code && bare.eq_ignore_ascii_case("[[toc]]");
            out.push_str(if is_contents { "\n" } else { line });
        } else {
            let name = bare.trim_start_matches(':').trim();
            if SILENT.contains(&name) {
                silent += 1;
            } else if name.is_empty() && silent > 0 {
                silent -= 1;
            } else {
                out.push_str(line);
            }
        }
    });
    admonitions(&out)
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    #[test]
    fn containers_become_notes_and_scripts_are_removed() {
        let source = "<script setup>\nimport a from './a'\n</script>\n\n# Wheel\n\n[[toc]]\n\n::: tip Listen\nIt sings.\n:::\n\n\
                      ::: code-group\n\n```sh [npm]\nls\n```\n\n:::\n\n## 1. Order {#gate}\n\nLast.\n";
        let (_, parsed) = parse_markdown(source, Flavor::VitePress, &mut |_| None);
        assert_eq!(
            shown(&parsed),
            "# Wheel #wheel\n[Admonition] Tip: Listen\n[Admonition] It sings.\n[Code] ```sh\nls\n```\n\
             ## 1. Order #gate\n[Text] Last.\n"
        );
    }
}
