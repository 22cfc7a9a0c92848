//! The title and the labels of a Markdown file.
//!
//! Invariant: text in code blocks defines no labels.

use crate::fence::for_each_line;
use crate::references::Named;
use crate::{d2l, front_matter, myst};

/// MyST: `(label)=` is above a heading. d2lbook: `` :label:`label` `` is below it.
pub(crate) fn named(source: &str) -> Named {
    let (front, body, _) = front_matter::split(source);
    let mut named = Named { title: front.title, labels: Vec::new() };
    let mut open: Vec<String> = Vec::new();
    // The title directly above.
    let mut above: Option<String> = None;
    for_each_line(body, |line, in_code| {
        let bare = line.trim();
        if in_code || bare.is_empty() {
            return;
        }
        let above_it = above.take();
        if let Some((label, title)) = d2l::label(bare).zip(above_it) {
            named.labels.push((label.to_owned(), title));
            return;
        }
        if let Some(label) = myst::target(bare) {
            open.push(label.to_owned());
            return;
        }
        if let Some(title) = bare.strip_prefix('#').map(|rest| rest.trim_matches(['#', ' '])) {
            let title = d2l::without_marks(&title.replace('`', ""));
            above = Some(title.clone());
            if named.title.is_none() && bare.starts_with("# ") {
                named.title = Some(title.clone());
            }
            named.labels.extend(open.drain(..).map(|label| (label, title.clone())));
        }
        open.clear();
    });
    named
}
