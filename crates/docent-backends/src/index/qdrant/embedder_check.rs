//! Checks whether an embedder made the vectors of a collection, since other systems do not record it.
//!
//! Invariant: the width alone is never enough: some stored texts are embedded again and the vectors compared.

use docent_core::embed::{Embedder, Purpose, Vector};
use docent_core::index::IndexError;
use qdrant_client::qdrant::{ScrollPointsBuilder, VectorsSelector};

use super::download::{dense, unit};
use super::{QdrantIndex, collection, payload, read};

/// Number of texts to compare.
const SAMPLES: usize = 5;

impl QdrantIndex {
    /// The median cosine between stored vectors and those that `embedder` makes from the same texts; `None`
    /// if there is nothing to compare. It is close to 1 for the same model and close to 0 for another.
    pub async fn similarity(&self, embedder: &dyn Embedder) -> Result<Option<f32>, IndexError> {
        let collection = self.collection().await?;
        let Some(field) = collection.vector.as_ref() else { return Ok(None) };
        let request =
            ScrollPointsBuilder::new(&collection.name).filter(collection.passages()).with_payload(true);
        let request = match &field.name {
            Some(name) => request.with_vectors(VectorsSelector { names: vec![name.clone()] }),
            None => request.with_vectors(true),
        };
        let mut samples: Vec<(String, String, Vector)> = Vec::new();
        collection::scroll(&self.connection, request, |point| {
            let vector = dense(&point, field.name.as_deref());
            let name = collection::point_name(&point);
            let chunk = read(&collection, &name, &payload::json_of(point.payload));
            if let (Some(chunk), Some(vector)) = (chunk, vector) {
                // Some systems embed only the text, others put the headings before it.
                samples.push((chunk.content.clone(), chunk.embedded_text(), unit(&vector)));
            }
            Ok(samples.len() < SAMPLES)
        })
        .await?;
        let texts: Vec<&str> =
            samples.iter().flat_map(|(words, whole, _)| [words.as_str(), whole.as_str()]).collect();
        if texts.is_empty() {
            return Ok(None);
        }
        let made = embedder.embed(&texts, Purpose::Passage).await;
        let made = made.map_err(|error| IndexError::Unavailable(error.to_string()))?;
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let mut similarity: Vec<f32> = samples
            .iter()
            .zip(made.chunks(2))
            .map(|((_, _, stored), made)| {
                made.iter().map(|made| cosine(stored, made)).fold(f32::MIN, f32::max)
            })
            .collect();
        similarity.sort_by(f32::total_cmp);
        Ok(similarity.get(similarity.len() / 2).copied())
    }
}
