//! What a listener hears is what is answered.

use super::*;

/// Everything heard in a turn; a restart throws the sentences away.
async fn heard(agent: &Agent, query: &str) -> (Vec<State>, Vec<Sentence>, Result<AgentResponse, AskError>) {
    let heard: Mutex<(Vec<State>, Vec<Sentence>)> = Mutex::default();
    let ask = Ask { query: query.into(), top_k: 5, include_sources: true, streamed: true, ..Ask::default() };
    let answered = agent
        .ask(&ask, &|event| {
            let mut heard = heard.lock().unwrap();
            match event {
                TurnEvent::State(state) => heard.0.push(state),
                TurnEvent::Sentence(sentence, _) => heard.1.push(sentence),
                TurnEvent::Restart => heard.1.clear(),
                TurnEvent::Sources(_) => assert!(heard.1.is_empty(), "sources come first"),
            }
        })
        .await;
    let (states, sentences) = heard.into_inner().unwrap();
    (states, sentences, answered)
}

#[tokio::test]
async fn the_states_are_heard_in_order() {
    use State::*;
    let agent = agent(None, Settings::default());
    let (states, sentences, answered) = heard(&agent, "What is a node in the graph?").await;
    assert_eq!(states, [Received, Validating, Retrieving, Generating, Completed]);
    assert_eq!(sentences, answered.unwrap().sentences);
    let (states, _, _) = heard(&agent, "zebra").await;
    assert_eq!(states, [Received, Validating, Retrieving, NoResults]);
    let (states, _, answered) = heard(&agent, "Which zebra eats the purple water melon?").await;
    assert_eq!(states, [Received, Validating, Retrieving, LowConfidence]);
    assert_eq!(answered.unwrap().confidence, Confidence::Low);
    let (states, _, answered) = heard(&agent, "  ").await;
    assert_eq!(states, [Received, Validating, Failed]);
    assert!(matches!(answered, Err(AskError::Invalid(InvalidQuestion::Empty))));
}

#[tokio::test]
async fn what_is_heard_is_what_is_answered() {
    let good = "A node is a participant in the graph [1]. It may publish at 50 Hz [1].";
    let cut = GenerateEvent::Text(format!("{good} And then"));
    let talking_first = {
        let mut reply = text(good);
        reply.pop();
        reply.extend(tool("retrieve_documentation", "{\"query\": \"topic\"}"));
        reply
    };
    for replies in [
        vec![vec![Ok(cut), Err(GenerateError::Interrupted("cut".into()))]],
        vec![talking_first, text("A topic carries messages between nodes [2].")],
        vec![text(&format!("{good} {NO_INFORMATION}."))],
        vec![text(good)],
    ] {
        let agent = agent(Some(Script::new(replies)), Settings::default());
        let (_, sentences, answered) = heard(&agent, "What is a node in the graph?").await;
        let response = answered.unwrap();
        check(&response);
        assert_eq!(sentences, response.sentences);
    }
}

/// Time that passes only by waiting: a sleep is over at once.
struct Gone;

impl Clock for Gone {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn timestamp(&self) -> String {
        StoppedClock.timestamp()
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    fn new_id(&self) -> Uuid {
        Uuid::nil()
    }
}

/// A model that never says anything.
struct Silent;

#[async_trait]
impl Generator for Silent {
    fn model(&self) -> &str {
        "silent"
    }

    async fn generate(&self, _: &GenerateRequest) -> Result<EventStream, GenerateError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_model_that_takes_too_long_is_replaced() {
    let retriever = retriever(Arc::new(book()), None);
    let agent =
        Agent::new(retriever, Some(Arc::new(Silent)), None, None, Arc::new(Gone), Settings::default());
    let (_, _, answered) = heard(&agent, "What is a node in the graph?").await;
    let response = answered.unwrap();
    check(&response);
    assert!(response.degraded && response.grounded);
    assert_eq!(response.error.as_deref(), Some("the model is unavailable: it took too long"));
}
