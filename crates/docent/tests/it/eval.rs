//! `docent eval`: scoring a question set.

use crate::support::{Docent, shared_data};

fn set(docent: &Docent) {
    let documents = ["cats purr and sleep", "dogs bark at cats", "fish swim in water"];
    let corpus: String = documents
        .iter()
        .zip(1..)
        .map(|(text, id)| format!("{{\"_id\":\"d{id}\",\"title\":\"\",\"text\":\"{text}\"}}\n"))
        .collect();
    docent.write("set/corpus.jsonl", &corpus);
    docent.write("set/queries.jsonl", "{\"_id\":\"q1\",\"text\":\"who purrs\"}\n{\"_id\":\"q2\",\"text\":\"what barks\"}\n{\"_id\":\"q3\",\"text\":\"unjudged\"}\n");
    docent.write("set/qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n");
}

#[test]
fn a_question_set_is_scored_and_its_run_can_be_rescored() {
    let docent = Docent::without_vectors();
    set(&docent);
    let printed = docent.ok(&["eval", "set", "--run", "run.trec"]);
    assert_eq!(printed.trim(), "nDCG@10=1.0000 Recall@5=1.0000 Hit@1=1.0000 MRR@10=1.0000 queries=2");
    let run = std::fs::read_to_string(docent.home.path().join("run.trec")).unwrap();
    let first = run.lines().next().unwrap();
    assert!(first.starts_with("q1 Q0 d1 1 ") && first.ends_with(" docent"), "{run}");
    if let Some(shared) = shared_data() {
        let scorer = shared.join("../tools/score.py");
        let output = std::process::Command::new("python3")
            .args([scorer.as_os_str(), "set/qrels.tsv".as_ref(), "run.trec".as_ref()])
            .current_dir(docent.home.path())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim(), "hit@1=1.0000 mrr@10=1.0000 ndcg@10=1.0000 recall@5=1.0000 queries=2");
    }
}

#[test]
fn options_that_do_not_apply_to_questions_are_rejected_before_anything_is_asked() {
    let docent = Docent::without_vectors();
    // The questions are not even read.
    docent.write("set/questions.jsonl", "{broken\n");
    for option in ["--run", "--compare", "--others", "--report"] {
        docent.fails(
            &["eval", "set", option, "file"],
            2,
            &format!(
                "error: {option} does not apply to set, which has a questions.jsonl\nhint: leave it out; it needs a folder with corpus.jsonl, queries.jsonl and qrels.tsv"
            ),
        );
    }
    assert!(!docent.home.path().join("file").exists());
}

#[test]
fn an_incomplete_question_set_reports_what_is_missing() {
    let docent = Docent::without_vectors();
    std::fs::create_dir(docent.home.path().join("set")).unwrap();
    docent.fails(
        &["eval", "set"],
        1,
        "error: set has no corpus.jsonl or corpus.jsonl.gz\nhint: a question set has corpus.jsonl[.gz], queries.jsonl and qrels.tsv",
    );
}
