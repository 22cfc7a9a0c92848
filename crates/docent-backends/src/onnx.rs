//! Models in ONNX, run by `rten` on this machine.
//!
//! One text per worker, one worker per core: on the machines measured this beats batches,
//! which waste work on padding (`docs/performance.md`).
//!
//! Invariant: the same tokens give the same numbers, whatever else is run beside them.

pub(crate) mod folder;
#[cfg(test)]
pub(crate) mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use tokenizers::Encoding;

/// A model that takes tokens.
pub(crate) struct Graph {
    model: Model,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
    /// One thread a pool, one pool a core: workers that shared the runtime's pool would
    /// wait for one another.
    pools: Vec<Arc<ThreadPool>>,
    last_pool: AtomicUsize,
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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pools = (0..cores).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect();
        Ok(Self { inputs, output, pools, last_pool: AtomicUsize::new(0), model })
    }

    /// How much work is done at once.
    pub(crate) fn workers(&self) -> usize {
        self.pools.len()
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

    /// Does `work` on each text, all cores together, and keeps the order.
    pub(crate) fn spread<T: Send>(
        &self,
        texts: &[&str],
        work: impl Fn(&str, &Arc<ThreadPool>) -> Result<T, String> + Sync,
    ) -> Result<Vec<T>, String> {
        if let [text] = texts {
            return Ok(vec![work(text, self.any_pool())?]);
        }
        // Long texts first: the last worker to finish then holds a short one.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(texts[number].len()));
        let next = AtomicUsize::new(0);
        let share = |pool: &Arc<ThreadPool>| -> Result<Vec<(usize, T)>, String> {
            let mut done = Vec::new();
            while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push((number, work(texts[number], pool)?));
            }
            Ok(done)
        };
        let mut done: Vec<(usize, T)> = Vec::with_capacity(texts.len());
        std::thread::scope(|scope| {
            let workers: Vec<_> = self.pools.iter().map(|pool| scope.spawn(|| share(pool))).collect();
            for worker in workers {
                done.extend(worker.join().unwrap_or_else(|_| Err("the model failed on a text".to_owned()))?);
            }
            Ok::<(), String>(())
        })?;
        done.sort_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, value)| value).collect())
    }

    /// Callers that come one by one take turns.
    pub(crate) fn any_pool(&self) -> &Arc<ThreadPool> {
        &self.pools[self.last_pool.fetch_add(1, Ordering::Relaxed) % self.pools.len()]
    }
}

/// How models are loaded: weights in the form the kernels want, which makes short texts
/// three times faster.
pub(crate) fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}
