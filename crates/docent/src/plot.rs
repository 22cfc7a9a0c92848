//! Charts as inline SVG, and the HTML page that contains them.
//!
//! A page is a single file without scripts or external resources, so it can be mailed, printed and opened years
//! later. Colors are in the page's stylesheet, so charts follow light and dark mode; a table below each chart
//! contains its numbers, for people who cannot see the chart or want to copy them.
//!
//! Invariant: whatever the caller passes, every text is escaped and every drawn number is finite.

mod page;
mod scale;

use scale::{Scale, extent, ticks, usable};

pub use page::{escape, page};

/// The title and description of a chart. Screen readers read the description; it is also shown below the title.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caption<'a> {
    /// The title.
    pub title: &'a str,
    /// One or two sentences on how to read it.
    pub description: &'a str,
}

/// One axis of a chart.
#[derive(Debug, Clone, Copy, Default)]
pub struct Axis<'a> {
    /// What is measured along it.
    pub label: &'a str,
    /// How its values are written.
    pub unit: Unit,
    /// Values that are always in view, even without data there.
    pub range: Option<(f64, f64)>,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Unit {
    /// As it is.
    #[default]
    Number,
    /// A share of one, written as a percentage.
    Share,
}

/// A vertical line at a special value, such as a threshold.
#[derive(Debug, Clone, Copy)]
pub struct Marker<'a> {
    /// Its value on the x axis.
    pub at: f64,
    /// Its label.
    pub label: &'a str,
}

/// A named series of points, drawn in the given order.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Pairs of x and y; a pair that is not finite is left out.
    pub points: Vec<(f64, f64)>,
}

/// A line chart with one or several lines.
#[derive(Debug, Clone, Default)]
pub struct Chart<'a> {
    /// Title and description.
    pub caption: Caption<'a>,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// The lines.
    pub series: Vec<Series<'a>>,
    /// Vertical lines on top.
    pub markers: Vec<Marker<'a>>,
}

/// A histogram of one or several groups of values.
#[derive(Debug, Clone, Default)]
pub struct Histogram<'a> {
    /// Title and description.
    pub caption: Caption<'a>,
    /// What is binned.
    pub x: Axis<'a>,
    /// About how many bins; their edges are round numbers.
    pub bins: usize,
    /// Names with their values. Each group is drawn as shares of its own size, so that a large group does not
    /// hide a small one.
    pub groups: Vec<(&'a str, Vec<f64>)>,
    /// Vertical lines on top.
    pub markers: Vec<Marker<'a>>,
}

/// A chart with a labeled horizontal bar for each row.
#[derive(Debug, Clone, Default)]
pub struct Bars<'a> {
    /// Title and description.
    pub caption: Caption<'a>,
    /// What the values are and how they are written.
    pub x: Axis<'a>,
    /// Labels with their values, from the top.
    pub rows: Vec<(&'a str, f64)>,
}

/// A chart of stacked columns, one for each label, such as a day.
#[derive(Debug, Clone, Default)]
pub struct Columns<'a> {
    /// Title and description.
    pub caption: Caption<'a>,
    /// What the height of a column means.
    pub y: Axis<'a>,
    /// The labels below the columns, from the left.
    pub labels: Vec<&'a str>,
    /// The layers from the bottom up: a name, and one value for each label.
    pub layers: Vec<(&'a str, Vec<f64>)>,
}

/// Draws a line chart.
pub fn line(chart: &Chart) -> String {
    let kept: Vec<Vec<(f64, f64)>> = chart
        .series
        .iter()
        .map(|series| series.points.iter().copied().filter(|(x, y)| usable(*x) && usable(*y)).collect())
        .collect();
    let all = || kept.iter().flatten().copied();
    let marks = chart.markers.iter().map(|marker| marker.at);
    let x = Scale::new(all().map(|(x, _)| x).chain(marks), &chart.x, 10, (LEFT, RIGHT));
    let y = Scale::new(all().map(|(_, y)| y), &chart.y, 5, (BOTTOM, top(&chart.markers)));
    let mut drawing = grid(&x, &y) + &*marker_lines(&chart.markers, &x);
    for (number, points) in kept.iter().enumerate() {
        let path: Vec<String> =
            points.iter().map(|(a, b)| format!("{:.1},{:.1}", x.at(*a), y.at(*b))).collect();
        drawing += &*format!(r#"<polyline class="line s{}" points="{}"/>"#, number % 4, path.join(" "));
        // Dots make single points visible; on a dense line they would only be noise.
        for (a, b) in points.iter().filter(|_| points.len() <= 40) {
            drawing += &*format!(
                r#"<circle class="bar s{}" cx="{:.1}" cy="{:.1}" r="3"><title>{}, {}</title></circle>"#,
                number % 4,
                x.at(*a),
                y.at(*b),
                x.unit.exact(*a),
                y.unit.exact(*b)
            );
        }
    }
    let rows = chart.series.iter().zip(&kept).flat_map(|(series, points)| {
        let (x, y) = (x.unit, y.unit);
        points.iter().map(move |(a, b)| [escape(series.name), x.exact(*a), y.exact(*b)])
    });
    // With a single line, the table needs no column for its name.
    let skipped = usize::from(chart.series.len() == 1);
    let rows = rows.map(|row| row.into_iter().skip(skipped).collect()).collect();
    let head = ["series", chart.x.label, chart.y.label].into_iter().skip(skipped).collect();
    let legend = chart.series.iter().map(|series| series.name).collect();
    figure(&chart.caption, Drawn { drawing, height: HEIGHT, legend, head }, rows)
}

/// Draws a histogram with the groups side by side. A value on an edge belongs to the bin above it, except on the
/// last edge.
pub fn histogram(chart: &Histogram) -> String {
    let groups: Vec<Vec<f64>> = chart
        .groups
        .iter()
        .map(|(_, values)| values.iter().copied().filter(|value| usable(*value)).collect())
        .collect();
    let marks = chart.markers.iter().map(|marker| marker.at);
    let (low, high) = extent(groups.iter().flatten().copied().chain(marks), &chart.x);
    let edges = ticks(low, high, chart.bins.clamp(1, 200));
    let (first, last, bins) = (edges[0], edges[edges.len() - 1], edges.len() - 1);
    let x = Scale::new([first, last].into_iter(), &Axis { range: None, ..chart.x }, 10, (LEFT, RIGHT));
    let x = Scale { low: first, high: last, ..x };
    let bin = |value: &f64| (((value - first) / (last - first) * bins as f64 + 1e-9) as usize).min(bins - 1);
    let mut counts = vec![vec![0usize; bins]; groups.len()];
    for (count, values) in counts.iter_mut().zip(&groups) {
        values.iter().for_each(|value| count[bin(value)] += 1);
    }
    let share = |group: usize, bin: usize| counts[group][bin] as f64 / groups[group].len().max(1) as f64;
    let cells = || (0..bins).flat_map(|bin| (0..groups.len()).map(move |group| (group, bin)));
    let label = if groups.len() > 1 { "share of its group" } else { "share" };
    let axis = Axis { label, unit: Unit::Share, range: Some((0.0, 0.05)) };
    let heights = cells().map(|(group, bin)| share(group, bin));
    let y = Scale::new(heights, &axis, 5, (BOTTOM, top(&chart.markers)));
    let step = (x.end - x.start) / bins as f64;
    let width = 0.88 * step / groups.len().max(1) as f64;
    let span = |bin: usize| format!("{} to {}", x.unit.exact(edges[bin]), x.unit.exact(edges[bin + 1]));
    let told = |group: usize, bin: usize| {
        format!("{} ({})", counts[group][bin], Unit::Share.exact(share(group, bin)))
    };
    let mut drawing = grid(&x, &y);
    for (group, bin) in cells().filter(|(group, bin)| counts[*group][*bin] > 0) {
        let left = x.start + (bin as f64 + 0.06) * step + group as f64 * width;
        let title = format!("{}, {}: {}", escape(chart.groups[group].0), span(bin), told(group, bin));
        drawing += &rectangle(group, left, y.at(share(group, bin)), width, y.start, &title);
    }
    drawing += &marker_lines(&chart.markers, &x);
    let rows = (0..bins).filter(|_| groups.iter().any(|values| !values.is_empty())).map(|bin| {
        let told = (0..groups.len()).map(|group| told(group, bin));
        std::iter::once(span(bin)).chain(told).collect()
    });
    let legend: Vec<&str> = chart.groups.iter().map(|(name, _)| *name).collect();
    let head = std::iter::once(chart.x.label).chain(legend.iter().copied()).collect();
    figure(&chart.caption, Drawn { drawing, height: HEIGHT, legend, head }, rows.collect())
}

/// Draws horizontal bars. A bar without a finite value keeps its label and shows a dash.
pub fn bars(chart: &Bars) -> String {
    const ROW: f64 = 26.0;
    let values = || chart.rows.iter().map(|(_, value)| *value).chain([0.0]);
    // There is no visible axis, so its ends need not be round numbers: the longest bar takes the full width.
    let (low, high) = extent(values(), &chart.x);
    let x = Scale { low, high, ..Scale::new(values(), &chart.x, 5, (LABELS, RIGHT - 40.0)) };
    let mut drawing = String::new();
    for (number, (label, value)) in chart.rows.iter().enumerate() {
        let middle = (number as f64 + 0.5) * ROW;
        let (from, to) = (x.at(0.0), x.at(if usable(*value) { *value } else { 0.0 }));
        let (left, width) = (from.min(to), (to - from).abs());
        let told = x.unit.exact(*value);
        drawing +=
            &rectangle(0, left, middle - 8.0, width, middle + 8.0, &format!("{}: {told}", escape(label)));
        drawing += &text("end", LABELS - 10.0, middle + 4.0, &shorten(label));
        drawing += &text("start", left + width + 6.0, middle + 4.0, &told);
    }
    let rows = chart.rows.iter().map(|(label, value)| vec![escape(label), x.unit.exact(*value)]);
    let height = ROW * chart.rows.len().max(2) as f64;
    let drawn = Drawn { drawing, height, legend: Vec::new(), head: vec!["", chart.x.label] };
    figure(&chart.caption, drawn, rows.collect())
}

/// Draws stacked columns. A layer that is negative or not finite takes no height.
pub fn columns(chart: &Columns) -> String {
    let value = |layer: usize, column: usize| {
        chart.layers[layer].1.get(column).copied().filter(|value| usable(*value)).unwrap_or(0.0).max(0.0)
    };
    let count = chart.labels.len();
    let total = |column: usize| (0..chart.layers.len()).map(|layer| value(layer, column)).sum::<f64>();
    let y = Scale::new((0..count).map(total).chain([0.0]), &chart.y, 5, (BOTTOM, top(&[])));
    let step = (RIGHT - LEFT) / count.max(1) as f64;
    // A label takes about 60 units; if columns are narrower, only some of them get one.
    let every = ((60.0 / step).ceil() as usize).max(1);
    let mut drawing = horizontal_grid(&y);
    for (column, label) in chart.labels.iter().enumerate() {
        let left = LEFT + column as f64 * step;
        let mut below = 0.0;
        for (layer, (name, _)) in
            chart.layers.iter().enumerate().filter(|(layer, _)| value(*layer, column) > 0.0)
        {
            let above = below + value(layer, column);
            let told = y.unit.exact(value(layer, column));
            let title = format!("{}, {}: {told}", escape(label), escape(name));
            drawing += &rectangle(layer, left + 0.1 * step, y.at(above), 0.8 * step, y.at(below), &title);
            below = above;
        }
        if column % every == 0 {
            drawing += &text("middle", left + 0.5 * step, BOTTOM + 18.0, &escape(label));
        }
    }
    let rows = (0..count).map(|column| {
        let told = (0..chart.layers.len()).map(|layer| y.unit.exact(value(layer, column)));
        std::iter::once(escape(chart.labels[column])).chain(told).collect()
    });
    let legend: Vec<&str> = chart.layers.iter().map(|(name, _)| *name).collect();
    let head = std::iter::once("").chain(legend.iter().copied()).collect();
    figure(&chart.caption, Drawn { drawing, height: BOTTOM + 28.0, legend, head }, rows.collect())
}

// The drawing area, in the units of the view box.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 696.0;
const BOTTOM: f64 = 252.0;
/// The left end of horizontal bars, right of their labels.
const LABELS: f64 = 220.0;

/// The top of the drawing area, below the labels of the markers.
fn top(markers: &[Marker]) -> f64 {
    12.0 + 16.0 * markers.len() as f64
}

fn grid(x: &Scale, y: &Scale) -> String {
    let mut drawing = horizontal_grid(y);
    for (place, label) in x.labels() {
        drawing += &*format!(r#"<path class="axis" d="M{place:.1} {BOTTOM}v4"/>"#);
        drawing += &text("middle", place, BOTTOM + 18.0, &label);
    }
    drawing + &*text("middle", (LEFT + RIGHT) / 2.0, BOTTOM + 40.0, &escape(x.label))
}

fn horizontal_grid(y: &Scale) -> String {
    let mut drawing = String::new();
    for (place, label) in y.labels() {
        drawing += &*format!(r#"<path class="grid" d="M{LEFT} {place:.1}H{RIGHT}"/>"#);
        drawing += &text("end", LEFT - 8.0, place + 4.0, &label);
    }
    let middle = (y.start + y.end) / 2.0;
    drawing += &*format!(r#"<path class="axis" d="M{LEFT} {BOTTOM}H{RIGHT}"/>"#);
    drawing += &*format!(
        r#"<text text-anchor="middle" transform="translate(14 {middle:.1}) rotate(-90)">{}</text>"#,
        escape(y.label)
    );
    drawing
}

/// Draws markers. Their labels are above the drawing area, one per row, and left of the line in the right half.
fn marker_lines(markers: &[Marker], x: &Scale) -> String {
    let mut drawing = String::new();
    for (number, marker) in markers.iter().enumerate().filter(|(_, marker)| usable(marker.at)) {
        let (place, row) = (x.at(marker.at), 16.0 * number as f64);
        // The halo keeps the line visible on bars of any color.
        drawing += &["halo", "marker"]
            .map(|class| format!(r#"<path class="{class}" d="M{place:.1} {row}V{BOTTOM}"/>"#))
            .concat();
        let (anchor, aside) = if place > (LEFT + RIGHT) / 2.0 { ("end", -6.0) } else { ("start", 6.0) };
        drawing += &text(anchor, place + aside, row + 11.0, &escape(marker.label));
    }
    drawing
}

fn rectangle(series: usize, left: f64, top: f64, width: f64, bottom: f64, title: &str) -> String {
    let (height, series) = ((bottom - top).max(0.0), series % 4);
    format!(
        "<rect class=\"bar s{series}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\"><title>{title}</title></rect>"
    )
}

/// A text element; `content` must be escaped.
fn text(anchor: &str, x: f64, y: f64, content: &str) -> String {
    format!(r#"<text text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{content}</text>"#)
}

/// Cuts a label to the space left of a bar and escapes it. Characters from Hangul on are about twice as wide as Latin
/// ones.
fn shorten(label: &str) -> String {
    let mut room = 32usize;
    let fits = |character: &char| {
        room = room.saturating_sub(if *character >= '\u{1100}' { 2 } else { 1 });
        room > 0
    };
    let short: String = label.chars().take_while(fits).collect();
    if short.len() < label.len() { escape(&short) + "…" } else { escape(&short) }
}

/// A finished drawing with its legend and the header of its table. A legend with fewer than two names is not shown.
struct Drawn<'a> {
    drawing: String,
    height: f64,
    legend: Vec<&'a str>,
    head: Vec<&'a str>,
}

/// The drawing with its caption and its table; `rows` must be escaped. Without rows it says "no data".
fn figure(caption: &Caption, drawn: Drawn, rows: Vec<Vec<String>>) -> String {
    let (title, description) = (escape(caption.title), escape(caption.description));
    let Drawn { mut drawing, mut height, legend, head } = drawn;
    let mut data = String::new();
    if rows.is_empty() {
        height = 40.0;
        drawing = text("middle", WIDTH / 2.0, 24.0, "no data");
    } else {
        let head: String =
            head.iter().map(|name| format!(r#"<th scope="col">{}</th>"#, escape(name))).collect();
        let body: String = rows
            .iter()
            .map(|row| {
                format!(
                    "<tr>{}</tr>\n",
                    row.iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>()
                )
            })
            .collect();
        data = format!(
            "<details class=\"data\"><summary>Data</summary>\n<table><thead><tr>{head}</tr></thead>\n\
             <tbody>{body}</tbody></table></details>\n"
        );
    }
    let names = legend.iter().enumerate().filter(|_| legend.len() > 1 && !rows.is_empty());
    let names: String = names
        .map(|(number, name)| {
            format!(r#"<span><span class="swatch s{}"></span>{}</span> "#, number % 4, escape(name))
        })
        .collect();
    let legend = if names.is_empty() { names } else { format!("<p class=\"legend\">{names}</p>\n") };
    format!(
        "<figure>\n<figcaption><h3>{title}</h3><p class=\"quiet\">{description}</p></figcaption>\n{legend}\
         <div class=\"plot\"><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}\" \
         viewBox=\"0 0 {WIDTH} {height}\"><title>{title}</title><desc>{description}</desc>\
         {drawing}</svg></div>\n{data}</figure>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails unless tags nest and close, attributes are quoted and every `&` starts an entity. This also applies to
    /// `details` and tables, although HTML is more lenient there.
    fn check_well_formed(markup: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = markup;
        while let Some((before, after)) = rest.split_once('<') {
            check_text(before);
            let (tag, after) = after.split_once('>').expect("a tag ends");
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "in {markup}");
                continue;
            }
            let name = tag.split([' ', '/']).next().unwrap();
            for (number, part) in tag[name.len()..].trim_end_matches('/').split('"').enumerate() {
                let attribute = part.strip_prefix(' ').is_some_and(|name| name.ends_with('='));
                assert!(number % 2 == 1 || part.is_empty() || attribute, "{part:?} in {tag}");
                check_text(part);
            }
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        check_text(rest);
        assert!(open.is_empty(), "{open:?} left open");
    }

    fn check_text(text: &str) {
        assert!(!text.contains('>') && !text.contains("NaN") && !text.contains("inf"), "{text:?}");
        for after in text.split('&').skip(1) {
            let entity = after.split_once(';').map(|(name, _)| name);
            assert!(matches!(entity, Some("amp" | "lt" | "gt" | "quot" | "#39")), "{text:?}");
        }
    }

    const HOSTILE: &str = "<script>\"a\" & 'b'\u{0}</script>";

    fn all_charts(values: &[f64]) -> [String; 4] {
        let caption = Caption { title: HOSTILE, description: HOSTILE };
        let axis = Axis { label: HOSTILE, ..Axis::default() };
        let markers = vec![Marker { at: 0.5, label: HOSTILE }, Marker { at: f64::NAN, label: "nowhere" }];
        let points: Vec<(f64, f64)> = values.iter().map(|value| (*value, *value)).collect();
        let series = vec![Series { name: HOSTILE, points: points.clone() }, Series { name: "b", points }];
        let groups = vec![(HOSTILE, values.to_vec()), ("b", values.to_vec())];
        let rows = values.iter().map(|value| (HOSTILE, *value)).collect();
        let labels = vec![HOSTILE; values.len()];
        [
            line(&Chart { caption, x: axis, y: axis, series, markers: markers.clone() }),
            histogram(&Histogram { caption, x: axis, bins: 10, groups: groups.clone(), markers }),
            bars(&Bars { caption, x: axis, rows }),
            columns(&Columns { caption, y: axis, labels, layers: groups }),
        ]
    }

    #[test]
    fn every_chart_is_well_formed_and_escapes_tags_of_the_caller() {
        let (many, huge) = (Vec::from_iter((0..500).map(|number| f64::from(number).sin())), f64::MAX);
        for values in [&[][..], &[3.0], &[0.0], &[-1.0, 2.0], &[f64::NAN], &[1.0, huge, f64::INFINITY], &many]
        {
            for chart in all_charts(values) {
                check_well_formed(&chart);
                assert!(!chart.contains("<script"), "{chart}");
                assert!(chart.contains("role=\"img\"") && chart.contains("<desc>"));
            }
        }
    }

    #[test]
    fn without_data_a_chart_says_so() {
        for chart in all_charts(&[]) {
            assert!(chart.contains("no data") && !chart.contains("<table"), "{chart}");
        }
    }

    #[test]
    fn a_point_that_is_not_finite_is_left_out() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0), (2.0, 3.0)];
        let chart = line(&Chart { series: vec![Series { name: "a", points }], ..Chart::default() });
        assert_eq!(chart.matches("<circle").count(), 2);
        assert_eq!(chart.matches("<tr>").count(), 3);
    }

    #[test]
    fn a_single_point_is_drawn_inside_the_area() {
        let series = vec![Series { name: "a", points: vec![(7.0, 7.0)] }];
        let chart = line(&Chart { series, ..Chart::default() });
        assert!(chart.contains(&format!("cx=\"{:.1}\" cy=\"132.0\"", (LEFT + RIGHT) / 2.0)), "{chart}");
    }

    #[test]
    fn a_histogram_counts_each_value_once_as_a_share_of_its_group() {
        let groups = vec![("a", vec![0.0, 0.3, 1.0, f64::NAN]), ("b", vec![0.95])];
        let chart = histogram(&Histogram { bins: 10, groups, ..Histogram::default() });
        assert!(
            chart.contains("<td>0 to 0.1</td><td>1 (33.3\u{a0}%)</td><td>0 (0.0\u{a0}%)</td>"),
            "{chart}"
        );
        assert!(chart.contains("<td>0.3 to 0.4</td><td>1 (33.3\u{a0}%)</td>"));
        assert!(chart.contains("<td>0.9 to 1</td><td>1 (33.3\u{a0}%)</td><td>1 (100.0\u{a0}%)</td>"));
    }

    #[test]
    fn long_labels_are_cut_by_their_width() {
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&"x".repeat(40)).chars().count(), 32);
        assert_eq!(shorten(&"字".repeat(40)).chars().count(), 16);
    }
}
