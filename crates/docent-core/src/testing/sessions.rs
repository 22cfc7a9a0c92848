//! The contract suite for session stores.

use std::cell::RefCell;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use uuid::Uuid;

use crate::answer::{AgentResponse, AnswerStatus, Citation, Metadata, Scope, Sentence, Verdict};
use crate::retrieve::Confidence;
use crate::search_response::SourceChunk;
use crate::session::{SecretHash, SessionAccess, SessionError, SessionStore, ToolRecord, Turn};

/// An answered turn with one source and one citation.
pub fn turn(query: &str) -> Turn {
    let turn_id = Uuid::new_v4();
    let timestamp = "2026-03-04T05:06:07.089Z".to_owned();
    let content = "A node is a participant in the graph.";
    let source = SourceChunk {
        position: 1,
        similarity_score: 0.83,
        rerank_score: None,
        content: content.to_owned(),
        url: "https://x.org/nodes#what-is-a-node".to_owned(),
        page_title: "Nodes".to_owned(),
        heading: Some("What is a node?".to_owned()),
        heading_hierarchy: vec!["What is a node?".to_owned()],
        breadcrumb: "Nodes › What is a node?".to_owned(),
        book_name: "manual".into(),
        module_name: "ros2".to_owned(),
        version: Some("2.0".to_owned()),
        locale: None,
        chapter_id: "ros2/nodes".to_owned(),
        chunk_id: Uuid::new_v5(&Uuid::NAMESPACE_URL, b"nodes/0").to_string(),
        document_id: "ros2/nodes.md".to_owned(),
        chunk_index: 0,
        token_count: 8,
        role: "body".to_owned(),
    };
    let citation = Citation {
        id: 1,
        page_title: source.page_title.clone(),
        heading: source.heading.clone(),
        url: source.url.clone(),
        book_name: "manual".into(),
        module_name: source.module_name.clone(),
        version: source.version.clone(),
        locale: None,
        chunk_id: source.chunk_id.clone(),
        quote: content.to_owned(),
        html: None,
        start: 0,
        end: content.len(),
        figures: Vec::new(),
    };
    let tool_call = ToolRecord {
        tool_name: "search_book".to_owned(),
        arguments: r#"{"query":"node"}"#.to_owned(),
        query: "node".to_owned(),
        results_count: 1,
        avg_similarity: 0.83,
        timestamp: timestamp.clone(),
    };
    Turn {
        turn_id,
        query: query.to_owned(),
        rewritten_query: None,
        tool_calls: vec![tool_call],
        response: AgentResponse {
            turn_id,
            session_id: None,
            query: query.to_owned(),
            rewritten_query: None,
            kind: Default::default(),
            answer: format!("{content} [1]"),
            sentences: vec![Sentence {
                text: content.to_owned(),
                citations: vec![1],
                support: 1.0,
                supported: true,
                verdict: Verdict::Supported,
                new_paragraph: true,
                separator: String::new(),
                html: None,
            }],
            citations: vec![citation],
            sources: Some(vec![source]),
            grounded: true,
            answer_status: AnswerStatus::Answered,
            missing: Vec::new(),
            confidence: Confidence::High,
            relevance: 0.81,
            scope: Scope::Section,
            model_used: "extractive".to_owned(),
            tokens_used: 0,
            retrieval_count: 1,
            degraded: false,
            error: None,
            timestamp: timestamp.clone(),
            metadata: Metadata {
                response_time_ms: 12.345,
                embedding_time_ms: 4.5,
                retrieval_time_ms: 0.75,
                generation_time_ms: 7.095,
                chunk_count: 1,
                passages_read: 0,
                reader_busy: false,
                cache_hit: false,
                prompt_tokens: 0,
                completion_tokens: 0,
                index_version: "0000000001".to_owned(),
                removed_pointers: 2,
                rejected_sentences: 0,
                warnings: vec!["mind the gap".to_owned()],
            },
        },
        timestamp,
    }
}

/// Checks what every [`SessionStore`] must do. `make` creates an empty store.
pub async fn session_contract(make: impl AsyncFn() -> Arc<dyn SessionStore>) {
    a_new_session_is_empty(&*make().await).await;
    a_turn_is_returned_unchanged(&*make().await).await;
    the_last_turns_are_returned_oldest_first(&*make().await).await;
    the_first_question_becomes_the_title(&*make().await).await;
    a_title_set_by_rename_is_kept(&*make().await).await;
    the_most_recently_used_session_is_listed_first(&*make().await).await;
    a_reset_clears_the_history(&*make().await).await;
    a_deleted_session_is_not_found(&*make().await).await;
    an_unknown_session_is_not_found(&*make().await).await;
    unusual_values_do_not_make_a_session_unreadable(&*make().await).await;
    concurrent_appends_have_a_consistent_order(&*make().await).await;
    turns_are_paginated(&*make().await).await;
    a_session_stores_the_hashes_of_its_secrets(&*make().await).await;
    old_sessions_expire(&*make().await).await;
    retention_time_does_not_jump(&*make().await).await;
}

async fn a_new_session_is_empty(store: &dyn SessionStore) {
    assert_eq!(store.list(10, 0).await.unwrap(), []);
    let mut ids = HashSet::new();
    for _ in 0..20 {
        let session = store.create().await.unwrap();
        assert!(ids.insert(session.session_id), "the id {} was used twice", session.session_id);
        assert!(is_rfc3339(&session.started_at), "{}", session.started_at);
        assert_eq!(session.started_at, session.updated_at);
        assert_eq!((&session.title, session.turn_count), (&None, 0));
        assert_eq!(store.get(session.session_id).await.unwrap(), session);
        assert_eq!(store.turns(session.session_id, 10).await.unwrap(), []);
    }
}

async fn a_turn_is_returned_unchanged(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;

    let mut with_everything = turn("How do I install it?");
    with_everything.rewritten_query = Some("How do I install ROS 2?".to_owned());
    with_everything.response.session_id = Some(id);
    with_everything.response.error = Some("the model did not answer".to_owned());
    with_everything.response.degraded = true;
    with_everything.response.tokens_used = u32::MAX;
    with_everything.response.relevance = f32::MIN_POSITIVE;
    with_everything.response.sources.as_mut().unwrap()[0].rerank_score = Some(0.1 + 0.2);
    with_everything.tool_calls = vec![with_everything.tool_calls[0].clone(); 4];

    let mut with_nothing = turn("Pasta?");
    with_nothing.tool_calls.clear();
    with_nothing.response.sentences.clear();
    with_nothing.response.citations.clear();
    with_nothing.response.sources = None;
    with_nothing.response.confidence = Confidence::None;

    let mut foreign = turn("Was heißt „Knoten“ auf 日本語? 👩‍🚀 عقدة e\u{301}");
    foreign.response.answer = "quotes \" ' ` \\ ; -- \r\n\t\u{0}\u{7f}\u{2028}\u{feff}\u{10ffff}".to_owned();

    let mut long = turn("Everything?");
    long.response.answer = "Ein längerer Satz. ".repeat(100_000 / 19);

    let turns = [with_everything, with_nothing, foreign, long];
    for (turn, count) in turns.iter().zip(1..) {
        store.append(id, turn).await.unwrap();
        let session = store.get(id).await.unwrap();
        assert_eq!(session.turn_count, count);
        assert!(is_rfc3339(&session.updated_at), "{}", session.updated_at);
    }
    assert_eq!(store.turns(id, 10).await.unwrap(), turns);
}

async fn the_last_turns_are_returned_oldest_first(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    let other = store.create().await.unwrap().session_id;
    for query in ["one", "two", "three", "four", "five"] {
        store.append(id, &turn(query)).await.unwrap();
        store.append(other, &turn("something else")).await.unwrap();
    }
    assert_eq!(queries(store, id, 0).await, [""; 0]);
    assert_eq!(queries(store, id, 1).await, ["five"]);
    assert_eq!(queries(store, id, 3).await, ["three", "four", "five"]);
    for last in [5, 6, usize::MAX] {
        assert_eq!(queries(store, id, last).await, ["one", "two", "three", "four", "five"]);
    }
}

async fn the_first_question_becomes_the_title(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn(" What is a node? ")).await.unwrap();
    store.append(id, &turn("And a topic?")).await.unwrap();
    assert_eq!(store.get(id).await.unwrap().title.as_deref(), Some("What is a node?"));

    let question = "How does a lifecycle node differ from an ordinary one, and when should I write my \
                    own instead of taking the composed nodes of the standard library?";
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn(question)).await.unwrap();
    let title = store.get(id).await.unwrap().title.unwrap();
    let start = title.strip_suffix('…').unwrap();
    assert!((40..=80).contains(&start.chars().count()), "{title}");
    assert!(question.strip_prefix(start).unwrap().starts_with(' '), "the title `{title}` ends inside a word");
    assert_eq!(queries(store, id, 1).await, [question], "the question itself is not shortened");
}

async fn a_title_set_by_rename_is_kept(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    let renamed = store.rename(id, "Nodes, für später").await.unwrap();
    assert_eq!(renamed.title.as_deref(), Some("Nodes, für später"));
    assert_eq!(store.get(id).await.unwrap(), renamed);
    store.append(id, &turn("What is a node?")).await.unwrap();
    assert_eq!(store.get(id).await.unwrap().title, renamed.title);
    assert_eq!(store.rename(id, "Topics").await.unwrap().title.as_deref(), Some("Topics"));
    assert_eq!(queries(store, id, 10).await, ["What is a node?"]);

    // Not every store can represent a NUL, but none may fail on one.
    let strange = store.rename(id, "\u{0}No\u{0}des' -- \u{7f}\u{10ffff}").await.unwrap();
    assert_eq!(strange.title.as_deref().unwrap().replace('\0', ""), "Nodes' -- \u{7f}\u{10ffff}");
    assert_eq!(store.get(id).await.unwrap(), strange);
}

async fn the_most_recently_used_session_is_listed_first(store: &dyn SessionStore) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(store.create().await.unwrap().session_id);
    }
    let listed = async |limit, offset| -> Vec<usize> {
        let sessions = store.list(limit, offset).await.unwrap();
        sessions.iter().map(|found| ids.iter().position(|id| *id == found.session_id).unwrap()).collect()
    };
    assert_eq!(listed(10, 0).await, [3, 2, 1, 0]);

    // Changing a session counts as using it; reading it does not.
    store.append(ids[0], &turn("What is a node?")).await.unwrap();
    store.get(ids[1]).await.unwrap();
    store.turns(ids[1], 10).await.unwrap();
    assert_eq!(listed(10, 0).await, [0, 3, 2, 1]);
    store.rename(ids[1], "Topics").await.unwrap();
    assert_eq!(listed(10, 0).await, [1, 0, 3, 2]);
    store.reset(ids[3]).await.unwrap();
    assert_eq!(listed(10, 0).await, [3, 1, 0, 2]);
    store.delete(ids[3]).await.unwrap();
    store.append(ids[2], &turn("What is a topic?")).await.unwrap();
    assert_eq!(listed(10, 0).await, [2, 1, 0]);

    assert_eq!(listed(0, 0).await, [0; 0]);
    assert_eq!(listed(2, 0).await, [2, 1]);
    assert_eq!(listed(2, 1).await, [1, 0]);
    assert_eq!(listed(2, 2).await, [0]);
    assert_eq!(listed(2, 3).await, [0; 0]);
    assert_eq!(listed(usize::MAX, usize::MAX).await, [0; 0]);

    // The list contains the same data as `get`.
    assert_eq!(store.list(1, 0).await.unwrap(), [store.get(ids[2]).await.unwrap()]);
}

async fn a_reset_clears_the_history(store: &dyn SessionStore) {
    let created = store.create().await.unwrap();
    let id = created.session_id;
    store.append(id, &turn("What is a node?")).await.unwrap();
    store.append(id, &turn("And a topic?")).await.unwrap();
    for _ in 0..2 {
        let session = store.reset(id).await.unwrap();
        assert_eq!(session, store.get(id).await.unwrap());
        assert_eq!(session.turn_count, 0);
        assert_eq!(session.title, None, "the title was the first question, so it is removed too");
        assert_eq!(session.started_at, created.started_at);
        assert_eq!(queries(store, id, 10).await, [""; 0]);
    }
    store.append(id, &turn("What is an action?")).await.unwrap();
    assert_eq!(queries(store, id, 10).await, ["What is an action?"]);
    let session = store.get(id).await.unwrap();
    assert_eq!((session.title.as_deref(), session.turn_count), (Some("What is an action?"), 1));
    store.rename(id, "Actions").await.unwrap();
    assert_eq!(store.reset(id).await.unwrap().title.as_deref(), Some("Actions"), "a set title is kept");
}

async fn a_deleted_session_is_not_found(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    let other = store.create().await.unwrap().session_id;
    store.append(id, &turn("one")).await.unwrap();
    store.reset(id).await.unwrap();
    store.append(id, &turn("two")).await.unwrap();
    store.append(other, &turn("three")).await.unwrap();
    store.delete(id).await.unwrap();
    assert_not_found(store.get(id).await, id);
    assert_not_found(store.turns(id, 10).await, id);
    assert_not_found(store.delete(id).await, id);
    assert_eq!(store.list(10, 0).await.unwrap().len(), 1);
    assert_eq!(queries(store, other, 10).await, ["three"]);
}

async fn an_unknown_session_is_not_found(store: &dyn SessionStore) {
    let known = store.create().await.unwrap();
    for id in [Uuid::nil(), Uuid::new_v4(), Uuid::max()] {
        assert_not_found(store.get(id).await, id);
        assert_not_found(store.turns(id, 10).await, id);
        assert_not_found(store.turns(id, 0).await, id);
        assert_not_found(store.append(id, &turn("What is a node?")).await, id);
        assert_not_found(store.rename(id, "Nodes").await, id);
        assert_not_found(store.reset(id).await, id);
        assert_not_found(store.delete(id).await, id);
    }
    assert_eq!(store.list(10, 0).await.unwrap(), [known]);
}

/// A store may reject values that it cannot represent, but it must do so on append.
async fn unusual_values_do_not_make_a_session_unreadable(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("What is a node?")).await.unwrap();
    let mut strange = turn("Zero over zero?");
    strange.tool_calls[0].avg_similarity = f32::NAN;
    strange.response.metadata.response_time_ms = f64::INFINITY;
    let expected = match store.append(id, &strange).await {
        Ok(()) => vec!["What is a node?", "Zero over zero?"],
        Err(_) => vec!["What is a node?"],
    };
    assert_eq!(queries(store, id, 10).await, expected);
    assert_eq!(store.get(id).await.unwrap().turn_count as usize, expected.len());
}

async fn concurrent_appends_have_a_consistent_order(store: &dyn SessionStore) {
    const WRITERS: usize = 8;
    const EACH: usize = 10;
    let id = store.create().await.unwrap().session_id;
    let seen = RefCell::new(Vec::new());
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for writer in 0..WRITERS {
        let seen = &seen;
        futures.push(Box::pin(async move {
            for number in 0..EACH {
                store.append(id, &turn(&format!("{writer} {number}"))).await.unwrap();
                let now = queries(store, id, usize::MAX).await;
                seen.borrow_mut().push(now);
            }
        }));
    }
    together(futures).await;

    let all = queries(store, id, usize::MAX).await;
    assert_eq!(all.len(), WRITERS * EACH);
    assert_eq!(store.get(id).await.unwrap().turn_count as usize, WRITERS * EACH);
    for writer in 0..WRITERS {
        let own: Vec<&String> = all.iter().filter(|query| query.starts_with(&format!("{writer} "))).collect();
        let expected: Vec<String> = (0..EACH).map(|number| format!("{writer} {number}")).collect();
        assert!(own.iter().copied().eq(&expected), "{own:?}");
    }
    // Every concurrent read saw a prefix of the final order.
    for seen in seen.into_inner() {
        assert!(all.starts_with(&seen), "{seen:?}");
    }
    assert_eq!(queries(store, id, 7).await, all[all.len() - 7..]);
}

async fn turns_are_paginated(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("forgotten")).await.unwrap();
    store.reset(id).await.unwrap();
    for number in 1..=7 {
        store.append(id, &turn(&number.to_string())).await.unwrap();
    }
    let page = async |before, most| -> Vec<String> {
        let turns = store.turns_before(id, before, most).await.unwrap();
        turns.into_iter().map(|turn| turn.query).collect()
    };
    assert_eq!(page(u32::MAX, 3).await, ["5", "6", "7"]);
    assert_eq!(page(8, 3).await, ["5", "6", "7"]);
    assert_eq!(page(5, 3).await, ["2", "3", "4"]);
    assert_eq!(page(2, 3).await, ["1"]);
    assert_eq!(page(3, usize::MAX).await, ["1", "2"]);
    for (before, most) in [(1, 3), (0, 3), (5, 0)] {
        assert_eq!(page(before, most).await, [""; 0]);
    }
    let nobody = Uuid::new_v4();
    assert_not_found(store.turns_before(nobody, 1, 3).await, nobody);
}

async fn a_session_stores_the_hashes_of_its_secrets(store: &dyn SessionStore) {
    let (owner, read_only) = (SecretHash([0xab; 32]), SecretHash([7; 32]));
    let access = SessionAccess { owner: Some(owner), share: None };
    let session = store.create_with(access).await.unwrap();
    let (id, other) = (session.session_id, store.create().await.unwrap().session_id);
    assert_eq!(store.access(id).await.unwrap(), access);
    assert_eq!(store.access(other).await.unwrap(), SessionAccess::default());

    // Sharing and revoking change nothing else and do not count as using the session.
    for share in [Some(read_only), Some(SecretHash([8; 32])), None, None] {
        store.share(id, share).await.unwrap();
        assert_eq!(store.access(id).await.unwrap(), SessionAccess { owner: Some(owner), share });
        assert_eq!(store.get(id).await.unwrap(), session);
        assert_eq!(store.list(1, 0).await.unwrap()[0].session_id, other);
        assert_eq!(store.access(other).await.unwrap(), SessionAccess::default());
    }
    store.share(id, Some(read_only)).await.unwrap();
    store.append(id, &turn("What is a node?")).await.unwrap();
    store.reset(id).await.unwrap();
    assert_eq!(store.access(id).await.unwrap().owner, Some(owner), "a reset does not change the owner");
    store.delete(id).await.unwrap();
    assert_not_found(store.access(id).await, id);
    assert_not_found(store.share(id, None).await, id);
}

async fn old_sessions_expire(store: &dyn SessionStore) {
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("What is a node?")).await.unwrap();
    let now = store.get(id).await.unwrap().updated_at;
    assert_eq!(store.expire_before("2020-01-01T00:00:00Z").await.unwrap(), 0);
    assert_eq!(store.expire_before(&now).await.unwrap(), 0, "only older sessions expire");
    assert_eq!(queries(store, id, 10).await, ["What is a node?"]);
    let other = store.create().await.unwrap().session_id;
    assert_eq!(store.expire_before("2999-01-01T00:00:00Z").await.unwrap(), 2);
    assert_not_found(store.get(id).await, id);
    assert_not_found(store.turns(other, 10).await, other);
    assert_eq!(store.expire_before("2999-01-01T00:00:00Z").await.unwrap(), 0);
}

async fn retention_time_does_not_jump(store: &dyn SessionStore) {
    let newest = store.create().await.unwrap().updated_at;
    let day = |time: &str| time[..10].to_owned();
    // The system clock is centuries ahead: each call advances by at most one day.
    let far = "2999-01-01T00:00:00Z";
    let first = store.retention_time(far).await.unwrap();
    assert_eq!(day(&first), day(&newest), "it starts at the newest session");
    let mut last = first;
    for _ in 0..40 {
        let next = store.retention_time(far).await.unwrap();
        assert!(next > last && next.as_str() < "2998", "{last} {next}");
        last = next;
    }
    // If the clock is set back, the time follows immediately and then advances by days again.
    let back = "2021-05-06T07:08:09Z";
    assert_eq!(store.retention_time(back).await.unwrap(), back);
    assert_eq!(day(&store.retention_time(far).await.unwrap()), "2021-05-07");
    assert_eq!(store.retention_time("2021-05-07T10:00:00Z").await.unwrap(), "2021-05-07T10:00:00Z");
}

async fn queries(store: &dyn SessionStore, id: Uuid, last: usize) -> Vec<String> {
    store.turns(id, last).await.unwrap().into_iter().map(|turn| turn.query).collect()
}

#[track_caller]
fn assert_not_found<T: std::fmt::Debug>(result: Result<T, SessionError>, id: Uuid) {
    match result {
        Err(SessionError::NotFound(named)) => assert_eq!(named, id),
        other => panic!("expected no session {id}, got {other:?}"),
    }
}

/// Whether `time` looks like `2026-03-04T05:06:07Z`, with or without a fraction.
fn is_rfc3339(time: &str) -> bool {
    let Some((seconds, fraction)) = time.strip_suffix('Z').and_then(|time| time.split_at_checked(19)) else {
        return false;
    };
    let shape: String =
        seconds.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    let digits = fraction.strip_prefix('.');
    shape == "0000-00-00T00:00:00"
        && (fraction.is_empty()
            || digits.is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
            }))
}

/// Runs the futures concurrently, without a runtime to spawn them on.
async fn together(mut futures: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
