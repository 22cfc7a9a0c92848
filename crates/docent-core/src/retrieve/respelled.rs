//! Correct the misspelled words of a question with what the book contains.
//!
//! Invariant: a word that the book contains is never changed.

use super::{RetrieveError, Retriever};
use crate::index::{Filter, IndexQuery};
use crate::language::Language;
use crate::spelling::{self, Doubtful};

impl Retriever {
    /// The question with misspelled words corrected; none if nothing had to be.
    pub(super) async fn respelled(&self, question: &str) -> Result<Option<String>, RetrieveError> {
        let Some(embedder) = self.embedder.as_ref().filter(|_| self.language() == Language::default()) else {
            return Ok(None);
        };
        let doubtful = spelling::doubtful(question, &|word| embedder.similar_words(word));
        let mut corrections = Vec::new();
        for Doubtful { span, word, similar } in doubtful {
            if !self.is_absent(word).await? {
                continue;
            }
            let mut right = None;
            for other in similar {
                if !self.is_absent(&other).await? {
                    right = Some(other);
                    break;
                }
            }
            if right.is_none() {
                let outline = self.outline().await?;
                let headings = outline.iter().flat_map(|page| {
                    let headings = page.sections.iter().filter_map(|section| section.heading.as_deref());
                    std::iter::once(page.title.as_str()).chain(headings)
                });
                right = spelling::of_headings(word, headings);
            }
            corrections.extend(right.map(|right| (span, right)));
        }
        Ok((!corrections.is_empty()).then(|| spelling::corrected(question, &corrections)))
    }

    /// Whether a word has a term that the book lacks; words without a term are not absent.
    async fn is_absent(&self, word: &str) -> Result<bool, RetrieveError> {
        let filter = Filter::default();
        let query = IndexQuery { text: word, vector: None, filter: &filter, depth: 1, analyzed: false };
        Ok(!self.index.search(&query).await?.absent.is_empty())
    }
}
