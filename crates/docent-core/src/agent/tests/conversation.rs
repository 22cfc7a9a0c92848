//! Turns that follow others.

use super::*;
use crate::session::Session;
use crate::testing::sessions::turn;

/// A conversation in memory.
#[derive(Default)]
struct Shelf {
    turns: Mutex<Vec<Turn>>,
    refuses: bool,
}

impl Shelf {
    fn with(turns: Vec<Turn>) -> Arc<Self> {
        Arc::new(Self { turns: Mutex::new(turns), refuses: false })
    }

    fn last(&self) -> Turn {
        self.turns.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl SessionStore for Shelf {
    async fn create(&self) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(Uuid::nil()))
    }

    async fn list(&self, _: usize, _: usize) -> Result<Vec<Session>, SessionError> {
        Ok(Vec::new())
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn turns(&self, _: Uuid, last: usize) -> Result<Vec<Turn>, SessionError> {
        let turns = self.turns.lock().unwrap();
        Ok(turns[turns.len().saturating_sub(last)..].to_vec())
    }

    async fn append(&self, _: Uuid, turn: &Turn) -> Result<(), SessionError> {
        if self.refuses {
            return Err(SessionError::Unavailable("full".into()));
        }
        self.turns.lock().unwrap().push(turn.clone());
        Ok(())
    }

    async fn rename(&self, id: Uuid, _: &str) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn reset(&self, id: Uuid) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        Err(SessionError::NotFound(id))
    }
}

fn question(query: &str) -> Ask {
    Ask {
        query: query.to_owned(),
        top_k: 5,
        session_id: Some(Uuid::nil()),
        include_sources: true,
        ..Ask::default()
    }
}

fn talking(script: &Arc<Script>, shelf: &Arc<Shelf>, settings: Settings) -> Agent {
    agent_with(Some(script.clone()), Some(shelf.clone()), settings)
}

async fn next(agent: &Agent, query: &str) -> AgentResponse {
    agent.ask(&question(query), &|_| {}).await.unwrap()
}

fn roles(request: &GenerateRequest) -> Vec<crate::generate::Role> {
    request.messages.iter().map(|message| message.role).collect()
}

const NODE: &str = "What is a node in the graph?";

#[tokio::test]
async fn a_turn_is_stored_before_it_is_complete() {
    let shelf = Arc::new(Shelf { refuses: true, ..Shelf::default() });
    let agent = agent_with(None, Some(shelf), Settings::default());
    let states: Mutex<Vec<State>> = Mutex::default();
    let answered = agent
        .ask(&question(NODE), &|event| {
            if let TurnEvent::State(state) = event {
                states.lock().unwrap().push(state);
            }
        })
        .await;
    assert!(matches!(answered, Err(AskError::Session(_))));
    assert_eq!(states.into_inner().unwrap().last(), Some(&State::Failed));
}

#[tokio::test]
async fn sources_can_be_left_out_but_are_stored() {
    let shelf = Shelf::with(Vec::new());
    let agent = agent_with(None, Some(shelf.clone()), Settings::default());
    let ask = Ask { include_sources: false, ..question(NODE) };
    let response = agent.ask(&ask, &|_| {}).await.unwrap();
    assert!(serde_json::to_value(&response).unwrap().get("sources").is_none());
    assert_eq!(shelf.last().response.sources.unwrap().len(), response.retrieval_count);
}

#[tokio::test]
async fn the_model_sees_the_last_messages_after_the_rules() {
    use crate::generate::Role::*;
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let shelf = Shelf::with((1..=5).map(|number| turn(&format!("q{number}"))).collect());
    let settings = Settings { max_history: 4, ..Settings::default() };
    next(&talking(&script, &shelf, settings), NODE).await;
    let request = &script.requests()[0];
    assert_eq!(roles(request), [System, User, Assistant, User, Assistant, User]);
    assert_eq!((request.messages[1].content.as_str(), request.messages[3].content.as_str()), ("q4", "q5"));
}

#[tokio::test]
async fn what_does_not_fit_the_window_is_left_out_and_said() {
    use crate::generate::Role::*;
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let mut long = turn("q1");
    long.response.sentences[0].text = "word ".repeat(20_000);
    let shelf = Shelf::with(vec![long, turn("q2")]);
    let response = next(&talking(&script, &shelf, Settings::default()), NODE).await;
    assert_eq!(roles(&script.requests()[0]), [System, User, Assistant, User]);
    assert_eq!(
        response.metadata.warnings,
        ["the oldest turn was not shown to the model: the conversation is longer than its window"]
    );
}

#[tokio::test]
async fn a_model_that_finds_it_too_long_is_asked_again_with_less() {
    use crate::generate::Role::*;
    let script = Script::new(vec![
        vec![Err(GenerateError::TooLong("400".into()))],
        text("A node is a participant in the graph [1]."),
    ]);
    let shelf = Shelf::with(vec![turn("q1"), turn("q2")]);
    let response = next(&talking(&script, &shelf, Settings::default()), NODE).await;
    assert_eq!(roles(&script.requests()[1]), [System, User]);
    assert!(!response.degraded && response.grounded);
    assert_eq!(response.metadata.warnings.len(), 1);
}

#[tokio::test]
async fn a_follow_up_is_rewritten_by_the_model() {
    let script =
        Script::new(vec![text("At which rate may a node publish?"), text("It may publish at 50 Hz [1].")]);
    let shelf = Shelf::with(vec![turn(NODE)]);
    let response = next(&talking(&script, &shelf, Settings::default()), "How fast can it publish?").await;
    check(&response);
    assert_eq!(shelf.last().rewritten_query.as_deref(), Some("At which rate may a node publish?"));
    assert!(script.requests()[0].messages[0].content.ends_with("Last question: How fast can it publish?"));
    assert_eq!((script.requests().len(), response.tokens_used), (2, 30));
}

#[tokio::test]
async fn a_follow_up_is_rewritten_by_rule_when_the_model_cannot() {
    let failing = vec![Err(GenerateError::Unavailable("down".into()))];
    for (reply, settings) in [
        (failing, Settings::default()),
        (text("It may publish [1]."), Settings { rewrite: Rewrite::Rule, ..Settings::default() }),
    ] {
        let shelf = Shelf::with(vec![turn(NODE)]);
        next(&talking(&Script::new(vec![reply]), &shelf, settings), "How fast can it publish?").await;
        let rewritten = shelf.last().rewritten_query.unwrap();
        assert_eq!(rewritten, "How fast can it publish? (node graph)");
    }
}

#[tokio::test]
async fn in_tool_mode_a_follow_up_is_searched_rewritten() {
    let script = Script::new(vec![text("I know."), text("It may publish at 50 Hz [1].")]);
    let shelf = Shelf::with(vec![turn(NODE)]);
    let settings =
        Settings { retrieval_mode: RetrievalMode::Tool, rewrite: Rewrite::Rule, ..Settings::default() };
    next(&talking(&script, &shelf, settings), "How fast can it publish?").await;
    assert_eq!(shelf.last().tool_calls[0].query, "How fast can it publish? (node graph)");
}

#[tokio::test]
async fn a_tool_call_is_recorded() {
    let script = Script::new(vec![
        tool("retrieve_documentation", "{\"query\": \"topic messages\", \"k\": 1}"),
        text("A node is a participant in the graph [1]."),
    ]);
    let shelf = Shelf::with(Vec::new());
    next(&talking(&script, &shelf, Settings::default()), NODE).await;
    let record = shelf.last().tool_calls.remove(0);
    assert_eq!(
        (record.tool_name.as_str(), record.query.as_str()),
        ("retrieve_documentation", "topic messages")
    );
    assert_eq!(record.arguments, "{\"query\": \"topic messages\", \"k\": 1}");
    assert_eq!((record.results_count, record.timestamp.as_str()), (1, "2026-01-01T00:00:00Z"));
    assert!(record.avg_similarity > 0.0 && record.avg_similarity <= 1.0);
}

#[tokio::test]
async fn passages_cited_before_stay_candidates() {
    let shelf = Shelf::with(Vec::new());
    let agent = agent_with(None, Some(shelf), Settings::default());
    let first = next(&agent, "How do I boil the water?").await;
    assert_eq!(first.citations[0].page_title, "pasta");
    // One passage is asked for, and it is another one.
    let ask = Ask { top_k: 1, ..question("And does a topic carry messages between these nodes?") };
    let second = agent.ask(&ask, &|_| {}).await.unwrap();
    check(&second);
    let titles: Vec<&str> =
        second.sources.as_ref().unwrap().iter().map(|source| source.page_title.as_str()).collect();
    assert_eq!(titles, ["topics", "pasta"]);
}

#[tokio::test]
async fn the_same_question_in_a_session_reuses_its_passages() {
    let shelf = Shelf::with(Vec::new());
    let searched = Arc::new(Counting { book: book(), searches: Mutex::new(0) });
    let retriever = retriever(searched.clone(), None);
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let agent = Agent::new(
        retriever,
        Some(script.clone()),
        Some(shelf),
        None,
        Arc::new(StoppedClock),
        Settings::default(),
    );
    next(&agent, NODE).await;
    let again = next(&agent, NODE).await;
    assert_eq!(*searched.searches.lock().unwrap(), 1);
    // The model sees another conversation now, so it is asked again.
    assert_eq!((script.requests().len(), again.metadata.cache_hit), (2, false));
}

/// Counts searches.
struct Counting {
    book: MemoryIndex,
    searches: Mutex<usize>,
}

#[async_trait]
impl crate::index::Index for Counting {
    async fn search(
        &self,
        query: &crate::index::IndexQuery<'_>,
    ) -> Result<crate::index::Candidates, crate::index::IndexError> {
        *self.searches.lock().unwrap() += 1;
        self.book.search(query).await
    }

    async fn page(
        &self,
        document_id: &str,
    ) -> Result<Vec<Arc<crate::chunk::Chunk>>, crate::index::IndexError> {
        self.book.page(document_id).await
    }

    async fn outline(&self) -> Result<Vec<crate::index::PageOutline>, crate::index::IndexError> {
        self.book.outline().await
    }

    async fn describe(&self) -> Result<crate::index::Description, crate::index::IndexError> {
        self.book.describe().await
    }
}
