//! Groups the glyphs of a page into lines of text, in the order in which the page draws them.
//!
//! Invariant: a page that draws more than `MOST_DRAWN` objects is abandoned, not interpreted to the end.

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, TransformExt, interpret_page,
};

/// A page with more glyphs, paths or images is a drawing.
pub(super) const MOST_DRAWN: usize = 500_000;

/// Separates words that are far apart in a line: the cells of a table.
pub(super) const CELL: &str = " | ";

/// A line of text and its position.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) left: f64,
    pub(super) right: f64,
    /// Distance from the top of the page, as a fraction of its height.
    pub(super) place: f64,
    /// The baseline, measured downwards.
    pub(super) y: f64,
    pub(super) size: f64,
    /// Whether the font is monospaced.
    pub(super) is_mono: bool,
    /// The width of its letters, if so.
    pub(super) letter: f64,
    varied: bool,
    letters: usize,
}

/// Extracts the lines of a page.
pub(super) fn lines<'a>(
    page: &Page<'a>,
    cache: &InterpreterCache<'a>,
    settings: &InterpreterSettings,
) -> Vec<Line> {
    let (width, height) = page.render_dimensions();
    let mut context = Context::new(
        page.initial_transform(true).to_kurbo(),
        Rect::new(0.0, 0.0, f64::from(width), f64::from(height)),
        cache,
        page.xref(),
        settings.clone(),
    );
    let mut reader = Reader { height: f64::from(height).max(1.0), lines: Vec::new(), drawn: 0 };
    interpret_page(page, &mut context, &mut reader);
    reader.lines.retain(|line| !line.text.trim().is_empty());
    for line in &mut reader.lines {
        line.is_mono = !line.varied && line.letters >= 2;
        line.text = line.text.trim().to_owned();
    }
    reader.lines
}

/// The reason for abandoning a page.
pub(super) struct TooMuch;

struct Reader {
    height: f64,
    lines: Vec<Line>,
    drawn: usize,
}

impl Reader {
    fn count(&mut self) {
        self.drawn += 1;
        if self.drawn > MOST_DRAWN {
            // There is no other way to stop the interpreter; the caller catches this.
            std::panic::resume_unwind(Box::new(TooMuch));
        }
    }

    fn glyph(&mut self, glyph: &Glyph<'_>, transform: Affine) {
        let Some(text) = text(glyph) else { return };
        let Some(place) = Placed::of(glyph, transform) else { return };
        let Placed { left, right, y, size } = place;
        let goes_on = self.lines.last().is_some_and(|line| {
            let close = (y - line.y).abs() < line.size.max(size) * 0.45;
            close && left > line.right - size
        });
        if !goes_on {
            let letter = right - left;
            let place = y / self.height;
            self.lines.push(Line { left, right: left, place, y, size, letter, ..Line::default() });
        }
        if let Some(line) = self.lines.last_mut() {
            line.push(&text, &place);
        }
    }
}

/// The text of a glyph.
pub(super) fn text(glyph: &Glyph<'_>) -> Option<String> {
    match glyph.as_unicode()? {
        BfString::Char(c) => Some(c.to_string()),
        BfString::String(text) => Some(text),
    }
}

/// Where a glyph is on the page.
pub(super) struct Placed {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl Placed {
    /// Nothing for vertical text in the margin, watermarks across the page and broken measures.
    pub(super) fn of(glyph: &Glyph<'_>, transform: Affine) -> Option<Self> {
        let [a, b, c, d, ..] = transform.as_coeffs();
        if b.abs() > a.abs() * 0.1 {
            return None;
        }
        let advance = match glyph {
            Glyph::Outline(glyph) => glyph.advance_width(),
            Glyph::Type3(glyph) => glyph.advance_width(),
        };
        let size = c.hypot(d) * 1_000.0;
        let start = transform * Point::ORIGIN;
        let end = transform * Point::new(f64::from(advance.unwrap_or(500.0)), 0.0);
        let is_finite = start.x.is_finite() && start.y.is_finite() && end.x.is_finite() && size.is_finite();
        (is_finite && size > 0.0).then_some(Self { left: start.x, right: end.x, y: start.y, size })
    }
}

impl Line {
    /// Appends the text of a glyph, after the space that its place on the page implies.
    fn push(&mut self, text: &str, glyph: &Placed) {
        let Placed { left, right, size, .. } = *glyph;
        let gap = left - self.right;
        if gap > size * 1.5 && !self.text.is_empty() {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str(CELL);
        } else if gap > size * 0.18 && !self.text.ends_with(' ') && !self.text.is_empty() && text != " " {
            self.text.push(' ');
        }
        let blank = text.trim().is_empty();
        if self.text.is_empty() && blank {
            self.right = right;
            self.left = right;
            return;
        }
        for c in text.chars() {
            match c {
                'ﬁ' => self.text.push_str("fi"),
                'ﬂ' => self.text.push_str("fl"),
                'ﬀ' => self.text.push_str("ff"),
                'ﬃ' => self.text.push_str("ffi"),
                'ﬄ' => self.text.push_str("ffl"),
                '\u{a0}' => self.text.push(' '),
                c if c.is_control() => {}
                c => self.text.push(c),
            }
        }
        self.right = self.right.max(right);
        if !blank {
            self.letters += 1;
            self.varied |= (right - left - self.letter).abs() > size * 0.01;
            self.size = self.size.max(size);
        }
    }
}

impl<'a> Device<'a> for Reader {
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
