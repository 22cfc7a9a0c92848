//! `GET /read/.figure/{name}`: the book's own copies of its images; and figures as HTML.
//!
//! Invariant: an image cannot run scripts or request anything, even if a user opens its address.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use docent_backends::figures;
use docent_parse::document::Figure;

use super::access::Keystroke;
use super::error::{ApiError, Code};
use super::{Server, html};
use crate::plot::escape;
use crate::readable::FIGURES;

/// SVG files may contain scripts, links and styles.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// An image. A page may have many of them, so they are limited like keystrokes.
pub async fn figure(
    State(server): State<Arc<Server>>,
    _: Keystroke,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path(name) = name?;
    let missing = || ApiError::new(Code::NotFound, "There is no such image");
    let folder = server.index_folder.clone().ok_or_else(missing)?;
    let read = tokio::task::spawn_blocking(move || figures::open(&folder, &name));
    let found = read.await.map_err(|error| ApiError::internal("reading an image", &error))?;
    let (kind, bytes) = found.ok_or_else(missing)?;
    let described = [
        (header::CONTENT_TYPE, kind),
        // The name depends on the content.
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    Ok((described, bytes).into_response())
}

/// The rendered text of a passage with its figures: each in place of its caption, or after the block that has it.
pub fn with_figures(mut shown: String, figures: &[Figure]) -> String {
    for figure in figures {
        let caption = html::piece(&figure.caption);
        let made = rendered(figure, &caption);
        let alone = format!("<p>{caption}</p>");
        if let Some(at) = shown.find(&alone) {
            shown.replace_range(at..at + alone.len(), &made);
            continue;
        }
        let end = shown.find(&caption).and_then(|at| {
            let ends = ["</p>", "</ul>", "</ol>", "</table>", "</blockquote>"];
            let ends = ends.iter().filter_map(|end| Some(at + shown[at..].find(end)? + end.len()));
            ends.min()
        });
        shown.insert_str(end.unwrap_or(shown.len()), &made);
    }
    shown
}

/// A copy is shown; an image on another site is only linked, because a page must not request anything there.
fn rendered(figure: &Figure, caption: &str) -> String {
    let (image, described) = (escape(&figure.image), escape(&figure.caption));
    match figure.image.split_once(FIGURES) {
        Some((_, name)) => {
            let image = escape(&format!("{FIGURES}{name}"));
            format!(
                "<figure><a href=\"{image}\" target=\"_blank\" rel=\"noopener\"><img src=\"{image}\" alt=\"{described}\" \
                 loading=\"lazy\"></a><figcaption>{caption}</figcaption></figure>"
            )
        }
        None => format!(
            "<figure><figcaption>{caption}</figcaption><a href=\"{image}\" target=\"_blank\" rel=\"noopener noreferrer\">Open the \
             figure</a></figure>"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &str, caption: &str, image: &str) -> String {
        with_figures(html::document(markdown), &[Figure::new(caption, image)])
    }

    #[test]
    fn a_figure_replaces_its_caption_or_follows_it() {
        let image = "http://127.0.0.1:8080/read/.figure/1.png";
        let html = shown("Before.\n\nThe `a` <graph>\n\nAfter.", "The `a` <graph>", image);
        assert_eq!(
            html,
            "<p>Before.</p>\n<figure><a href=\"/read/.figure/1.png\" target=\"_blank\" rel=\"noopener\"><img \
             src=\"/read/.figure/1.png\" alt=\"The `a` &lt;graph&gt;\" loading=\"lazy\"></a><figcaption>The <code>a</code> \
             &lt;graph&gt;</figcaption></figure>\n<p>After.</p>"
        );
        let html = shown("See the wheel here.\n\nAfter.", "the wheel", image);
        assert!(html.starts_with("<p>See the wheel here.</p><figure>"), "{html}");
        let html = shown("- the wheel\n- more\n\nAfter.", "the wheel", image);
        assert!(html.contains("</ul><figure>"), "{html}");
    }

    #[test]
    fn an_image_on_another_site_is_linked() {
        let html = shown("The wheel", "The wheel", "https://x.org/w.png?a=\"><script>");
        assert!(!html.contains("<img") && !html.contains("<script"), "{html}");
        assert!(html.contains("href=\"https://x.org/w.png?a=&quot;&gt;&lt;script&gt;\""), "{html}");
    }
}
