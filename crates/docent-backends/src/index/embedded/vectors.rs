//! Exact nearest neighbours: a scan over int8 rows, then full precision for the best.
//!
//! Invariant: the result is the same as a scan in full precision would give, up to
//! candidates whose rounded score is far below the last one returned; equal scores keep
//! the order of the book.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rayon::prelude::*;
use simsimd::SpatialSimilarity;

use super::column::Column;

/// The vectors of a generation, row by row as its chunks.
#[derive(Debug)]
pub struct Vectors {
    width: usize,
    full: Column<f32>,
    rounded: Column<i8>,
    /// Multiplied with a rounded product, gives the product of the rows.
    scales: Column<f32>,
}

/// Rescored candidates per result wanted.
const OVERSAMPLING: usize = 4;

/// Rows a thread scans at a time; fewer are not worth a second thread.
const BLOCK: usize = 16 * 1024;

impl Vectors {
    /// Puts the columns together; their lengths must agree.
    pub fn new(width: usize, full: Column<f32>, rounded: Column<i8>, scales: Column<f32>) -> Option<Self> {
        let rows = scales.len();
        (full.len() == rows * width && rounded.len() == rows * width).then_some(Self {
            width,
            full,
            rounded,
            scales,
        })
    }

    /// Rounds `full` in memory.
    pub fn in_memory(width: usize, full: Vec<f32>) -> Option<Self> {
        let (rounded, scales) = round(&full, width);
        Self::new(width, Column::Owned(full), Column::Owned(rounded), Column::Owned(scales))
    }

    /// Length of each vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The vector of a row, in full precision.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.full[row * self.width..(row + 1) * self.width]
    }

    /// The `depth` rows closest to `query` among those `allowed`, best first.
    pub fn nearest(
        &self,
        query: &[f32],
        depth: usize,
        allowed: Option<&(dyn Fn(u32) -> bool + Sync)>,
    ) -> Vec<(u32, f32)> {
        let rows = self.scales.len();
        let (rounded_query, query_scales) = round(query, self.width);
        let query_scale = query_scales.first().copied().unwrap_or_default();
        let wanted = depth.saturating_mul(OVERSAMPLING).min(rows);
        let scan = |from: usize, to: usize| {
            let mut best = Best::new(wanted);
            for row in from..to {
                if allowed.is_some_and(|allowed| !allowed(row as u32)) {
                    continue;
                }
                let values = &self.rounded[row * self.width..(row + 1) * self.width];
                let product = i8::dot(values, &rounded_query).unwrap_or_default() as f32;
                best.push(row as u32, product * self.scales[row] * query_scale);
            }
            best
        };
        let best = if rows <= BLOCK {
            scan(0, rows)
        } else {
            (0..rows.div_ceil(BLOCK))
                .into_par_iter()
                .map(|block| scan(block * BLOCK, ((block + 1) * BLOCK).min(rows)))
                .reduce(|| Best::new(wanted), Best::merge)
        };
        let mut hits: Vec<(u32, f32)> = best
            .heap
            .into_iter()
            .map(|entry| {
                (entry.row, f32::dot(self.row(entry.row as usize), query).unwrap_or_default() as f32)
            })
            .collect();
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits.truncate(depth);
        hits
    }
}

/// Rounds rows to int8, each by its own scale.
pub fn round(full: &[f32], width: usize) -> (Vec<i8>, Vec<f32>) {
    let mut rounded = Vec::with_capacity(full.len());
    let mut scales = Vec::with_capacity(full.len() / width.max(1));
    for row in full.chunks_exact(width.max(1)) {
        let largest = row.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        rounded.extend(row.iter().map(|value| (value / scale).round() as i8));
        scales.push(scale);
    }
    (rounded, scales)
}

/// The best rows seen so far; the worst of them on top.
struct Best {
    most: usize,
    heap: BinaryHeap<Entry>,
}

#[derive(PartialEq)]
struct Entry {
    score: f32,
    row: u32,
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

impl Best {
    fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::with_capacity(most + 1) }
    }

    fn push(&mut self, row: u32, score: f32) {
        let entry = Entry { score, row };
        if self.heap.len() < self.most {
            self.heap.push(entry);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && entry < *worst
        {
            *worst = entry;
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for entry in other.heap {
            self.push(entry.row, entry.score);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: usize = 16;

    fn unit(values: &[f32]) -> Vec<f32> {
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-6);
        values.iter().map(|value| value / length).collect()
    }

    fn exact(rows: &[Vec<f32>], query: &[f32], depth: usize) -> Vec<u32> {
        let mut scored: Vec<(u32, f32)> = rows
            .iter()
            .enumerate()
            .map(|(row, values)| (row as u32, values.iter().zip(query).map(|(a, b)| a * b).sum()))
            .collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().take(depth).map(|(row, _)| row).collect()
    }

    proptest! {
        #[test]
        fn the_scan_finds_what_full_precision_finds(
            rows in prop::collection::vec(prop::collection::vec(-1f32..1.0, WIDTH), 1..200),
            query in prop::collection::vec(-1f32..1.0, WIDTH),
        ) {
            let rows: Vec<_> = rows.iter().map(|row| unit(row)).collect();
            let query = unit(&query);
            let vectors = Vectors::in_memory(WIDTH, rows.concat()).unwrap();
            let found = vectors.nearest(&query, 10, None);
            let expected = exact(&rows, &query, 10);
            // Rows whose scores differ by less than f32 rounding may swap.
            for ((row, score), wanted) in found.iter().zip(&expected) {
                let wanted_score: f32 = rows[*wanted as usize].iter().zip(&query).map(|(a, b)| a * b).sum();
                prop_assert!(row == wanted || (score - wanted_score).abs() < 1e-5);
            }
            prop_assert_eq!(found.len(), expected.len());
        }
    }

    #[test]
    fn a_filter_is_obeyed_and_equal_rows_keep_their_order() {
        let row = unit(&[1.0; WIDTH]);
        let vectors = Vectors::in_memory(WIDTH, [row.clone(), row.clone(), row.clone()].concat()).unwrap();
        let rows = |allowed: Option<&(dyn Fn(u32) -> bool + Sync)>| -> Vec<u32> {
            vectors.nearest(&row, 2, allowed).into_iter().map(|(row, _)| row).collect()
        };
        assert_eq!(rows(None), [0, 1]);
        assert_eq!(rows(Some(&|row| row != 0)), [1, 2]);
    }

    #[test]
    fn columns_that_do_not_agree_are_refused() {
        let vectors = Vectors::new(
            4,
            Column::Owned(vec![0.0; 8]),
            Column::Owned(vec![0; 8]),
            Column::Owned(vec![0.0; 3]),
        );
        assert!(vectors.is_none());
    }
}
