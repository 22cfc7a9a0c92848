//! Test turns that follow other turns.

use super::*;
use crate::session::{SecretHash, Session, SessionAccess};
use crate::testing::sessions::turn;

/// A session store with one conversation in memory.
#[derive(Default)]
struct StubSessions {
    turns: Mutex<Vec<Turn>>,
    refuses: bool,
}

impl StubSessions {
    fn with(turns: Vec<Turn>) -> Arc<Self> {
        Arc::new(Self { turns: Mutex::new(turns), refuses: false })
    }

    fn last(&self) -> Turn {
        self.turns.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl SessionStore for StubSessions {
    async fn create_with(&self, _: SessionAccess) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(Uuid::nil()))
    }

    async fn access(&self, id: Uuid) -> Result<SessionAccess, SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn share(&self, id: Uuid, _: Option<SecretHash>) -> Result<(), SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn list(&self, _: usize, _: usize) -> Result<Vec<Session>, SessionError> {
        Ok(Vec::new())
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        Err(SessionError::NotFound(id))
    }

    async fn turns_before(&self, _: Uuid, _: u32, most: usize) -> Result<Vec<Turn>, SessionError> {
        let turns = self.turns.lock().unwrap();
        Ok(turns[turns.len().saturating_sub(most)..].to_vec())
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

    async fn expire_before(&self, _: &str) -> Result<usize, SessionError> {
        Ok(0)
    }

    async fn retention_time(&self, now: &str) -> Result<String, SessionError> {
        Ok(now.to_owned())
    }
}

fn question(query: &str) -> Ask {
    Ask::new(query).with_session(Uuid::nil()).with_sources(true)
}

fn talking(script: &Arc<Script>, sessions: &Arc<StubSessions>, settings: Settings) -> Agent {
    agent_with(Some(script.clone()), Some(sessions.clone()), settings)
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
    let sessions = Arc::new(StubSessions { refuses: true, ..StubSessions::default() });
    let agent = agent_with(None, Some(sessions), Settings::default());
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
async fn sources_are_stored_even_if_the_response_omits_them() {
    let sessions = StubSessions::with(Vec::new());
    let agent = agent_with(None, Some(sessions.clone()), Settings::default());
    let ask = question(NODE).with_sources(false);
    let response = agent.ask(&ask, &|_| {}).await.unwrap();
    assert!(serde_json::to_value(&response).unwrap().get("sources").is_none());
    assert_eq!(sessions.last().response.sources.unwrap().len(), response.retrieval_count);
}

#[tokio::test]
async fn the_model_gets_the_last_messages_after_the_system_prompt() {
    use crate::generate::Role::*;
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let sessions = StubSessions::with((1..=5).map(|number| turn(&format!("q{number}"))).collect());
    let settings = Settings { max_history: 4, ..Settings::default() };
    next(&talking(&script, &sessions, settings), NODE).await;
    let request = &script.requests()[0];
    assert_eq!(roles(request), [System, User, Assistant, User, Assistant, User]);
    assert_eq!((request.messages[1].content.as_str(), request.messages[3].content.as_str()), ("q4", "q5"));
}

#[tokio::test]
async fn an_odd_number_of_messages_is_rounded_up_to_whole_turns() {
    use crate::generate::Role::*;
    for (max_history, turns) in [(1, 1), (3, 2)] {
        let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
        let sessions = StubSessions::with((1..=5).map(|number| turn(&format!("q{number}"))).collect());
        let settings = Settings { max_history, ..Settings::default() };
        next(&talking(&script, &sessions, settings), NODE).await;
        let expected: Vec<_> =
            [System].into_iter().chain([User, Assistant].repeat(turns)).chain([User]).collect();
        assert_eq!(roles(&script.requests()[0]), expected, "max_history = {max_history}");
    }
}

#[tokio::test]
async fn turns_that_do_not_fit_the_context_window_are_dropped_with_a_warning() {
    use crate::generate::Role::*;
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let mut long = turn("q1");
    long.response.sentences[0].text = "word ".repeat(20_000);
    let sessions = StubSessions::with(vec![long, turn("q2")]);
    let response = next(&talking(&script, &sessions, Settings::default()), NODE).await;
    assert_eq!(roles(&script.requests()[0]), [System, User, Assistant, User]);
    assert_eq!(
        response.metadata.warnings,
        ["the oldest turn was not sent to the model: the conversation exceeds its context window"]
    );
}

#[tokio::test]
async fn a_request_that_is_too_long_is_retried_without_earlier_turns() {
    use crate::generate::Role::*;
    let script = Script::new(vec![
        vec![Err(GenerateError::TooLong("400".into()))],
        text("A node is a participant in the graph [1]."),
    ]);
    let sessions = StubSessions::with(vec![turn("q1"), turn("q2")]);
    let response = next(&talking(&script, &sessions, Settings::default()), NODE).await;
    assert_eq!(roles(&script.requests()[1]), [System, User]);
    assert!(!response.degraded && response.grounded);
    assert_eq!(response.metadata.warnings.len(), 1);
}

#[tokio::test]
async fn a_follow_up_is_rewritten_by_the_model() {
    let script =
        Script::new(vec![text("At which rate may a node publish?"), text("It may publish at 50 Hz [1].")]);
    let sessions = StubSessions::with(vec![turn(NODE)]);
    let response = next(&talking(&script, &sessions, Settings::default()), "How fast can it publish?").await;
    check(&response);
    assert_eq!(sessions.last().rewritten_query.as_deref(), Some("At which rate may a node publish?"));
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
        let sessions = StubSessions::with(vec![turn(NODE)]);
        next(&talking(&Script::new(vec![reply]), &sessions, settings), "How fast can it publish?").await;
        let rewritten = sessions.last().rewritten_query.unwrap();
        assert_eq!(rewritten, "How fast can it publish? (node graph)");
    }
}

#[tokio::test]
async fn in_tool_mode_the_rewritten_follow_up_is_searched() {
    let script = Script::new(vec![text("I know."), text("It may publish at 50 Hz [1].")]);
    let sessions = StubSessions::with(vec![turn(NODE)]);
    let settings =
        Settings { retrieval_mode: RetrievalMode::Tool, rewrite: Rewrite::Rule, ..Settings::default() };
    next(&talking(&script, &sessions, settings), "How fast can it publish?").await;
    assert_eq!(sessions.last().tool_calls[0].query, "How fast can it publish? (node graph)");
}

#[tokio::test]
async fn a_tool_call_is_recorded() {
    let script = Script::new(vec![
        tool("retrieve_documentation", "{\"query\": \"topic messages\", \"k\": 1}"),
        text("A node is a participant in the graph [1]."),
    ]);
    let sessions = StubSessions::with(Vec::new());
    next(&talking(&script, &sessions, Settings::default()), NODE).await;
    let record = sessions.last().tool_calls.remove(0);
    assert_eq!(
        (record.tool_name.as_str(), record.query.as_str()),
        ("retrieve_documentation", "topic messages")
    );
    assert_eq!(record.arguments, "{\"query\": \"topic messages\", \"k\": 1}");
    assert_eq!((record.results_count, record.timestamp.as_str()), (1, "2026-01-01T00:00:00Z"));
    assert!(record.avg_similarity > 0.0 && record.avg_similarity <= 1.0);
}

#[tokio::test]
async fn passages_cited_in_earlier_turns_are_kept() {
    let sessions = StubSessions::with(Vec::new());
    let agent = agent_with(None, Some(sessions), Settings::default());
    let first = next(&agent, "How do I boil the water?").await;
    assert_eq!(first.citations[0].page_title, "pasta");
    // The search returns only one passage, and it is not the cited one.
    let ask = question("And does a topic carry messages between these nodes?").with_top_k(1);
    let second = agent.ask(&ask, &|_| {}).await.unwrap();
    check(&second);
    let titles: Vec<&str> =
        second.sources.as_ref().unwrap().iter().map(|source| source.page_title.as_str()).collect();
    assert_eq!(titles, ["topics", "pasta"]);
}

#[tokio::test]
async fn a_repeated_question_in_a_session_reuses_the_cached_search() {
    let sessions = StubSessions::with(Vec::new());
    let searched = Arc::new(crate::testing::Counting::new(book()));
    let retriever = retriever(searched.clone(), None);
    let script = Script::new(vec![text("A node is a participant in the graph [1].")]);
    let agent = Agent::builder(retriever, Arc::new(StoppedClock))
        .generator(Some(script.clone()))
        .sessions(Some(sessions))
        .build();
    next(&agent, NODE).await;
    let again = next(&agent, NODE).await;
    assert_eq!(searched.searches(), 1);
    // The conversation sent to the model is longer now, so the cached answer is not used.
    assert_eq!((script.requests().len(), again.metadata.cache_hit), (2, false));
}

#[test]
fn a_stopped_turn_is_not_shown_as_an_abstention() {
    let ids = (Uuid::nil(), Uuid::nil());
    let asked = "What is a node?";
    let silent = Turn::stopped(ids, asked, String::new(), (Vec::new(), Vec::new()), Vec::new());
    assert_eq!(crate::agent::window::said(&silent), "(stopped by the user)");
    assert!(!silent.response.grounded);

    let known = turn(asked).response;
    let (sentences, citations) = (vec![known.sentences[0].clone(); 2], known.citations);
    let begun = Turn::stopped(ids, asked, String::new(), (sentences, citations), Vec::new());
    let words = &begun.response.sentences[0].text;
    assert_eq!(crate::agent::window::said(&begun), format!("{words} {words}"));
    assert_eq!(begun.response.answer, format!("{words}\n\n{words}"), "each sentence begins a paragraph");
    assert!(begun.response.grounded);
}
