//! Maps values to positions along an axis, with ticks at round numbers.
//!
//! Invariant: an axis always has at least two ticks and a nonzero width, whatever the values.

use super::{Axis, Unit};

/// Maps values to positions along one axis.
pub struct Scale<'a> {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<f64>,
    pub start: f64,
    pub end: f64,
    pub unit: Unit,
    pub label: &'a str,
}

impl<'a> Scale<'a> {
    pub fn new(
        values: impl Iterator<Item = f64>,
        axis: &Axis<'a>,
        count: usize,
        (start, end): (f64, f64),
    ) -> Self {
        let (low, high) = extent(values, axis);
        let ticks = ticks(low, high, count);
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        Self { low, high, ticks, start, end, unit: axis.unit, label: axis.label }
    }

    pub fn at(&self, value: f64) -> f64 {
        self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)
    }

    /// The positions of the visible ticks, with their labels.
    pub fn labels(&self) -> impl Iterator<Item = (f64, String)> {
        let step = self.ticks[1] - self.ticks[0];
        let slack = step * 1e-6;
        let seen =
            self.ticks.iter().filter(move |tick| (self.low - slack..=self.high + slack).contains(*tick));
        seen.map(move |tick| (self.at(*tick), self.unit.tick(*tick, step)))
    }
}

/// Whether a value can be drawn. Beyond this size, rounding would hide the differences between ticks.
pub fn usable(value: f64) -> bool {
    value.abs() < 1e15
}

/// The smallest and the largest value; never the same.
pub fn extent(values: impl Iterator<Item = f64>, axis: &Axis) -> (f64, f64) {
    let range = axis.range.into_iter().flat_map(|(low, high)| [low, high]);
    let usable = values.chain(range).filter(|value| usable(*value));
    let (low, high) = usable
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        (0.0, 1.0)
    } else if high - low <= 1e-9 * high.abs().max(low.abs()) {
        // If all values are zero, zero is the lower end of the axis, not its middle.
        let around = 0.1 * low.abs();
        if low == 0.0 { (0.0, 1.0) } else { (low - around, high + around) }
    } else {
        (low, high)
    }
}

/// Ticks from at most `low` to at least `high`, in about `count` steps of one, two or five times a power of ten.
pub fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count as f64;
    let power = 10f64.powf(rough.log10().floor());
    // Without the tolerance, a range of exactly ten tenths would get steps of two tenths.
    let step =
        [1.0, 2.0, 5.0].map(|step| step * power).into_iter().find(|step| *step >= rough * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step + 1e-9).floor() as i64, (high / step - 1e-9).ceil() as i64);
    (first..=last.max(first + 1)).map(|number| number as f64 * step).collect()
}

impl Unit {
    /// Formats a tick with just enough decimals to distinguish it from the next.
    pub fn tick(self, value: f64, step: f64) -> String {
        let (value, step) = if self == Unit::Share { (100.0 * value, 100.0 * step) } else { (value, step) };
        let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
        // Adding zero turns a negative zero into a plain one.
        self.sign(format!("{:.decimals$}", (value / step).round() * step + 0.0))
    }

    /// Formats a value for a table.
    pub fn exact(self, value: f64) -> String {
        match self {
            _ if !usable(value) => "–".to_owned(),
            Unit::Share => self.sign(format!("{:.1}", 100.0 * value)),
            Unit::Number => {
                let text = format!("{value:.3}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        }
    }

    fn sign(self, number: String) -> String {
        if self == Unit::Share { number + "\u{a0}%" } else { number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        for (low, high) in
            [(0.0, 1.0), (0.03, 0.98), (-3.0, 17.0), (0.0, 1234.0), (1e-7, 3e-7), (-9e14, 9e14)]
        {
            for count in [1, 5, 10, 20] {
                let ticks = ticks(low, high, count);
                let step = ticks[1] - ticks[0];
                let leading = step / 10f64.powf((step.log10() + 1e-9).floor());
                assert!([1.0, 2.0, 5.0].iter().any(|round| (leading - round).abs() < 1e-6), "{ticks:?}");
                assert!(
                    ticks[0] <= low + step * 1e-6 && ticks[ticks.len() - 1] >= high - step * 1e-6,
                    "{ticks:?}"
                );
                assert!((2..=count + 3).contains(&ticks.len()), "{count}: {ticks:?}");
            }
        }
        assert_eq!(ticks(0.0, 1.0, 5).len(), 6);
        assert_eq!(Unit::Share.tick(0.30000000000000004, 0.1), "30\u{a0}%");
        assert_eq!(Unit::Number.tick(-0.0, 0.05), "0.00");
    }
}
