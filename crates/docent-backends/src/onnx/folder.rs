//! A model in a folder, as exported by common tools: the graph, the tokenizer and configuration files.
//!
//! Invariant: a missing or invalid file is an error that names the file.

use std::path::{Path, PathBuf};

use rten::Model;
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};
use xxhash_rust::xxh3::xxh3_64;

use super::options;

/// Possible paths of the graph, the most precise model first.
const GRAPHS: [&str; 10] = [
    "model.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
    "model_int8.onnx",
    "onnx/model_int8.onnx",
    "onnx/model_qint8_avx512_vnni.onnx",
    "onnx/model_qint8_avx512.onnx",
    "onnx/model_quint8_avx2.onnx",
    "onnx/model_qint8_arm64.onnx",
];

/// Maximum input in tokens; passages and questions are shorter.
const MOST_TOKENS: usize = 512;

/// A folder with a model.
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens a folder; an error if it does not exist.
    pub(crate) fn open(root: &Path) -> Result<Self, String> {
        match root.is_dir() {
            true => Ok(Self { root: root.to_owned() }),
            false => Err(format!("{} is not a folder", root.display())),
        }
    }

    /// The name of the folder.
    pub(crate) fn name(&self) -> String {
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The name of the model in its configuration, or else that of the folder.
    pub(crate) fn model_name(&self) -> Result<String, String> {
        let config = self.json("config.json")?.unwrap_or_default();
        let given = config["_name_or_path"].as_str().filter(|name| !name.is_empty());
        Ok(given.map_or_else(|| self.name(), str::to_owned))
    }

    /// The graph, and a hash of all its files.
    pub(crate) fn graph(&self) -> Result<(Model, u64), String> {
        let path = GRAPHS.iter().map(|name| self.root.join(name)).find(|path| path.is_file());
        let path =
            path.ok_or_else(|| format!("{} has no model.onnx and no onnx/model.onnx", self.root.display()))?;
        let bytes = read(&path)?;
        let mut sum = xxh3_64(&bytes);
        let mut options = options();
        // Large models store their weights in a separate file.
        for end in ["_data", ".data"] {
            let data = PathBuf::from(format!("{}{end}", path.display()));
            if let Some(name) = data.file_name().and_then(|name| name.to_str()).filter(|_| data.is_file()) {
                let bytes = read(&data)?;
                sum = xxh3_64(format!("{sum:x}{:x}", xxh3_64(&bytes)).as_bytes());
                options.external_data(name, bytes);
            }
        }
        let model = options.load(bytes).map_err(|error| {
            format!("{} cannot be run here: {error}; try another export of the model", path.display())
        })?;
        Ok((model, sum))
    }

    /// The tokenizer, set to truncate at the model's input limit; a hash of its file; and the limit.
    pub(crate) fn tokenizer(&self) -> Result<(Tokenizer, u64, usize), String> {
        let path = self.root.join("tokenizer.json");
        if !path.is_file() {
            return Err(format!("{} has no tokenizer.json", self.root.display()));
        }
        let bytes = read(&path)?;
        let unreadable = |error: tokenizers::Error| format!("{}: {error}", path.display());
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(unreadable)?;
        let most = self.most_tokens()?;
        let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(unreadable)?;
        tokenizer.with_padding(None);
        Ok((tokenizer, xxh3_64(&bytes), most))
    }

    /// The model's input limit: the lowest one in its files.
    fn most_tokens(&self) -> Result<usize, String> {
        let own = self.json("sentence_bert_config.json")?.unwrap_or_default();
        let tokenizer = self.json("tokenizer_config.json")?.unwrap_or_default();
        let config = self.json("config.json")?.unwrap_or_default();
        // These families reserve two positions.
        let family = config["model_type"].as_str().unwrap_or_default();
        let reserved =
            if ["roberta", "mpnet", "camembert"].iter().any(|name| family.contains(name)) { 2 } else { 0 };
        let said = [
            own["max_seq_length"].as_f64(),
            // Some files contain a number of thirty digits, which means no limit.
            tokenizer["model_max_length"].as_f64(),
            config["max_position_embeddings"].as_f64().map(|most| most - f64::from(reserved)),
        ];
        let least = said.into_iter().flatten().fold(MOST_TOKENS as f64, f64::min);
        Ok(least.max(8.0) as usize)
    }

    /// A configuration file; `None` if it does not exist.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, String> {
        let path = self.root.join(name);
        if !path.is_file() {
            return Ok(None);
        }
        let json = serde_json::from_slice(&read(&path)?);
        json.map(Some).map_err(|error| format!("{} is not valid JSON: {error}", path.display()))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
