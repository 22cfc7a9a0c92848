//! Models in ONNX, run by `rten` on this machine.
//!
//! One text per worker, one worker per core: on the machines measured this beats batches,
//! which waste work on padding (`docs/performance.md`).
//!
//! Invariant: the same tokens give the same numbers, whatever else is run beside them.

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
    /// The model as it is called with tokens. Of its outputs the first of `wanted` is used
    /// that it has, or its first.
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
                _ => return Err(format!("the model wants an input `{name}` that no text model has")),
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
        output.try_into().map_err(|_| "the model's output is not of 32-bit numbers".to_owned())
    }
}

/// How models are loaded: weights in the form the kernels want, which makes short texts
/// three times faster.
pub(crate) fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}
