//! Runs ONNX models on this machine with `rten`.
//!
//! Each worker runs one text at a time, with one worker per core. This was measured to be faster than
//! batches, which waste time on padding (`docs/performance.md`).
//!
//! Invariant: the same tokens always give the same output, whatever runs at the same time.

pub(crate) mod folder;
pub(crate) mod workers;
#[cfg(test)]
pub(crate) mod fixture;

use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use tokenizers::Encoding;

/// A model that takes tokens.
pub(crate) struct Graph {
    model: Model,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
}

#[derive(Clone, Copy)]
enum Input {
    Ids,
    Mask,
    Types,
    Positions,
}

impl Graph {
    /// Prepares a model. Uses the first of the outputs in `wanted` that it has, or else its first output.
    pub(crate) fn new(model: Model, wanted: &[&str]) -> Result<Self, String> {
        let name = |id: NodeId| model.node_info(id).and_then(|info| info.name().map(str::to_owned));
        let mut inputs = Vec::new();
        for &id in model.input_ids() {
            let name = name(id).unwrap_or_default();
            let input = match name.as_str() {
                "input_ids" => Input::Ids,
                "attention_mask" => Input::Mask,
                "token_type_ids" => Input::Types,
                "position_ids" => Input::Positions,
                _ => return Err(format!("the model has an unsupported input `{name}`")),
            };
            inputs.push((id, input));
        }
        if !inputs.iter().any(|(_, input)| matches!(input, Input::Ids)) {
            return Err("the model has no input `input_ids`".to_owned());
        }
        let outputs = model.output_ids();
        let has = |wanted: &&str| outputs.iter().copied().find(|id| name(*id).as_deref() == Some(*wanted));
        let output = wanted.iter().find_map(has).or(outputs.first().copied());
        let output = output.ok_or("the model has no output")?;
        Ok(Self { inputs, output, model })
    }

    /// The output for one text, or one pair of texts.
    pub(crate) fn run(&self, encoding: &Encoding, pool: &Arc<ThreadPool>) -> Result<Tensor<f32>, String> {
        let length = encoding.len();
        let row = |values: Vec<i32>| NdTensor::from_data([1, length], values);
        let numbers = |values: &[u32]| values.iter().map(|&value| value as i32).collect::<Vec<_>>();
        let tensors: Vec<(NodeId, NdTensor<i32, 2>)> = self
            .inputs
            .iter()
            .map(|(id, input)| {
                let values = match input {
                    Input::Ids => numbers(encoding.get_ids()),
                    Input::Mask => vec![1; length],
                    Input::Types => numbers(encoding.get_type_ids()),
                    Input::Positions => (0..length as i32).collect(),
                };
                (*id, row(values))
            })
            .collect();
        let inputs = tensors.iter().map(|(id, tensor)| (*id, tensor.view().into())).collect();
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let [output] = self
            .model
            .run_n(inputs, [self.output], Some(options))
            .map_err(|error| format!("the model failed: {error}"))?;
        output.try_into().map_err(|_| "the model's output is not a 32-bit float tensor".to_owned())
    }
}

impl Graph {
    /// An intermediate value of the model that depends only on the tokens.
    pub(crate) fn value(
        &self,
        name: &str,
        ids: &[u32],
        pool: &Arc<ThreadPool>,
    ) -> Result<Tensor<f32>, String> {
        let wanted = self.model.node_id(name).map_err(|error| error.to_string())?;
        let (input, _) = self
            .inputs
            .iter()
            .find(|(_, input)| matches!(input, Input::Ids))
            .ok_or("the model has no input `input_ids`")?;
        let ids = NdTensor::from_data([1, ids.len()], ids.iter().map(|&id| id as i32).collect::<Vec<_>>());
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let found = self.model.run(vec![(*input, ids.view().into())], &[wanted], Some(options));
        let value = found.map_err(|error| format!("the model failed: {error}"))?.pop();
        value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| format!("`{name}` is not a 32-bit float tensor"))
    }
}

/// Options for loading models. Weights are prepacked, which makes short texts three times faster.
pub(crate) fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}
