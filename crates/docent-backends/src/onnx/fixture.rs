//! Folders with the small models of `tests/fixtures/onnx`, for tests.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/onnx");

/// A folder that is removed when it is dropped.
pub(crate) struct Made {
    root: TempDir,
    name: String,
}

impl Made {
    /// A folder of this name with a graph as `model.onnx` and a tokenizer.
    pub(crate) fn new(name: &str, graph: &str) -> Self {
        let made = Self { root: tempfile::tempdir().unwrap(), name: name.to_owned() };
        std::fs::create_dir(made.path()).unwrap();
        made.copy(graph, "model.onnx").copy("tokenizer.json", "tokenizer.json")
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().join(&self.name)
    }

    /// Copies a fixture into the folder under another name.
    pub(crate) fn copy(self, fixture: &str, name: &str) -> Self {
        self.with(name, std::fs::read(fixture_path(fixture)).unwrap())
    }

    pub(crate) fn with(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
        self
    }

    pub(crate) fn without(self, name: &str) -> Self {
        std::fs::remove_file(self.path().join(name)).unwrap();
        self
    }
}

pub(crate) fn fixture_path(name: &str) -> PathBuf {
    Path::new(FIXTURES).join(name)
}
