//! Looks and wording of the chat page, from `[chat]`: its HTML with other words, a style sheet with other colors, and the
//! logo.
//!
//! Invariant: with any accent color, text in it and text on it have a contrast of at least 4.5:1.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::error::{ApiError, Code};
use super::{assets, figure, pages};
use crate::plot::escape;
use crate::settings::Chat;

type Color = [u8; 3];

const WHITE: Color = [255; 3];
const BLACK: Color = [0; 3];
/// The darkest background of text in `base.css` in the light theme, and the lightest one in the dark theme.
const GROUNDS: [Color; 2] = [[0xf2, 0xef, 0xe8], [0x1e, 0x21, 0x24]];

/// The lowest contrast of text according to WCAG, level AA.
const READABLE: f64 = 4.5;

/// The words of `index.html` that can be replaced.
const HEADING: &str = "What would you like to know?";
const WELCOME: &str = "Answers come only from this book. Every sentence cites the words that support it. If the book doesn't \
                       cover something, Docent tells you so.";
const PLACEHOLDER: &str = "Ask the book a question";
/// The logo comes before the title.
const TITLE: &str = "<div class=\"book\">";

/// The configured looks.
pub struct Look {
    page: String,
    style: String,
    logo: Option<(&'static str, Vec<u8>)>,
}

impl Look {
    /// Applies the settings.
    pub fn new(settings: &Chat) -> Self {
        let mut page = assets::get("index.html").map(|page| page.content.clone()).unwrap_or_default();
        let words = [
            (HEADING, &settings.heading),
            (WELCOME, &settings.welcome),
            (PLACEHOLDER, &settings.placeholder),
        ];
        for (own, other) in words {
            if let Some(other) = other.as_ref().filter(|other| !other.trim().is_empty()) {
                page = page.replacen(own, &escape(other.trim()), 1);
            }
        }
        let logo = settings.logo();
        if logo.is_some() {
            let image = format!("<img class=\"logo\" src=\"assets/logo\" alt=\"\">{TITLE}");
            page = page.replacen(TITLE, &image, 1);
        }
        Self { page, style: settings.accent().map(style).unwrap_or_default(), logo }
    }

    /// The chat page.
    pub fn page(&self, headers: &HeaderMap) -> Response {
        pages::text("text/html; charset=utf-8", &self.page, headers)
    }

    /// The style sheet; empty without an accent color.
    pub fn style(&self, headers: &HeaderMap) -> Response {
        pages::text("text/css; charset=utf-8", &self.style, headers)
    }

    /// The logo.
    pub fn logo(&self) -> Response {
        match &self.logo {
            Some((kind, bytes)) => {
                let described = [
                    (header::CONTENT_TYPE, *kind),
                    (header::CACHE_CONTROL, "max-age=3600"),
                    (header::CONTENT_SECURITY_POLICY, figure::POLICY),
                ];
                (described, bytes.clone()).into_response()
            }
            None => ApiError::new(Code::NotFound, "Not found").into_response(),
        }
    }
}

/// The variables of `base.css` that follow from the accent color.
fn style(accent: Color) -> String {
    let theme = |selector: &str, ground: Color, paper: Color, far: Color| {
        let shown = readable(accent, ground, far);
        let tint = mixed(shown, paper, 0.86);
        let strong = readable(mixed(shown, far, 0.2), tint, far);
        let on = if contrast(shown, WHITE) >= READABLE { WHITE } else { BLACK };
        let [shown, strong, tint, on] = [shown, strong, tint, on].map(hex::encode);
        format!(
            "{selector}{{--accent:#{shown};--accent-strong:#{strong};--accent-tint:#{tint};--on-accent:#{on}}}\n"
        )
    };
    let [light, dark] = GROUNDS;
    theme(":root", light, WHITE, BLACK)
        + &theme(":root[data-theme=\"dark\"]", dark, [0x16, 0x18, 0x1a], WHITE)
}

/// The color, mixed with as much of `far` as text of this color needs to be readable on `ground`.
fn readable(color: Color, ground: Color, far: Color) -> Color {
    let steps = (0..=20).map(|step| mixed(color, far, f64::from(step) / 20.0));
    steps.into_iter().find(|color| contrast(*color, ground) >= READABLE).unwrap_or(far)
}

/// `share` of `other`, the rest of `color`.
fn mixed(color: Color, other: Color, share: f64) -> Color {
    std::array::from_fn(|part| {
        (f64::from(color[part]) * (1.0 - share) + f64::from(other[part]) * share).round() as u8
    })
}

/// The contrast of two colors as WCAG defines it.
fn contrast(one: Color, other: Color) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

fn luminance(color: Color) -> f64 {
    let [red, green, blue] = color.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_words_that_can_be_replaced() {
        let page = &assets::get("index.html").unwrap().content;
        for words in [HEADING, WELCOME, PLACEHOLDER, TITLE] {
            assert_eq!(page.matches(words).count(), 1, "{words}");
        }
        let chat = Chat { heading: Some("Ask <us>".to_owned()), ..Chat::default() };
        let page = Look::new(&chat).page;
        assert!(page.contains("Ask &lt;us&gt;") && !page.contains(HEADING));
        assert!(page.contains(WELCOME));
    }

    #[test]
    fn every_accent_color_is_readable() {
        for accent in ["000000", "ffffff", "ffff00", "0000ff", "ff0000", "7f7f7f", "0f6a5b"] {
            let color = |text: &str| {
                let mut color = BLACK;
                hex::decode_to_slice(text, &mut color).unwrap();
                color
            };
            let style = style(color(accent));
            let found: Vec<Color> = style.split('#').skip(1).map(|rest| color(&rest[..6])).collect();
            for (theme, ground) in found.chunks(4).zip(GROUNDS) {
                let [shown, strong, tint, on] = theme else { panic!("{style}") };
                for (text, below) in [(shown, &ground), (strong, tint), (on, shown)] {
                    assert!(contrast(*text, *below) >= READABLE, "{accent}: {text:?} on {below:?}");
                }
            }
        }
    }
}
