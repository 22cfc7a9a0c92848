//! Finds the text of a page that no known site generator made.
//!
//! Text outside links counts fully for the element around its paragraph, and half for the element around
//! that. The element with the highest score is the content, provided that it contains most of the text.
//!
//! Invariant: one pass over the page; a page without a clear winner is read as a whole.

use std::collections::HashMap;

use scraper::{ElementRef, Html, Node};

use super::element::{is_block, is_left_out};

/// With fewer bytes than this, there is too little text to decide.
const FEWEST: usize = 200;

/// The element that contains the text of the page, or `whole` if none stands out.
pub(super) fn content<'a>(page: &'a Html, whole: ElementRef<'a>) -> ElementRef<'a> {
    // For each element: whether its text is ignored, and the innermost block that is or contains it.
    let mut around = HashMap::from([(whole.id(), (false, whole.id()))]);
    let mut scores = HashMap::new();
    let mut total = 0;
    for node in whole.descendants().skip(1) {
        let parent = node.parent().and_then(|parent| around.get(&parent.id()).copied());
        let Some((is_outside, mut block)) = parent else { continue };
        if let Some(element) = ElementRef::wrap(node) {
            let outside = is_outside || element.value().name() == "a" || is_left_out(element);
            around.insert(node.id(), (outside, if is_block(element) { node.id() } else { block }));
        }
        let Node::Text(text) = node.value() else { continue };
        let length = text.trim().len();
        if is_outside || length == 0 {
            continue;
        }
        total += length;
        // Skip the innermost block: a paragraph alone is not the text of the page.
        for share in [2, 1] {
            let outer = page.tree.get(block).and_then(|block| block.parent());
            let Some((_, outer)) = outer.and_then(|outer| around.get(&outer.id())) else { break };
            block = *outer;
            *scores.entry(block).or_insert(0) += length * share;
        }
    }
    let best = scores.into_iter().max_by_key(|(id, score)| (*score, *id));
    match best {
        Some((id, score)) if score >= total && score >= FEWEST * 2 => {
            page.tree.get(id).and_then(ElementRef::wrap).unwrap_or(whole)
        }
        _ => whole,
    }
}
