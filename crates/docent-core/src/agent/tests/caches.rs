//! Test the caches, and that a turn uses one snapshot of the book.

use super::*;
use crate::embed::EmbedderId;
use crate::index::{Identity, Index};
use crate::library::Assemble;
use crate::testing::Published;
use crate::testing::sessions::turn;

const NODE: &str = "What is a node in the graph?";
const ANSWER: &str = "A node is a participant in the graph [1].";

/// Asks `NODE` after a turn with the question `earlier`.
async fn after(agent: &Agent, earlier: &str) -> AgentResponse {
    let earlier = vec![Turn { turn_id: Uuid::nil(), ..turn(earlier) }];
    let ask = Ask::new(NODE).with_sources(true).with_earlier(earlier);
    agent.ask(&ask, &|_| {}).await.unwrap()
}

#[tokio::test]
async fn conversations_with_different_questions_do_not_share_cached_answers() {
    let script = Script::new(vec![text(ANSWER)]);
    let agent = agent(Some(script.clone()), Settings::default());
    assert!(!after(&agent, "How do I boil the water?").await.metadata.cache_hit);
    assert!(!after(&agent, "Which topic carries messages?").await.metadata.cache_hit);
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn equal_conversations_in_different_sessions_share_cached_answers() {
    let script = Script::new(vec![text(ANSWER)]);
    let agent = agent(Some(script.clone()), Settings::default());
    // The two conversations have the same text but different turn ids.
    for cached in [false, true] {
        let earlier = vec![turn("How do I boil the water?")];
        let ask = Ask::new(NODE).with_sources(true).with_earlier(earlier);
        assert_eq!(agent.ask(&ask, &|_| {}).await.unwrap().metadata.cache_hit, cached);
    }
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn without_a_model_the_cache_ignores_the_conversation() {
    let agent = agent(None, Settings::default());
    assert!(!after(&agent, "How do I boil the water?").await.metadata.cache_hit);
    assert!(after(&agent, "Which topic carries messages?").await.metadata.cache_hit);
}

#[tokio::test]
async fn an_answer_with_an_unsupported_sentence_is_not_cached() {
    let script = Script::new(vec![text(&format!("{ANSWER} Bananas are yellow and grow in Ecuador [1]."))]);
    let agent = agent(Some(script.clone()), Settings { verify: Verify::Mark, ..Settings::default() });
    for _ in 0..2 {
        let response = ask(&agent, NODE).await;
        assert!(response.grounded && response.sentences.iter().any(|sentence| !sentence.supported));
        assert!(!response.metadata.cache_hit);
    }
    assert_eq!(script.requests().len(), 2);
}

struct Plain;

impl Assemble for Plain {
    fn retriever(
        &self,
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        language: Language,
    ) -> Retriever {
        Retriever::new(index, embedder, language, Default::default(), Arc::new(StoppedClock))
    }
}

#[tokio::test]
async fn a_turn_keeps_the_snapshot_it_started_with() {
    let published = Arc::new(Published::nothing());
    let publish = |version: &str| {
        let identity = Identity {
            version: version.to_owned(),
            embedder: EmbedderId::none(),
            language: Language::default(),
        };
        let page = chunk("nodes", 0, &format!("A node of {version} is a participant in the graph."));
        let other = chunk("topics", 0, "A topic carries messages.");
        published.publish(identity, MemoryIndex::new(vec![(page, Vec::new()), (other, Vec::new())]));
    };
    publish("g1");
    let library = Library::new(published.clone(), None, Plain);
    let agent = Agent::builder(library, Arc::new(StoppedClock)).build();
    let question = Ask::new(NODE).with_sources(true);
    for (moment, before, after) in
        [(State::Validating, "g1", "g2"), (State::Retrieving, "g2", "g3"), (State::Generating, "g3", "g4")]
    {
        let response = agent
            .ask(&question, &|event| {
                if let TurnEvent::State(state) = event
                    && state == moment
                {
                    publish(after);
                }
            })
            .await
            .unwrap();
        check(&response);
        assert_eq!(response.metadata.index_version, before);
        assert!(response.answer.contains(&format!("A node of {before} is")), "{}", response.answer);
    }
}
