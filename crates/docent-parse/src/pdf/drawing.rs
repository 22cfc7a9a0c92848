//! Draws a page of a PDF as SVG, and says where its letters are.
//!
//! Only the positions of letters and digits are kept, because words are found by them alone: spaces, hyphens at the end
//! of a line and punctuation differ between a page and its text.
//!
//! Invariant: positions are fractions of the width and the height of the page, whatever its size and rotation.

use std::panic::catch_unwind;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, TransformExt, interpret_page,
};
use hayro_svg::{RenderCache, SvgRenderSettings, convert};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::MOST_PAGES;
use super::lines::{MOST_DRAWN, Placed, TooMuch, text};

/// Maximum number of letters whose positions are kept; a page of a book has a few thousand.
const MOST_LETTERS: usize = 30_000;

/// Letters of one line that are further apart, as a fraction of the width of the page, get areas of their own.
const APART: f32 = 0.05;

/// How far a letter reaches above and below its baseline, in sizes of its font.
const ABOVE: f64 = 0.85;
/// See [`ABOVE`].
const BELOW: f64 = 0.25;

/// A drawn page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Drawing {
    /// The page as an SVG file.
    pub svg: String,
    /// Its width, in points.
    pub width: f32,
    /// Its height, in points.
    pub height: f32,
    /// Its letters and digits, in the order in which the page draws them.
    pub letters: Vec<Letter>,
}

/// A letter or digit and its place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    sign: char,
    area: Area,
}

/// A rectangle on a page; all sides are fractions of the width or the height of the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Area {
    /// Distance of its left side from that of the page.
    pub left: f32,
    /// Distance of its upper side from that of the page.
    pub top: f32,
    /// Distance of its right side from the left side of the page.
    pub right: f32,
    /// Distance of its lower side from the upper side of the page.
    pub bottom: f32,
}

/// Draws a page; the first has the number 1. None if there is no such page, or if it is damaged or too complex.
///
/// Memory and time have no limit here, so files that are not trusted belong into a process that has them.
pub fn draw_page(bytes: Vec<u8>, number: usize) -> Option<Drawing> {
    catch_unwind(|| draw(bytes, number)).ok().flatten()
}

fn draw(bytes: Vec<u8>, number: usize) -> Option<Drawing> {
    let pdf = Pdf::new(bytes).ok()?;
    let page = pdf.pages().iter().take(MOST_PAGES).nth(number.checked_sub(1)?)?;
    let settings = InterpreterSettings::default();
    let (width, height) = page.render_dimensions();
    // First, because this gives up on a page that draws too much.
    let letters = letters(page, &settings);
    let white = SvgRenderSettings { bg_color: [255; 4] };
    let svg = convert(page, &RenderCache::new(), &settings, &white);
    Some(Drawing { svg, width, height, letters })
}

fn letters(page: &Page<'_>, settings: &InterpreterSettings) -> Vec<Letter> {
    let (width, height) = page.render_dimensions();
    let (width, height) = (f64::from(width).max(1.0), f64::from(height).max(1.0));
    let cache = InterpreterCache::new();
    let transform = page.initial_transform(true).to_kurbo();
    let mut context =
        Context::new(transform, Rect::new(0.0, 0.0, width, height), &cache, page.xref(), settings.clone());
    let mut finder = Finder { width, height, letters: Vec::new(), drawn: 0 };
    interpret_page(page, &mut context, &mut finder);
    finder.letters
}

/// Finds words in the letters of a page and returns their areas, by line. If the words are not there as a whole, each of
/// their lines is looked for. Empty if they are not found.
pub fn areas(letters: &[Letter], words: &str) -> Vec<Area> {
    let found = |words: &str, from: usize| {
        let wanted: Vec<char> = counted(words).collect();
        let rest = letters.get(from..).unwrap_or_default();
        let is_here = |run: &[Letter]| run.iter().map(|letter| letter.sign).eq(wanted.iter().copied());
        let at = if wanted.is_empty() { None } else { rest.windows(wanted.len()).position(is_here) };
        at.map(|at| from + at..from + at + wanted.len())
    };
    let whole = found(words, 0).map(|span| vec![span]);
    let spans = whole.unwrap_or_else(|| {
        let mut end = 0;
        let lines = words.lines().filter_map(|line| {
            let span = found(line, end)?;
            end = span.end;
            Some(span)
        });
        lines.collect()
    });
    let mut areas = Vec::new();
    for span in spans {
        join(&letters[span], &mut areas);
    }
    areas
}

/// Adds the areas of successive letters, joined where they are in one line.
fn join(letters: &[Letter], areas: &mut Vec<Area>) {
    let first = areas.len();
    for Letter { area, .. } in letters {
        let line = areas.get_mut(first..).and_then(<[Area]>::last_mut).filter(|line| {
            let shared = line.bottom.min(area.bottom) - line.top.max(area.top);
            let height = (line.bottom - line.top).min(area.bottom - area.top);
            shared > height / 2.0 && area.left - line.right < APART && area.right > line.left
        });
        match line {
            Some(line) => {
                line.left = line.left.min(area.left);
                line.top = line.top.min(area.top);
                line.right = line.right.max(area.right);
                line.bottom = line.bottom.max(area.bottom);
            }
            None => areas.push(*area),
        }
    }
}

/// The letters and digits of a text, without differences that do not matter: ligatures and upper case.
fn counted(text: &str) -> impl Iterator<Item = char> {
    text.nfkc().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// Collects the letters of a page.
struct Finder {
    width: f64,
    height: f64,
    letters: Vec<Letter>,
    drawn: usize,
}

impl Finder {
    fn count(&mut self) {
        self.drawn += 1;
        if self.drawn > MOST_DRAWN {
            // There is no other way to stop the interpreter; the caller catches this.
            std::panic::resume_unwind(Box::new(TooMuch));
        }
    }

    fn glyph(&mut self, glyph: &Glyph<'_>, transform: Affine) {
        let (Some(text), Some(place)) = (text(glyph), Placed::of(glyph, transform)) else { return };
        let Placed { left, right, y, size } = place;
        let fraction = |value: f64, whole: f64| (value / whole).clamp(0.0, 1.0) as f32;
        let area = Area {
            left: fraction(left.min(right), self.width),
            top: fraction(y - size * ABOVE, self.height),
            right: fraction(left.max(right), self.width),
            bottom: fraction(y + size * BELOW, self.height),
        };
        let room = MOST_LETTERS - self.letters.len();
        self.letters.extend(counted(&text).take(room).map(|sign| Letter { sign, area }));
    }
}

impl<'a> Device<'a> for Finder {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            self.count();
            self.glyph(glyph, props.transform * glyph.transform());
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.count();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.count();
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count();
    }

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.count();
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTLINE: &[u8] = include_bytes!("../../tests/fixtures/outline.pdf");

    fn drawn(number: usize) -> Drawing {
        draw_page(OUTLINE.to_vec(), number).unwrap()
    }

    #[test]
    fn a_page_is_drawn_with_paths_only() {
        let Drawing { svg, width, height, .. } = drawn(2);
        assert!(svg.starts_with("<svg viewBox=\"0 0 ") && svg.contains("<path"), "{svg}");
        for not_wanted in ["<script", "<text", "<foreignObject", "href=\"http", " on"] {
            assert!(!svg.contains(not_wanted), "{not_wanted}");
        }
        assert!(width > 100.0 && height > width, "{width} × {height}");
        assert_ne!(svg, drawn(1).svg);
    }

    #[test]
    fn words_have_an_area_in_each_of_their_lines() {
        let [line] = areas(&drawn(2).letters, "A relief valve opens at 3 bar.")[..] else {
            panic!("one line")
        };
        assert!(line.left > 0.0 && line.right > line.left && line.right < 1.0, "{line:?}");
        assert!(line.top > 0.0 && line.bottom - line.top < 0.05, "{line:?}");
        // The hyphen at the end of the line is not in the text.
        let first = drawn(1);
        let two =
            areas(&first.letters, "A gear pump moves 4 litres a minute. Its well-known weakness is noise.");
        assert!(two.windows(2).all(|pair| pair[0].bottom <= pair[1].bottom), "{two:?}");
        assert!(!two.is_empty());
        // Lines of a table that are not one after another on the page.
        assert_eq!(areas(&drawn(2).letters, "Relief\nnothing like this\nCheck").len(), 2);
        assert_eq!(areas(&first.letters, "A relief valve opens at 3 bar."), []);
        assert_eq!(areas(&first.letters, " . "), []);
    }

    #[test]
    fn pages_that_do_not_exist_and_damaged_files_are_not_drawn() {
        for number in [0, 4, MOST_PAGES + 1, usize::MAX] {
            assert_eq!(draw_page(OUTLINE.to_vec(), number), None, "{number}");
        }
        assert_eq!(draw_page(b"%PDF-1.7 nothing".to_vec(), 1), None);
        assert_eq!(draw_page(include_bytes!("../../tests/fixtures/locked.pdf").to_vec(), 1), None);
        for start in (0..OUTLINE.len()).step_by(37) {
            let mut bytes = OUTLINE.to_vec();
            bytes[start] = bytes[start].wrapping_mul(31).wrapping_add(7);
            draw_page(bytes, 1);
        }
    }
}
