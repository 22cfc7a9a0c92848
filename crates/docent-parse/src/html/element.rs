//! Classifies the elements of a page: content or boilerplate, notes, tabs, anchors of headings.
//!
//! Invariant: every answer depends only on the element and its neighbors, and takes constant time or time
//! linear in the element's content.

use scraper::ElementRef;

/// Elements nested more deeply are read as plain text, so that no page can overflow the stack.
pub(super) const DEEPEST: usize = 200;

pub(super) fn has_class(element: ElementRef<'_>, class: &str) -> bool {
    element.value().classes().any(|own| own == class)
}

pub(super) fn has_any_class(element: ElementRef<'_>, classes: &[&str]) -> bool {
    element.value().classes().any(|own| classes.contains(&own))
}

/// Elements that are never part of the text.
const LEFT_OUT_TAGS: [&str; 17] = [
    "nav", "footer", "script", "style", "template", "noscript", "svg", "button", "form", "iframe", "head",
    "dialog", "input", "select", "textarea", "canvas", "object",
];

const LEFT_OUT_ROLES: [&str; 5] = ["navigation", "search", "banner", "contentinfo", "tablist"];

/// Classes of controls and navigation that site generators put around or into the text.
const LEFT_OUT_CLASSES: &[&str] = &[
    // Links to other pages.
    "breadcrumb",
    "breadcrumbs",
    "theme-doc-breadcrumbs",
    "wy-breadcrumbs",
    "docnav",
    "navheader",
    "navfooter",
    "pagination",
    "pagination-nav",
    "prev-next-area",
    "prev-next-footer",
    "prev-next",
    "rst-footer-buttons",
    "related",
    "related-pages",
    "sphinxsidebar",
    "nav-wrapper",
    "nav-chapters",
    "mobile-nav-chapters",
    "md-footer",
    "md-sidebar",
    "menu-bar",
    "sidebar-toggle",
    "toctree-wrapper",
    "section-index",
    "td-breadcrumbs",
    "md-path",
    "md-tags",
    "theme-doc-footer",
    "theme-doc-footer-tags-row",
    // Navigation within this page.
    "toc",
    "table-of-contents",
    "theme-doc-toc-mobile",
    "theme-doc-toc-desktop",
    "page-toc",
    "bd-toc",
    "toc-drawer",
    "skip-link",
    "back-to-top",
    "td-toc",
    // Links from a heading to itself.
    "headerlink",
    "hash-link",
    "header-anchor",
    "anchor-link",
    "anchorjs-link",
    "heading-anchor",
    "sl-anchor-link",
    "td-heading-self-link",
    "fn-backref",
    "footnote-backref",
    "data-footnote-backref",
    // Links to the source, and metadata about the page.
    "theme-edit-this-page",
    "edit-this-page",
    "edit-link",
    "md-content__button",
    "viewcode-link",
    "theme-last-updated",
    "last-updated",
    "md-source-file",
    "theme-doc-version-badge",
    "theme-doc-version-banner",
    "td-page-meta",
    "page-meta-links",
    "feedback",
    "feedback--title",
    "feedback--question",
    "feedback--answer",
    "feedback--response",
    "md-feedback",
    "td-page-meta__lastmod",
    "VPDocFooter",
    "git-revision-date-localized-plugin",
    "giscus",
    "utterances",
    // Hidden in print.
    "d-print-none",
    "hidden-print",
    "no-print",
    // Controls around code.
    "buttons",
    "copybtn",
    "copy-button",
    "clipboard-copy",
    "linenos",
    "lineno",
    "linenodiv",
    "line-number",
    "line-numbers-rows",
    "line-numbers-wrapper",
    "lnt",
    "ln",
    "gutter",
    // For screen readers.
    "sr-only",
    "visually-hidden",
];

/// The same for site generators that use ids instead of classes.
const LEFT_OUT_IDS: [&str; 12] = [
    "__comments",
    "comments",
    "disqus_thread",
    "TableOfContents",
    "table-of-contents",
    "site-header",
    "site-footer",
    "menu-bar",
    "search-wrapper",
    "searchbox",
    "sidebar",
    "backtotop",
];

/// Whether an element is not part of the content of the page.
pub(super) fn is_left_out(element: ElementRef<'_>) -> bool {
    let name = element.value().name();
    if LEFT_OUT_TAGS.contains(&name) {
        return true;
    }
    let mut hidden = false;
    let mut role = "";
    for (attribute, value) in element.value().attrs() {
        match attribute {
            "hidden" => hidden = true,
            "aria-hidden" => hidden |= value == "true",
            "style" => hidden |= value.replace(' ', "").contains("display:none"),
            "role" => role = value,
            _ => {}
        }
    }
    // Tab panels are hidden until selected, but their text belongs to the page.
    if (hidden && role != "tabpanel") || LEFT_OUT_ROLES.contains(&role) {
        return true;
    }
    match name {
        "aside" if !is_content_aside(element) => return true,
        "header" if is_site_header(element) => return true,
        "span" if has_class(element, "lang") => return true,
        _ => {}
    }
    element.value().id().is_some_and(|id| LEFT_OUT_IDS.contains(&id))
        || has_any_class(element, LEFT_OUT_CLASSES)
        || is_news(element)
        || (has_class(element, "contents") && has_any_class(element, &["topic", "local"]))
}

/// "Last updated 3 months ago", "Was this helpful?": text about the page that no class marks.
fn is_news(element: ElementRef<'_>) -> bool {
    const LONGEST: usize = 60;
    if !matches!(element.value().name(), "p" | "div" | "span" | "small") {
        return false;
    }
    let mut text = String::new();
    for part in element.text() {
        text.push_str(part.trim_start_matches('\n'));
        if text.trim_start().len() > LONGEST {
            return false;
        }
    }
    let text = text.trim().to_ascii_lowercase();
    let starts =
        ["last updated", "last modified on", "last update:"].iter().any(|start| text.starts_with(start));
    starts || matches!(text.as_str(), "was this helpful?" | "was this page helpful?" | "on this page")
}

/// Sphinx renders topics, footnotes and sidebars as asides; elsewhere asides are navigation.
fn is_content_aside(element: ElementRef<'_>) -> bool {
    is_admonition(element)
        || has_any_class(element, &["topic", "footnote", "footnote-list", "citation"])
        || element.child_elements().next().is_some_and(|child| has_class(child, "sidebar-title"))
}

/// The header of an article contains its title; the header of the site contains navigation.
fn is_site_header(element: ElementRef<'_>) -> bool {
    let mut has_heading = false;
    for inside in element.descendent_elements() {
        has_heading |= heading_level(inside).is_some();
        if inside.value().name() == "nav" && !is_breadcrumb(inside) {
            return true;
        }
    }
    !has_heading
}

/// Breadcrumbs, which may be above the title of the page.
fn is_breadcrumb(nav: ElementRef<'_>) -> bool {
    nav.attr("aria-label").is_some_and(|label| label.to_ascii_lowercase().contains("breadcrumb"))
}

/// A link without content: `#` next to a heading, "Edit this page".
pub(super) fn is_boilerplate_link(link: ElementRef<'_>) -> bool {
    const LONGEST: usize = 40;
    let mut parts = link.text().map(str::trim).filter(|part| !part.is_empty());
    // "Next" above the title of the next page.
    let first = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_way = matches!(first.as_str(), "next" | "previous" | "prev" | "next page" | "previous page");
    if is_way && parts.next().is_some() {
        return true;
    }
    let mut text = String::new();
    for part in link.text() {
        text.push_str(part.trim());
        if text.len() > LONGEST {
            return false;
        }
    }
    let to_itself = link.attr("href").is_some_and(|href| href.starts_with('#'));
    let is_glyph = text.chars().all(|c| matches!(c, '#' | '¶' | '§' | '🔗' | '\u{200b}' | '\u{fe0f}'));
    if is_glyph {
        return to_itself && (!text.is_empty() || link.attr("id").is_some() || link.attr("class").is_some());
    }
    matches!(
        text.to_ascii_lowercase().as_str(),
        "edit this page"
            | "edit this page on github"
            | "edit on github"
            | "view page source"
            | "suggest edits"
    )
}

/// Whether an element starts on a new line.
pub(super) fn is_block(element: ElementRef<'_>) -> bool {
    const BLOCKS: [&str; 38] = [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "label",
        "legend",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "th",
        "tr",
        "ul",
    ];
    BLOCKS.contains(&element.value().name())
}

pub(super) fn heading_level(element: ElementRef<'_>) -> Option<u8> {
    match element.value().name() {
        "h1" => Some(1),
        "h2" => Some(2),
        "h3" => Some(3),
        "h4" => Some(4),
        "h5" => Some(5),
        "h6" => Some(6),
        _ => None,
    }
}

/// The id to use in a link to this heading.
pub(super) fn anchor(heading: ElementRef<'_>) -> Option<String> {
    section_id(heading)
        .or_else(|| heading.value().id())
        .or_else(|| heading.descendent_elements().find_map(target))
        .or_else(|| heading.descendent_elements().find_map(own_link))
        .or_else(|| target_before(heading))
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}

/// Sphinx puts the id on the section that the heading starts.
fn section_id(heading: ElementRef<'_>) -> Option<&str> {
    let section = heading.parent().and_then(ElementRef::wrap)?;
    let is_section = section.value().name() == "section"
        || (section.value().name() == "div" && has_class(section, "section"));
    let mut before = heading.prev_siblings().filter_map(ElementRef::wrap);
    let opens = is_section && !before.any(|sibling| heading_level(sibling).is_some());
    opens.then(|| section.value().id()).flatten()
}

fn target(element: ElementRef<'_>) -> Option<&str> {
    match element.value().name() {
        "a" => element.value().id().or_else(|| element.attr("name")),
        "span" => element.value().id(),
        _ => None,
    }
}

/// The permalink of a heading names its anchor.
fn own_link(element: ElementRef<'_>) -> Option<&str> {
    let is_own = has_any_class(element, &["headerlink", "hash-link", "header-anchor", "header", "anchor"]);
    is_own.then(|| element.attr("href")).flatten()?.strip_prefix('#')
}

/// `<a id="x"></a>` just above the heading, alone or in its own paragraph.
fn target_before(heading: ElementRef<'_>) -> Option<&str> {
    let above = heading.prev_siblings().find_map(ElementRef::wrap)?;
    if above.text().any(|text| !text.trim().is_empty()) {
        return None;
    }
    target(above).or_else(|| above.child_elements().find_map(target))
}

/// Whether an element is a note, tip or warning.
pub(super) fn is_admonition(element: ElementRef<'_>) -> bool {
    const CLASSES: [&str; 10] = [
        "admonition",
        "admonitionblock",
        "theme-admonition",
        "alert",
        "markdown-alert",
        "custom-block",
        "starlight-aside",
        "callout",
        "blockquote-tag",
        "hint",
    ];
    // Docusaurus styles collapsible text like a note.
    let is_details = element.value().name() == "details";
    is_block(element) && !is_details && has_any_class(element, &CLASSES)
}

/// Whether an element contains the title of an admonition.
pub(super) fn is_admonition_title(element: ElementRef<'_>) -> bool {
    const CLASSES: [&str; 9] = [
        "admonition-title",
        "admonition-heading",
        "alert-heading",
        "alert-title",
        "markdown-alert-title",
        "custom-block-title",
        "starlight-aside__title",
        "callout-title",
        "blockquote-tag-title",
    ];
    // Asciidoctor uses a table cell for the title; Docusaurus appends a hash to the class name.
    has_any_class(element, &CLASSES)
        || (element.value().name() == "td" && has_class(element, "icon"))
        || element.value().classes().any(|class| class.starts_with("admonitionHeading"))
}

/// Whether an element contains the names of tabs; their panels follow.
pub(super) fn is_tab_list(element: ElementRef<'_>) -> bool {
    element.attr("role") == Some("tablist") || has_class(element, "tabbed-labels")
}

/// Whether an element is the name of one tab.
pub(super) fn is_tab(element: ElementRef<'_>) -> bool {
    element.attr("role") == Some("tab") || element.value().name() == "label"
}

/// Whether an element is the content of one tab.
pub(super) fn is_tab_panel(element: ElementRef<'_>) -> bool {
    element.attr("role") == Some("tabpanel") || has_class(element, "tabbed-block")
}

/// Whether the term of a definition list is the signature of an API.
pub(super) fn is_signature(term: ElementRef<'_>) -> bool {
    const DOMAINS: [&str; 9] =
        ["py", "function", "method", "class", "data", "attribute", "exception", "describe", "envvar"];
    has_class(term, "sig")
        || (term.value().id().is_some()
            && term.parent().and_then(ElementRef::wrap).is_some_and(|list| has_any_class(list, &DOMAINS)))
}
