//! Nearest neighbors: a scan over int8 rows, then full precision for the best candidates.
//!
//! Invariant: the result is the same as that of a scan in full precision, except for candidates whose rounded
//! score is far below the last one returned; equal scores keep the order of the book.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use rayon::prelude::*;
use simsimd::SpatialSimilarity;

use super::files::Held;

/// The vectors of a generation, one row per chunk.
#[derive(Debug)]
pub struct Vectors {
    width: usize,
    full: FullPrecision,
    rounded: Vec<i8>,
    /// The scale of each row; a rounded product times both scales approximates the product of the vectors.
    scales: Vec<f32>,
}

/// The original vectors. A search reads only a few of them, so those of a large book stay on disk.
#[derive(Debug)]
pub enum FullPrecision {
    /// In memory.
    Memory(Vec<f32>),
    /// On disk.
    File(Arc<Held>),
}

impl FullPrecision {
    /// Number of values.
    fn len(&self) -> usize {
        match self {
            Self::Memory(values) => values.len(),
            Self::File(file) => file.size() / size_of::<f32>(),
        }
    }

    /// The values from `start` on; read into `buffer` if they are on disk.
    fn read<'a>(&'a self, start: usize, buffer: &'a mut [f32]) -> io::Result<&'a [f32]> {
        match self {
            Self::Memory(values) => {
                values.get(start..start + buffer.len()).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Self::File(file) => {
                file.read_at(bytemuck::cast_slice_mut(buffer), (start * size_of::<f32>()) as u64)?;
                Ok(buffer)
            }
        }
    }
}

/// How many candidates are rescored per requested result.
const OVERSAMPLING: usize = 4;

/// Rows that a thread scans at a time; for fewer rows a second thread does not pay off.
const BLOCK: usize = 16 * 1024;

impl Vectors {
    /// Combines the columns; `None` if their lengths do not match.
    pub fn new(width: usize, full: FullPrecision, rounded: Vec<i8>, scales: Vec<f32>) -> Option<Self> {
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
        Self::new(width, FullPrecision::Memory(full), rounded, scales)
    }

    /// Length of each vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        self.scales.len()
    }

    /// The `depth` rows closest to `query` among those that `allowed` accepts, best first.
    pub fn nearest(
        &self,
        query: &[f32],
        depth: usize,
        allowed: Option<&(dyn Fn(u32) -> bool + Sync)>,
    ) -> io::Result<Vec<(u32, f32)>> {
        let rows = self.rows();
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
        let mut found: Vec<u32> = best.heap.into_iter().map(|entry| entry.row).collect();
        // In file order, which is fastest to read from disk.
        found.sort_unstable();
        let mut buffer = vec![0f32; self.width];
        let mut hits = Vec::with_capacity(found.len());
        for row in found {
            let values = self.full.read(row as usize * self.width, &mut buffer)?;
            hits.push((row, f32::dot(values, query).unwrap_or_default() as f32));
        }
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits.truncate(depth);
        Ok(hits)
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

/// The best rows seen so far, with the worst of them on top of the heap.
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
            let found = vectors.nearest(&query, 10, None).unwrap();
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
    fn nearest_applies_the_filter_and_keeps_the_order_of_equal_rows() {
        let row = unit(&[1.0; WIDTH]);
        let vectors = Vectors::in_memory(WIDTH, [row.clone(), row.clone(), row.clone()].concat()).unwrap();
        let rows = |allowed: Option<&(dyn Fn(u32) -> bool + Sync)>| -> Vec<u32> {
            vectors.nearest(&row, 2, allowed).unwrap().into_iter().map(|(row, _)| row).collect()
        };
        assert_eq!(rows(None), [0, 1]);
        assert_eq!(rows(Some(&|row| row != 0)), [1, 2]);
    }

    #[test]
    fn columns_of_different_lengths_are_rejected() {
        let vectors = Vectors::new(4, FullPrecision::Memory(vec![0.0; 8]), vec![0; 8], vec![0.0; 3]);
        assert!(vectors.is_none());
    }
}
