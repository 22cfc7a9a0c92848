//! Tests of the index in a folder: switching generations, rejecting damaged ones, and handling its files.

use super::*;
use docent_core::embed::Vector;
use docent_core::testing::{LetterEmbedder, chunk, index_contract, load};

use super::build::{build, build_in_memory};
use crate::index::contents::made::with_contents;

fn one(content: &str) -> Vec<(Chunk, Vector)> {
    let chunk = chunk("page", 0, content);
    let vector = LetterEmbedder::vector(&chunk.embedded_text());
    vec![(chunk, vector)]
}

#[tokio::test]
async fn an_index_on_disk_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    index_contract(async |chunks| {
        with_contents(&chunks, |contents| build(folder.path(), contents)).unwrap();
        Arc::new(EmbeddedIndex::open(folder.path()).unwrap()) as Arc<dyn Index>
    })
    .await;
}

#[tokio::test]
async fn an_index_in_memory_keeps_the_contract() {
    index_contract(async |chunks| {
        let generation = with_contents(&chunks, |contents| build_in_memory("memory", contents)).unwrap();
        Arc::new(EmbeddedIndex::in_memory(generation)) as Arc<dyn Index>
    })
    .await;
}

#[test]
fn a_book_without_versions_is_stored_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    let generation = folder.path().join(name);
    assert!(!generation.join(generation::ROW_EDITIONS).exists());
    let manifest = std::fs::read_to_string(generation.join("manifest.json")).unwrap();
    assert!(!manifest.contains("edition") && !manifest.contains("locales"), "{manifest}");
    let records = std::fs::read_to_string(generation.join(generation::PAGES)).unwrap();
    assert!(!records.contains("edition"), "{records}");
}

#[tokio::test]
async fn a_generation_written_before_there_were_versions_can_be_searched() {
    // Its keyword index has no field for editions.
    let mut schema = tantivy::schema::Schema::builder();
    for name in ["body", "book", "module", "record"] {
        schema.add_text_field(name, tantivy::schema::STRING);
    }
    let index = tantivy::Index::create_in_ram(schema.build());
    let lexical = lexical::Lexical::open(&index, docent_core::language::Language::default()).unwrap();
    let query =
        IndexQuery { text: "node", vector: None, filter: &Filter::default(), depth: 5, analyzed: false };
    assert!(lexical.best(&query, None).unwrap().rows.is_empty());
}

fn answer(index: &EmbeddedIndex) -> String {
    let query =
        IndexQuery { text: "node", vector: None, filter: &Default::default(), depth: 5, analyzed: false };
    let generation = index.generation().unwrap();
    let best = generation.search(&query).unwrap().lexical[0].row;
    generation.chunks(&[best]).unwrap()[0].as_ref().unwrap().content.clone()
}

#[test]
fn an_open_index_switches_to_a_newly_published_generation() {
    let folder = tempfile::tempdir().unwrap();
    with_contents(&one("old node"), |contents| build(folder.path(), contents)).unwrap();
    let index = EmbeddedIndex::open(folder.path()).unwrap();
    assert_eq!(answer(&index), "old node");
    with_contents(&one("new node"), |contents| build(folder.path(), contents)).unwrap();
    assert_eq!(answer(&index), "new node");
}

#[tokio::test]
async fn interrupted_work_is_not_reported_as_damage() {
    let interrupted = aside::<()>(|| panic!("a bug")).await;
    assert!(matches!(interrupted, Err(IndexError::Unavailable(_))), "{interrupted:?}");
}

#[test]
fn a_damaged_new_generation_is_tried_once_and_the_old_one_stays_in_use() {
    let folder = tempfile::tempdir().unwrap();
    with_contents(&one("old node"), |contents| build(folder.path(), contents)).unwrap();
    let index = EmbeddedIndex::open(folder.path()).unwrap();
    let name = with_contents(&one("new node"), |contents| build(folder.path(), contents)).unwrap();
    let (manifest, aside) = (folder.path().join(name).join("manifest.json"), folder.path().join("aside"));
    std::fs::rename(&manifest, &aside).unwrap();
    assert_eq!(answer(&index), "old node");
    std::fs::rename(&aside, &manifest).unwrap();
    assert_eq!(answer(&index), "old node", "it is not tried again");
    with_contents(&one("newest node"), |contents| build(folder.path(), contents)).unwrap();
    assert_eq!(answer(&index), "newest node");
}

#[test]
fn without_an_older_generation_a_damaged_one_returns_the_same_error_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let index = EmbeddedIndex::follow(folder.path());
    assert!(matches!(index.generation(), Err(IndexError::Empty)));
    let name = with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    std::fs::remove_file(folder.path().join(name).join("keys")).unwrap();
    for _ in 0..2 {
        let Err(IndexError::Damaged(message)) = index.generation() else { panic!("it is damaged") };
        assert!(message.ends_with("keys is missing"), "{message}");
    }
    with_contents(&one("a new node"), |contents| build(folder.path(), contents)).unwrap();
    assert_eq!(answer(&index), "a new node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_open_a_new_generation_only_once() {
    let folder = tempfile::tempdir().unwrap();
    with_contents(&one("old node"), |contents| build(folder.path(), contents)).unwrap();
    let index = EmbeddedIndex::open(folder.path()).unwrap();
    for number in 0..10 {
        let name = with_contents(&one(&format!("node {number}")), |contents| build(folder.path(), contents))
            .unwrap();
        let requests: Vec<_> = (0..16)
            .map(|_| {
                let index = index.clone();
                tokio::spawn(async move { index.current().await.unwrap() })
            })
            .collect();
        let mut seen: Vec<Arc<Generation>> = Vec::new();
        for request in requests {
            seen.push(request.await.unwrap());
        }
        let newest = index.current().await.unwrap();
        assert_eq!(newest.name, name);
        // Some requests still got the previous generation; all others share one instance of the new one.
        for generation in seen.iter().filter(|generation| generation.name == name) {
            assert!(Arc::ptr_eq(generation, &newest));
        }
    }
}

#[tokio::test]
async fn a_pinned_generation_can_be_searched_after_its_folder_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    for most_in_memory in [MOST_IN_MEMORY, 0] {
        with_contents(&one("old node"), |contents| build(folder.path(), contents)).unwrap();
        let index = Arc::new(EmbeddedIndex { most_in_memory, ..EmbeddedIndex::follow(folder.path()) });
        let pinned = index.clone().pinned().await.unwrap();
        for number in 0..3 {
            with_contents(&one(&format!("node {number}")), |contents| build(folder.path(), contents))
                .unwrap();
        }
        let version = pinned.identity().await.unwrap().version;
        assert!(!folder.path().join(&version).exists());
        assert_eq!(pinned.page("page").await.unwrap()[0].content, "old node");
        assert_eq!(index.page("page").await.unwrap()[0].content, "node 2");
    }
}

#[test]
fn only_the_two_newest_generations_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..5 {
        with_contents(&one(&format!("node {number}")), |contents| build(folder.path(), contents)).unwrap();
    }
    let kept: Vec<bool> =
        (1..=5).map(|number| folder.path().join(format!("g00000{number}")).exists()).collect();
    assert_eq!(kept, [false, false, false, true, true]);
}

#[test]
fn truncated_or_changed_files_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    let root = folder.path().join(&name);
    let manifest = generation::read_manifest(&root).unwrap();
    assert!(manifest.files.len() >= 8, "{:?}", manifest.files);
    for file in manifest.files.keys().map(String::as_str).chain(["manifest.json"]) {
        let path = root.join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 0x55;
        for broken in [&whole[..whole.len() - 1], &changed, &[]] {
            std::fs::write(&path, broken).unwrap();
            match EmbeddedIndex::open(folder.path()) {
                Err(IndexError::Damaged(_) | IndexError::OtherFormat { .. }) => {}
                // Some changes to the manifest do no harm, for example to the date.
                Ok(_) if file == "manifest.json" => {}
                Ok(_) => panic!("damage of {file} was not detected"),
                Err(other) => panic!("{file}: {other}"),
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert!(EmbeddedIndex::open(folder.path()).is_ok());
}

/// Several pages, modules and books, so that no file is empty.
fn book() -> Vec<(Chunk, Vector)> {
    let with_vector = |number: u32| {
        let mut chunk =
            chunk(&format!("page{}", number / 3), number % 3, &format!("A node number {number}."));
        chunk.module_name = format!("m{}", number % 2);
        chunk.book_name = if number < 6 { "robots".to_owned() } else { String::new() };
        let vector = LetterEmbedder::vector(&format!("{number} {}", "node ".repeat(number as usize)));
        (chunk, vector)
    };
    (0..12).map(with_vector).collect()
}

/// The results of all queries of an index as text.
fn all_answers(index: &EmbeddedIndex) -> Result<String, IndexError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let vector = LetterEmbedder::vector("node number seven");
        let filters = [
            Filter::default(),
            Filter { book: Some("robots".into()), ..Filter::of_module(Some("m1".into())) },
        ];
        let mut said = format!("{:?}", index.describe().await?);
        for filter in &filters {
            let query = IndexQuery {
                text: "node number 7",
                vector: Some(&vector),
                filter,
                depth: 20,
                analyzed: false,
            };
            let found = index.search(&query).await?;
            said.push_str(&format!("{found:?}"));
            for ranking in [&found.lexical, &found.dense] {
                said.push_str(&format!("{:?}", load(index, ranking).await?));
            }
        }
        said.push_str(&format!("{:?}{:?}", index.page("page1").await?, index.outline().await?));
        Ok(said)
    })
}

#[test]
fn a_generation_without_a_column_of_pages_gives_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&book(), |contents| build(folder.path(), contents)).unwrap();
    let expected = all_answers(&EmbeddedIndex::open(folder.path()).unwrap()).unwrap();
    let root = folder.path().join(name);
    let mut manifest = generation::read_manifest(&root).unwrap();
    assert!(manifest.files.remove("pages.u32").is_some());
    std::fs::write(root.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    for file in ["pages.u32", "manifest.sum"] {
        std::fs::remove_file(root.join(file)).unwrap();
    }
    assert_eq!(all_answers(&EmbeddedIndex::open(folder.path()).unwrap()).unwrap(), expected);
}

/// A pseudorandom generator with a fixed seed.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

#[test]
fn a_flipped_bit_is_detected_or_does_not_change_results() {
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&book(), |contents| build(folder.path(), contents)).unwrap();
    let root = folder.path().join(name);
    let files: Vec<PathBuf> = walkdir::WalkDir::new(&root)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.is_file() && std::fs::metadata(path).unwrap().len() > 0)
        .collect();
    let sound = all_answers(&EmbeddedIndex::open(folder.path()).unwrap()).unwrap();
    let mut random = random(7);
    let mut noticed = 0;
    for flip in 0..200 {
        let path = &files[flip % files.len()];
        let whole = std::fs::read(path).unwrap();
        let mut flipped = whole.clone();
        let bit = random(flipped.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, &flipped).unwrap();
        // A small generation is verified when it is opened.
        match EmbeddedIndex::open(folder.path()).and_then(|index| all_answers(&index)) {
            Ok(said) => assert_eq!(said, sound, "bit {bit} of {}", path.display()),
            Err(IndexError::Damaged(_) | IndexError::OtherFormat { .. }) => noticed += 1,
            Err(other) => panic!("bit {bit} of {}: {other}", path.display()),
        }
        // A large one is verified while it is in use; after a failed check, it returns only errors.
        if let Ok(generation) = Generation::open_current(folder.path(), 0) {
            let checked = generation.check();
            let index = EmbeddedIndex::in_memory(generation);
            match all_answers(&index) {
                Ok(said) => {
                    assert!(checked.is_ok());
                    assert_eq!(said, sound, "bit {bit} of {}", path.display());
                }
                Err(_) => assert!(checked.is_err()),
            }
        }
        std::fs::write(path, whole).unwrap();
    }
    assert!(noticed > 190, "{noticed} of 200 were detected");
}

#[test]
fn a_large_generation_found_to_be_damaged_is_replaced_by_the_previous_one() {
    let folder = tempfile::tempdir().unwrap();
    with_contents(&one("old node"), |contents| build(folder.path(), contents)).unwrap();
    let index = EmbeddedIndex { most_in_memory: 0, ..EmbeddedIndex::follow(folder.path()) };
    let old = index.generation().unwrap();
    let name = with_contents(&one("new node"), |contents| build(folder.path(), contents)).unwrap();
    let keys = folder.path().join(&name).join("keys");
    let mut bytes = std::fs::read(&keys).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&keys, bytes).unwrap();
    let damaged = index.generation().unwrap();
    assert_eq!(damaged.name, name, "it is used before it has been checked");
    // A background thread checks it too; checking it here avoids waiting for that thread.
    index.check(&damaged);
    let query =
        IndexQuery { text: "node", vector: None, filter: &Default::default(), depth: 5, analyzed: false };
    assert!(matches!(damaged.search(&query), Err(IndexError::Damaged(_))));
    assert!(Arc::ptr_eq(&index.generation().unwrap(), &old));
    assert_eq!(answer(&index), "old node");
}

#[test]
fn a_file_truncated_while_in_use_is_an_error() {
    for file in ["vectors.f32", "pages.jsonl", "lexical"] {
        let folder = tempfile::tempdir().unwrap();
        let name = with_contents(&book(), |contents| build(folder.path(), contents)).unwrap();
        let index = EmbeddedIndex::in_memory(Generation::open_current(folder.path(), 0).unwrap());
        for entry in walkdir::WalkDir::new(folder.path().join(&name).join(file)) {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                std::fs::File::options().write(true).open(entry.path()).unwrap().set_len(0).unwrap();
            }
        }
        assert!(all_answers(&index).is_err(), "{file}");
    }
}

#[test]
fn a_small_generation_does_not_depend_on_its_files_once_open() {
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    let index = EmbeddedIndex::open(folder.path()).unwrap();
    for entry in walkdir::WalkDir::new(folder.path().join(name).join("lexical")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            std::fs::File::options().write(true).open(entry.path()).unwrap().set_len(0).unwrap();
        }
    }
    assert_eq!(answer(&index), "a node");
}

#[test]
fn missing_rows_are_detected_when_an_index_is_built_and_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let refused = with_contents(&book(), |contents| {
        let fewer = &contents.vectors[..contents.vectors.len() - contents.embedder.width];
        let contents = crate::index::contents::BookContents {
            embedder: contents.embedder.clone(),
            language: contents.language,
            pages: contents.pages,
            chunks: contents.chunks,
            vectors: fewer,
            keys: contents.keys,
            labels: contents.labels.clone(),
            sources: Vec::new(),
            created_at: String::new(),
        };
        build(folder.path(), &contents)
    });
    assert!(matches!(refused, Err(IndexError::Unusable(_))), "{refused:?}");

    // The files match each other and their checksums, but not the number of chunks in the manifest.
    let name = with_contents(&book(), |contents| build(folder.path(), contents)).unwrap();
    let root = folder.path().join(name);
    let mut manifest = generation::read_manifest(&root).unwrap();
    for (file, row) in [("vectors.f32", 26 * 4), ("vectors.i8", 26), ("vectors.scale", 4)] {
        let bytes = std::fs::read(root.join(file)).unwrap();
        let fewer = &bytes[..bytes.len() - row];
        std::fs::write(root.join(file), fewer).unwrap();
        let sum = xxhash_rust::xxh3::xxh3_64(fewer);
        manifest.files.insert(file.to_owned(), files::FileSum { size: fewer.len() as u64, sum });
    }
    std::fs::write(root.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    std::fs::remove_file(root.join("manifest.sum")).unwrap();
    let Err(IndexError::Damaged(message)) = EmbeddedIndex::open(folder.path()) else {
        panic!("a row is missing");
    };
    assert!(message.contains("number of chunks"), "{message}");
}

#[test]
fn searching_does_not_write_to_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    let listed = || -> Vec<PathBuf> {
        let entries = walkdir::WalkDir::new(folder.path()).sort_by_file_name();
        entries.into_iter().map(|entry| entry.unwrap().into_path()).collect()
    };
    let before = listed();
    assert_eq!(answer(&EmbeddedIndex::open(folder.path()).unwrap()), "a node");
    assert_eq!(listed(), before);
    assert!(before.iter().all(|path| path.extension().is_none_or(|extension| extension != "lock")));
}

#[cfg(unix)]
#[test]
fn all_files_of_a_generation_have_the_mode_set_by_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let name = with_contents(&one("a node"), |contents| build(folder.path(), contents)).unwrap();
    let own = folder.path().join("own");
    std::fs::write(&own, "").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    for entry in walkdir::WalkDir::new(folder.path().join(name)) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            assert_eq!(mode(entry.path()), mode(&own), "{}", entry.path().display());
        }
    }
}
