//! What every index must do with the versions and locales of a book.
//!
//! Invariant: the contract does not depend on the index it tests.

use std::sync::Arc;

use super::{LetterEmbedder, chunk, load};
use crate::chunk::Chunk;
use crate::edition::Edition;
use crate::embed::Vector;
use crate::index::{Filter, Index, IndexQuery};

/// What an index must do with the versions and locales of a book.
pub(super) async fn contract(make: &impl AsyncFn(Vec<(Chunk, Vector)>) -> Arc<dyn Index>) {
    let edition = |version: &str, is_other_version, locale: &str, is_other_locale| Edition {
        version: Some(version.to_owned()),
        locale: Some(locale.to_owned()),
        is_other_version,
        is_other_locale,
    };
    let mut chunks = [
        chunk("next", 0, "A valve of the coming mill."),
        chunk("new", 0, "A valve of the mill."),
        chunk("old", 0, "A valve of the old mill."),
        chunk("neu", 0, "A valve, Ventil, of the mill."),
        chunk("blog", 0, "A valve in the news."),
    ];
    chunks[0].edition = edition("next", true, "en", false);
    chunks[1].edition = edition("2.0", false, "en", false);
    chunks[2].edition = edition("1.0", true, "en", false);
    chunks[3].edition = edition("2.0", false, "de", true);
    let with_vectors = |chunk: &Chunk| (chunk.clone(), LetterEmbedder::vector(&chunk.embedded_text()));
    let index = make(chunks.iter().map(with_vectors).collect()).await;

    // The default version in the default locale, unless a request names others; a page without a version belongs to
    // all of them.
    let vector = LetterEmbedder::vector("valve");
    for (version, locale, expected) in [
        (None, None, vec!["blog", "new"]),
        (Some("1.0"), None, vec!["blog", "old"]),
        (Some("next"), None, vec!["blog", "next"]),
        (None, Some("de"), vec!["blog", "neu"]),
        (Some("1.0"), Some("de"), vec!["blog"]),
        (Some("all"), None, vec!["blog", "new", "next", "old"]),
        (Some("all"), Some("all"), vec!["blog", "neu", "new", "next", "old"]),
        (Some("9.9"), None, vec!["blog"]),
    ] {
        let filter = Filter::requested(None, None, version.map(str::to_owned), locale.map(str::to_owned));
        let query =
            IndexQuery { text: "valve", vector: Some(&vector), filter: &filter, depth: 10, analyzed: false };
        let found = index.search(&query).await.unwrap();
        for ranking in [&found.lexical, &found.dense] {
            let found = load(&*index, ranking).await.unwrap();
            let mut pages: Vec<&str> = found.iter().map(|chunk| chunk.document_id.as_str()).collect();
            pages.sort_unstable();
            assert_eq!(pages, expected, "{filter:?}");
            assert!(found.iter().all(|chunk| chunks.contains(chunk)), "{found:?}");
        }
    }

    // The description lists them, the default ones first, and the outline has them.
    let description = index.describe().await.unwrap();
    assert_eq!(description.version_names(), ["2.0", "next", "1.0"]);
    assert_eq!(description.locale_names(), ["en", "de"]);
    let counted: Vec<_> = description.versions.iter().map(|v| (v.is_default, v.pages)).collect();
    assert_eq!(counted, [(true, 2), (false, 1), (false, 1)]);
    let outline = index.outline().await.unwrap();
    assert_eq!(outline.iter().map(|page| &page.edition).collect::<Vec<_>>(), {
        chunks.iter().map(|chunk| &chunk.edition).collect::<Vec<_>>()
    });
}
