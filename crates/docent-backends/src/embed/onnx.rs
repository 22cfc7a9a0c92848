//! Sentence models in a folder, as exported by `sentence-transformers` and similar tools.
//!
//! Pooling, input limit and prefixes are read from the model's files. If a model does not specify its
//! prefixes, those of its family are used, judging by its name.
//!
//! Invariant: everything that changes vectors changes the embedder's name: the graph, the tokenizer, the
//! pooling, the prefixes, the input limit.

use std::path::Path;

use docent_core::embed::EmbedError;
use serde_json::Value;

use super::local::{LocalEmbedder, Parts, Pooling, unusable};
use super::prefixes::Prefixes;
use crate::onnx::Graph;
use crate::onnx::folder::Folder;

/// Known outputs: first those with the vector of the text, then those with the vectors of its tokens.
const OUTPUTS: [&str; 6] = [
    "sentence_embedding",
    "embedding",
    "sentence_embeddings",
    "text_embeds",
    "last_hidden_state",
    "token_embeddings",
];

impl LocalEmbedder {
    /// Loads a model from a folder: `model.onnx` or `onnx/model.onnx`, `tokenizer.json`, and its
    /// configuration files. The given prefixes replace those of the model.
    pub fn from_folder(
        folder: &Path,
        query_prefix: Option<&str>,
        passage_prefix: Option<&str>,
    ) -> Result<Self, EmbedError> {
        let folder = Folder::open(folder).map_err(unusable)?;
        let prefixes = prefixes(&folder).map_err(unusable)?.or(query_prefix, passage_prefix);
        let pooling = pooling(&folder).map_err(unusable)?;
        let (tokenizer, tokenizer_sum, most_tokens) = folder.tokenizer().map_err(unusable)?;
        let (model, sum) = folder.graph().map_err(unusable)?;
        let made_of = format!("{sum:x} {tokenizer_sum:x} {most_tokens} {pooling:?} {prefixes:?}");
        let sum = xxhash_rust::xxh3::xxh3_64(made_of.as_bytes());
        Self::new(Parts {
            name: format!("onnx/{}-{sum:016x}", folder.name()),
            graph: Graph::new(model, &OUTPUTS).map_err(unusable)?,
            tokenizer,
            pooling,
            prefixes,
            most_tokens,
        })
    }
}

/// The prefixes in the model's configuration, or else those of its family.
fn prefixes(folder: &Folder) -> Result<Prefixes, String> {
    let config = folder.json("config_sentence_transformers.json")?.unwrap_or_default();
    let said = |names: &[&str]| {
        let of = |name: &&str| config["prompts"][*name].as_str().filter(|prompt| !prompt.is_empty());
        names.iter().find_map(of).map(str::to_owned)
    };
    let (query, passage) =
        (said(&["query", "search_query"]), said(&["document", "passage", "search_document"]));
    if query.is_none() && passage.is_none() {
        return Ok(Prefixes::known(&folder.model_name()?));
    }
    Ok(Prefixes { query: query.unwrap_or_default(), passage: passage.unwrap_or_default() })
}

/// The pooling in the model's configuration; the mean by default.
fn pooling(folder: &Folder) -> Result<Pooling, String> {
    let modules = folder.json("modules.json")?.unwrap_or_default();
    let kinds = modules.as_array().map(Vec::as_slice).unwrap_or_default();
    let is = |kind: &Value, name: &str| kind["type"].as_str().is_some_and(|kind| kind.ends_with(name));
    if kinds.iter().any(|kind| is(kind, ".Dense")) {
        return Err(
            "the model has a dense layer after pooling, which is not part of its ONNX graph".to_owned()
        );
    }
    let Some(config) = folder.json("1_Pooling/config.json")? else {
        // BGE models use the first token and are often copied without this file.
        let first = folder.model_name()?.to_lowercase().contains("bge-");
        return Ok(if first { Pooling::First } else { Pooling::Mean });
    };
    let mut modes: Vec<&str> = config["pooling_mode"].as_str().into_iter().collect();
    for (flag, mode) in [
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_mean_tokens", "mean"),
        ("pooling_mode_max_tokens", "max"),
        ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len"),
        ("pooling_mode_weightedmean_tokens", "weightedmean"),
        ("pooling_mode_lasttoken", "lasttoken"),
    ] {
        if config[flag] == true && !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    match modes.as_slice() {
        // Both have the same direction, and the vector is normalized anyway.
        ["mean" | "mean_sqrt_len"] => Ok(Pooling::Mean),
        ["cls"] => Ok(Pooling::First),
        ["max"] => Ok(Pooling::Max),
        ["lasttoken"] => Ok(Pooling::Last),
        modes => Err(format!(
            "1_Pooling/config.json requires the pooling `{}`, which is not supported",
            modes.join(" + ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use docent_core::embed::{Embedder, Purpose};

    use super::*;
    use crate::onnx::fixture::{Made, fixture_path};

    fn read(folder: &Made) -> Result<LocalEmbedder, String> {
        LocalEmbedder::from_folder(&folder.path(), None, None).map_err(|error| error.to_string())
    }

    fn name(folder: Made) -> String {
        read(&folder).unwrap().id().name.clone()
    }

    fn with_pooling(mode: &str) -> Made {
        let config = format!(r#"{{"word_embedding_dimension": 8, "{mode}": true}}"#);
        Made::new("m", "tokens.onnx").with("1_Pooling/config.json", config)
    }

    fn assert_close(a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
    }

    #[test]
    fn every_pooling_matches_the_reference() {
        let expected: Value =
            serde_json::from_slice(&std::fs::read(fixture_path("expected.json")).unwrap()).unwrap();
        let texts: Vec<&str> =
            expected["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        let check = |folder: Made, pooling: &str| {
            let vectors = read(&folder).unwrap().embed_now(&texts).unwrap();
            let expected: Vec<Vec<f32>> =
                serde_json::from_value(expected["vectors"][pooling].clone()).unwrap();
            vectors.iter().zip(&expected).for_each(|(vector, expected)| assert_close(vector, expected));
        };
        check(with_pooling("pooling_mode_mean_tokens"), "mean");
        check(with_pooling("pooling_mode_mean_sqrt_len_tokens"), "mean");
        check(with_pooling("pooling_mode_cls_token"), "cls");
        check(with_pooling("pooling_mode_max_tokens"), "max");
        check(with_pooling("pooling_mode_lasttoken"), "lasttoken");
        // The newer configuration format, no configuration, a known family, pooling in the graph.
        let newer = Made::new("m", "tokens.onnx").with("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#);
        check(newer, "cls");
        check(Made::new("m", "tokens.onnx"), "mean");
        check(Made::new("bge-small-en-v1.5", "tokens.onnx"), "cls");
        check(with_pooling("pooling_mode_cls_token").copy("pooled.onnx", "model.onnx"), "mean");
    }

    #[test]
    fn graphs_are_found_in_a_subfolder_or_quantized() {
        let plain = name(Made::new("m", "tokens.onnx"));
        for place in ["onnx/model.onnx", "model_quantized.onnx", "onnx/model_int8.onnx"] {
            let moved = Made::new("m", "tokens.onnx").without("model.onnx").copy("tokens.onnx", place);
            assert_eq!(name(moved), plain, "{place}");
        }
    }

    #[tokio::test]
    async fn prefixes_come_from_the_settings_the_model_or_its_family() {
        let check = async |folder: &Made, query: Option<&str>, text: &str, as_if: &str| {
            let embedder = LocalEmbedder::from_folder(&folder.path(), query, None).unwrap();
            let with = embedder.embed(&[text], Purpose::Query).await.unwrap();
            assert_close(&with[0], &embedder.embed_now(&[as_if]).unwrap()[0]);
        };
        let plain = Made::new("m", "tokens.onnx");
        check(&plain, None, "a node", "a node").await;
        check(&plain, Some("question "), "a node", "question a node").await;
        let prompts = r#"{"prompts": {"query": "query: ", "document": "passage: "}}"#;
        let says = Made::new("m", "tokens.onnx").with("config_sentence_transformers.json", prompts);
        check(&says, None, "a node", "query: a node").await;
        let config = r#"{"_name_or_path": "intfloat/e5-small-v2", "max_position_embeddings": 512}"#;
        let known = Made::new("m", "tokens.onnx").with("config.json", config);
        check(&known, None, "a node", "query: a node").await;
        let embedder = read(&known).unwrap();
        let passage = embedder.embed(&["a node"], Purpose::Passage).await.unwrap();
        assert_close(&passage[0], &embedder.embed_now(&["passage: a node"]).unwrap()[0]);
        assert_eq!(embedder.max_tokens(), 256);
    }

    #[test]
    fn everything_that_changes_vectors_changes_the_name() {
        let prompts = r#"{"prompts": {"query": "query: "}}"#;
        let names = [
            name(Made::new("m", "tokens.onnx")),
            name(Made::new("other", "tokens.onnx")),
            name(Made::new("m", "pooled.onnx")),
            name(with_pooling("pooling_mode_cls_token")),
            name(Made::new("m", "tokens.onnx").with("config_sentence_transformers.json", prompts)),
            name(
                Made::new("m", "tokens.onnx").with("sentence_bert_config.json", r#"{"max_seq_length": 64}"#),
            ),
        ];
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert_eq!(names[0], name(Made::new("m", "tokens.onnx")), "the same model has the same name");
    }

    #[test]
    fn texts_are_truncated_at_the_input_limit() {
        let most = |file: &str, contents: &str| {
            read(&Made::new("m", "tokens.onnx").with(file, contents)).unwrap().max_tokens()
        };
        assert_eq!(most("sentence_bert_config.json", r#"{"max_seq_length": 64}"#), 64);
        assert_eq!(most("tokenizer_config.json", r#"{"model_max_length": 128}"#), 128);
        assert_eq!(most("tokenizer_config.json", r#"{"model_max_length": 1e30}"#), 256);
        let roberta = r#"{"model_type": "xlm-roberta", "max_position_embeddings": 130}"#;
        assert_eq!(most("config.json", roberta), 128);
        let short =
            Made::new("m", "tokens.onnx").with("sentence_bert_config.json", r#"{"max_seq_length": 8}"#);
        let embedder = read(&short).unwrap();
        let text = "a node is what takes part in the graph";
        let vectors = embedder.embed_now(&[text, "a node is what takes part"]).unwrap();
        assert_close(&vectors[0], &vectors[1]);
        assert_eq!(embedder.count_tokens(text), 9);
    }

    #[test]
    fn errors_name_what_is_missing_or_unsupported() {
        let check = |folder: Made, message: &str| {
            let error = read(&folder).err().unwrap();
            assert!(error.contains(message), "{error}");
        };
        let missing = LocalEmbedder::from_folder(Path::new("/nowhere/model"), None, None).err().unwrap();
        assert!(missing.to_string().contains("/nowhere/model is not a folder"), "{missing}");
        let m = || Made::new("m", "tokens.onnx");
        check(m().without("model.onnx"), "has no model.onnx and no onnx/model.onnx");
        check(m().without("tokenizer.json"), "has no tokenizer.json");
        check(m().with("tokenizer.json", "{"), "tokenizer.json");
        check(m().with("model.onnx", "no graph"), "cannot be run here");
        check(Made::new("m", "unknown_operator.onnx"), "Nonsense");
        check(Made::new("m", "unknown_operator.onnx"), "try another export");
        check(m().with("modules.json", "["), "modules.json is not valid JSON");
        let dense = r#"[{"type": "sentence_transformers.models.Dense"}]"#;
        check(m().with("modules.json", dense), "a dense layer after pooling");
        let both = r#"{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}"#;
        check(m().with("1_Pooling/config.json", both), "the pooling `mean + max`, which is not supported");
    }
}
