//! Collect questions from the pages of a book.
//!
//! Invariant: a request reads no more pages than it needs, so that a few questions about a large book are cheap.

use super::pick::{book_order, round_robin};
use super::{QuizQuestion, questions};
use crate::index::Filter;
use crate::retrieve::{RetrieveError, Retriever};

/// Maximum number of questions in one request.
pub const MOST_QUESTIONS: usize = 1000;

/// Maximum number of pages that one request reads.
const MOST_PAGES: usize = 2000;

/// At most `limit` questions about a page; `None` if the part of the book has no such page.
pub async fn of_page(
    book: &Retriever,
    page: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Option<Vec<QuizQuestion>>, RetrieveError> {
    let chunks = book.page(page).await?;
    let filter = filter.for_one_page();
    if !chunks.first().is_some_and(|chunk| filter.admits(chunk)) {
        return Ok(None);
    }
    let mut found = questions(&chunks);
    found.truncate(limit);
    Ok(Some(found))
}

/// At most `limit` questions about a part of the book, the first of each page first.
pub async fn of_book(
    book: &Retriever,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<QuizQuestion>, RetrieveError> {
    let outline = book.outline().await?;
    let pages: Vec<&str> = outline
        .iter()
        .filter(|page| filter.admits_page(page))
        .map(|page| page.document_id.as_str())
        .collect();
    // A page gives no more than its share, unless other pages give less.
    let share = limit.div_ceil(pages.len().max(1));
    let mut found: Vec<(usize, Vec<QuizQuestion>)> = Vec::new();
    let mut count = 0;
    for place in book_order(pages.len()).into_iter().take(MOST_PAGES) {
        if count >= limit {
            break;
        }
        let made = questions(&book.page(pages[place]).await?);
        count += made.len().min(share);
        found.push((place, made));
    }
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(round_robin(found.into_iter().map(|(_, made)| made).collect(), limit))
}
