//! Walks the content of a page in order and turns it into blocks of sections.
//!
//! Invariant: white space between elements never makes a block, and a block never extends across a heading, a
//! table or a code block.

use std::collections::VecDeque;

use scraper::{ElementRef, Node};

use super::line::{self, Line};
use super::{admonition, code, element, table};
use crate::document::{BlockKind, Section, SectionBuilder};

/// The text of the first title, and all sections under `root`.
pub(super) fn sections(root: ElementRef<'_>) -> (Option<String>, Vec<Section>) {
    let mut walker = Walker::default();
    walker.children(root, 0);
    walker.end_block();
    (walker.title, walker.builder.finish())
}

#[derive(Default)]
struct Walker {
    builder: SectionBuilder,
    title: Option<String>,
    /// The current paragraph.
    line: Line,
    /// Written before the next paragraph: a list marker, a term or the label of an admonition.
    marker: String,
    /// The open lists; for numbered ones, the next number.
    lists: Vec<Option<usize>>,
    /// The lines of the current list.
    items: String,
    admonitions: usize,
    /// For each open set of tabs, the names of the panels that follow.
    tabs: Vec<VecDeque<String>>,
}

impl Walker {
    fn children(&mut self, parent: ElementRef<'_>, depth: usize) {
        for child in parent.children() {
            match child.value() {
                Node::Text(text) => self.line.push(text),
                Node::Element(_) => {
                    if let Some(child) = ElementRef::wrap(child) {
                        self.element(child, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn element(&mut self, element: ElementRef<'_>, depth: usize) {
        if element::is_tab_list(element) {
            return self.tab_names(element);
        }
        if element.value().name() == "img" && self.line.is_blank() {
            // An image alone in a paragraph shows its description.
            self.image(element, element.attr("alt").unwrap_or_default());
        }
        if line::leaf(element, &mut self.line)
            || (self.admonitions > 0 && element::is_admonition_title(element))
        {
            return;
        }
        if depth > element::DEEPEST {
            element.text().for_each(|text| self.line.push(text));
            return;
        }
        if let Some(level) = element::heading_level(element) {
            return self.heading(element, level);
        }
        match element.value().name() {
            "pre" => self.whole(BlockKind::Code, &code::fenced(element)),
            "table" if !table::is_layout(element) && !self.is_note(element) => self.table(element),
            "ul" | "ol" | "menu" => self.list(element, depth),
            "li" => self.item(element, depth),
            "dt" => self.term(element),
            "blockquote" if let Some(title) = admonition::quote_marker(element) => {
                self.admonition(element, &title, depth);
            }
            _ if element::is_admonition(element) => {
                self.admonition(element, &admonition::title(element), depth);
            }
            _ if element::is_tab_panel(element) => self.tab_panel(element, depth),
            "figure" => self.figure(element, depth),
            "span" if is_footnote_label(element) => self.footnote_label(element),
            _ if element::is_block(element) => {
                self.end_paragraph();
                self.children(element, depth);
                self.end_paragraph();
            }
            _ => self.children(element, depth),
        }
    }

    fn heading(&mut self, element: ElementRef<'_>, level: u8) {
        let text = line::one_line(element);
        if self.admonitions > 0 {
            // A heading inside a note is not a heading of the page.
            self.end_paragraph();
            self.line.push(&text);
            return self.end_paragraph();
        }
        self.end_block();
        let text = text.replace('`', "");
        if text.is_empty() {
            return;
        }
        if level == 1 && self.title.is_none() {
            self.title = Some(text.clone());
        }
        self.builder.heading(level, &text, element::anchor(element));
    }

    /// An image, code or something else with a caption.
    fn figure(&mut self, element: ElementRef<'_>, depth: usize) {
        self.end_paragraph();
        self.children(element, depth);
        self.end_paragraph();
        let within = |name: &str| element.descendent_elements().find(|one| one.value().name() == name);
        if let (Some(image), Some(caption)) = (within("img"), within("figcaption")) {
            self.image(image, &line::one_line(caption));
        }
    }

    fn image(&mut self, image: ElementRef<'_>, caption: &str) {
        self.builder.figure(caption, image.attr("src").unwrap_or_default().trim());
    }

    /// Adds a separate block, even inside a list.
    fn whole(&mut self, kind: BlockKind, text: &str) {
        self.end_block();
        self.builder.block(kind, text);
    }

    fn table(&mut self, element: ElementRef<'_>) {
        self.whole(BlockKind::Text, &table::caption(element));
        self.whole(BlockKind::Table, &table::rendered(element));
    }

    fn list(&mut self, element: ElementRef<'_>, depth: usize) {
        self.end_paragraph();
        if self.lists.is_empty() {
            self.end_block();
        } else {
            self.end_marker();
        }
        let first = element.attr("start").and_then(|number| number.trim().parse().ok()).unwrap_or(1);
        self.lists.push((element.value().name() == "ol").then_some(first));
        self.children(element, depth);
        self.end_paragraph();
        self.lists.pop();
        if self.lists.is_empty() {
            self.end_block();
        }
    }

    fn item(&mut self, element: ElementRef<'_>, depth: usize) {
        self.end_paragraph();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        self.marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}- "),
        };
        // An item outside any list gets its own list.
        let alone = self.lists.is_empty();
        if alone {
            self.lists.push(None);
        }
        self.children(element, depth);
        self.end_paragraph();
        self.marker.clear();
        if alone {
            self.lists.clear();
            self.end_block();
        }
    }

    /// Puts the term of a definition list before its definition. A signature is a separate block.
    fn term(&mut self, element: ElementRef<'_>) {
        self.end_paragraph();
        if element::is_signature(element) {
            self.end_block();
            self.line.code(&code::text(element));
            return self.end_block();
        }
        let term = line::one_line(element);
        let term = term.trim_end_matches(':').trim_end();
        if term.is_empty() {
            return;
        }
        if self.marker.ends_with(": ") {
            self.marker.truncate(self.marker.len() - 2);
            self.marker.push_str(", ");
        } else if self.marker.is_empty() {
            self.marker = "  ".repeat(self.lists.len());
        }
        self.marker.push_str(term);
        self.marker.push_str(if term.ends_with(']') { " " } else { ": " });
    }

    fn footnote_label(&mut self, element: ElementRef<'_>) {
        self.end_block();
        self.marker = format!("{} ", line::one_line(element));
    }

    fn admonition(&mut self, element: ElementRef<'_>, title: &str, depth: usize) {
        self.end_block();
        let lists = std::mem::take(&mut self.lists);
        self.admonitions += 1;
        self.marker = format!("{title}: ");
        self.children(element, depth);
        self.end_block();
        self.admonitions -= 1;
        self.lists = lists;
    }

    /// Asciidoctor renders a note as a table with its label next to its text.
    fn is_note(&self, table: ElementRef<'_>) -> bool {
        let around = table.parent().and_then(ElementRef::wrap);
        self.admonitions > 0 && around.is_some_and(element::is_admonition)
    }

    fn tab_names(&mut self, element: ElementRef<'_>) {
        let names = element.descendent_elements().filter(|tab| element::is_tab(*tab));
        self.tabs.push(names.map(line::one_line).collect());
    }

    /// Starts a panel with the name of its tab, because nothing else distinguishes it from the others.
    fn tab_panel(&mut self, element: ElementRef<'_>, depth: usize) {
        self.end_block();
        let name = self.tabs.last_mut().and_then(VecDeque::pop_front).unwrap_or_default();
        if !name.is_empty() {
            self.builder.block(self.kind(), &format!("{name}:"));
        }
        let open = self.tabs.len();
        self.children(element, depth);
        self.end_block();
        self.tabs.truncate(open);
        if self.tabs.last().is_some_and(VecDeque::is_empty) {
            self.tabs.pop();
        }
    }

    fn kind(&self) -> BlockKind {
        if self.admonitions > 0 { BlockKind::Admonition } else { BlockKind::Text }
    }

    /// Writes the current line: as a block, or as a line of the list that contains it.
    fn end_paragraph(&mut self) {
        let line = self.line.finish();
        let mut text = line.as_str();
        if self.admonitions > 0
            && let Some((_, rest)) = text.strip_prefix("[!").and_then(|rest| rest.split_once(']'))
        {
            text = rest.trim_start();
        }
        if text.is_empty() {
            return;
        }
        let marker = std::mem::take(&mut self.marker);
        if self.lists.is_empty() {
            self.builder.block(self.kind(), &format!("{}{text}", marker.trim_start()));
            return;
        }
        let indent = "  ".repeat(self.lists.len());
        if !self.items.is_empty() {
            self.items.push('\n');
            self.items.push_str(if marker.is_empty() { &indent } else { "" });
        }
        self.items.push_str(&marker);
        self.items.push_str(&text.replace('\n', &format!("\n{indent}")));
    }

    /// Writes a pending marker on its own line if it contains any words.
    fn end_marker(&mut self) {
        let marker = std::mem::take(&mut self.marker);
        if marker.chars().any(char::is_alphanumeric) {
            self.line.push(marker.trim());
            let indent = marker.len() - marker.trim_start().len();
            self.marker = " ".repeat(indent);
            self.end_paragraph();
        }
    }

    /// Writes everything that is pending.
    fn end_block(&mut self) {
        self.end_paragraph();
        self.end_marker();
        let items = std::mem::take(&mut self.items);
        self.builder.block(self.kind(), &items);
    }
}

/// `[1]` before the text of a footnote.
fn is_footnote_label(element: ElementRef<'_>) -> bool {
    element::has_class(element, "label")
        && (element.parent().and_then(ElementRef::wrap))
            .is_some_and(|note| element::has_any_class(note, &["footnote", "citation"]))
}
