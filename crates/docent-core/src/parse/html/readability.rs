//! Find the text of a page that no known generator made.
//!
//! Words outside links count for the element around their paragraph, and half for the one
//! around that. The element with the most is the text, if it has the most part of all words.
//!
//! Invariant: one pass over the page; a page without a clear winner is read as a whole.

use std::collections::HashMap;

use scraper::{ElementRef, Html, Node};

use super::element::{is_block, is_left_out};

/// Fewer bytes than this say too little to choose by.
const FEWEST: usize = 200;

/// The element with the text of the page, or `whole` when none stands out.
pub(super) fn content<'a>(page: &'a Html, whole: ElementRef<'a>) -> ElementRef<'a> {
    // Of each element: whether its words count for nothing, and the innermost block it is or stands in.
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
        // The block of the words themselves, a paragraph, is not the text of the page.
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
