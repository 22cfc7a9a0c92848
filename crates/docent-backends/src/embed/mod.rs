//! Embedders: the one built into the binary, other ONNX models, and embedding APIs.

pub mod local;
mod onnx;
pub mod remote;
pub mod prefixes;
pub mod estimate;

use docent_core::embed::Vector;

/// Normalizes a vector to length 1; `None` if it is zero or not finite.
fn unit_length(mut vector: Vector) -> Option<Vector> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    Some(vector)
}
