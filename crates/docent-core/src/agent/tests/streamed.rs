//! Test that the events of a streamed turn add up to its response.

use super::*;
use crate::agent::incoming::tests::{divided, markdown};
use crate::cite::CitationStyle;
use futures_util::StreamExt;

/// Collects the states and sentences of a turn; a restart discards the sentences.
async fn heard(agent: &Agent, query: &str) -> (Vec<State>, Vec<Sentence>, Result<AgentResponse, AskError>) {
    let heard: Mutex<(Vec<State>, Vec<Sentence>)> = Mutex::default();
    let ask = Ask::new(query).with_sources(true).with_streaming(true);
    let answered = agent
        .ask(&ask, &|event| {
            let mut heard = heard.lock().unwrap();
            match event {
                TurnEvent::State(state) => heard.0.push(state),
                TurnEvent::Sentence(sentence, _) => heard.1.push(sentence),
                TurnEvent::Restart => heard.1.clear(),
                TurnEvent::Sources(_) => assert!(heard.1.is_empty(), "sources come first"),
                TurnEvent::ModelFailed(_) => {}
            }
        })
        .await;
    let (states, sentences) = heard.into_inner().unwrap();
    (states, sentences, answered)
}

#[tokio::test]
async fn states_are_reported_in_order() {
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
async fn streamed_sentences_are_those_of_the_response() {
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

/// A clock on which every sleep ends immediately.
struct InstantClock;

impl Clock for InstantClock {
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

/// A model that never replies.
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
async fn the_answer_is_extractive_when_the_model_times_out() {
    let retriever = retriever(Arc::new(book()), None);
    let agent = Agent::builder(retriever, Arc::new(InstantClock)).generator(Some(Arc::new(Silent))).build();
    let (_, _, answered) = heard(&agent, "What is a node in the graph?").await;
    let response = answered.unwrap();
    check(&response);
    assert!(response.degraded && response.grounded);
    assert_eq!(response.error.as_deref(), Some("the model is unavailable: it took too long"));
}

/// The text of a streamed turn as a client assembles it, and the response.
async fn put_together(agent: &Agent, query: &str) -> (Transcript, AgentResponse) {
    let told = Mutex::new(Transcript::default());
    let ask = Ask::new(query).with_sources(true).with_streaming(true);
    let listener = |event| match event {
        TurnEvent::Sentence(sentence, citations) => {
            told.lock().unwrap().add(&sentence, &citations, agent.settings());
        }
        TurnEvent::Restart => *told.lock().unwrap() = Transcript::default(),
        _ => {}
    };
    let response = agent.ask(&ask, &listener).await.unwrap();
    let mut told = told.into_inner().unwrap();
    told.end(&response);
    (told, response)
}

/// A model that sends `text`, split at `places`.
fn saying(text: &str, places: &[usize]) -> Arc<Script> {
    let deltas = divided(text, places).into_iter().map(|delta| Ok(GenerateEvent::Text(delta)));
    Script::new(vec![deltas.chain([Ok(GenerateEvent::Done(Usage::default()))]).collect()])
}

const STYLES: [CitationStyle; 4] =
    [CitationStyle::Markdown, CitationStyle::Source, CitationStyle::Inline, CitationStyle::Numbered];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn streamed_and_whole_answers_are_equal(
        before in markdown(),
        after in markdown(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        style in prop::sample::select(STYLES.to_vec()),
        verify in prop::sample::select(vec![Verify::Mark, Verify::Drop, Verify::Off]),
    ) {
        let said = format!("{before}\n\nA node is a participant in the graph [1].{after}");
        let places: Vec<usize> = places.iter().map(|place| place.index(said.len() + 1)).collect();
        let settings = Settings { citation_style: style, verify, ..Settings::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (told, response) = runtime.block_on(async {
            put_together(&agent(Some(saying(&said, &places)), settings.clone()), "What is a node in the graph?").await
        });
        let whole = runtime.block_on(async {
            ask(&agent(Some(saying(&said, &[])), settings.clone()), "What is a node in the graph?").await
        });
        prop_assert_eq!(told.text(), &response.answer);
        prop_assert_eq!(&response.answer, &whole.answer);
        // Every citation is where its mark says.
        let characters: Vec<char> = response.answer.chars().collect();
        let again = Transcript::of(&whole, &settings);
        prop_assert_eq!(told.marks(), again.marks());
        for mark in told.marks() {
            let citation = response.citations.iter().find(|citation| citation.id == mark.citation).unwrap();
            let words: String = characters[mark.start..mark.end].iter().collect();
            prop_assert_eq!(words, style.mark(citation));
        }
        let cited: usize = response.sentences.iter().map(|sentence| sentence.citations.len()).sum();
        prop_assert_eq!(told.marks().len(), cited);
    }
}

#[tokio::test]
async fn fences_lists_tables_and_formulas_keep_their_lines() {
    let said = "A node is a participant in the graph [1].\nRun:\n```bash\nls\n```\nSteps:\n1. One\n2. Two\n\n\
                | a | b |\n| --- | --- |\n| 1 | 2 |\n\n$$\nE = m c^2\n$$\n\nDone.";
    let settings =
        Settings { verify: Verify::Off, citation_style: CitationStyle::Numbered, ..Settings::default() };
    let agent = agent(Some(saying(said, &(0..said.len()).collect::<Vec<_>>())), settings);
    let (told, response) = put_together(&agent, "What is a node in the graph?").await;
    assert_eq!(told.text(), response.answer);
    let (text, list) = response.answer.split_once("\n\n[1] [").expect("there is a list of sources");
    assert_eq!(text, said.replace("graph [1].", "graph. [1]"));
    assert!(!list.is_empty());
}

#[tokio::test]
async fn a_cached_answer_is_streamed_unchanged() {
    let agent = agent(
        Some(Script::new(vec![text(
            "A node is a participant in the graph [1].\n- A node is a participant in the graph [1].",
        )])),
        Settings::default(),
    );
    let (first, response) = put_together(&agent, "What is a node in the graph?").await;
    let (again, remembered) = put_together(&agent, "What is a node in the graph?").await;
    assert!(remembered.metadata.cache_hit);
    assert_eq!((first.text(), again.text()), (response.answer.as_str(), remembered.answer.as_str()));
    assert_eq!((remembered.tokens_used, remembered.metadata.prompt_tokens), (0, 0));
}

#[tokio::test]
async fn small_talk_is_streamed_once() {
    let (told, response) = put_together(&agent(None, Settings::default()), "hello").await;
    assert_eq!(told.text(), response.answer);
}

#[tokio::test]
async fn a_dropped_turn_still_counts_its_tokens() {
    /// A model that sends some text and then stalls.
    struct Stalling;

    #[async_trait]
    impl Generator for Stalling {
        fn model(&self) -> &str {
            "stalling"
        }

        async fn generate(&self, _: &GenerateRequest) -> Result<EventStream, GenerateError> {
            let said =
                futures_util::stream::iter([Ok(GenerateEvent::Text("A node is a participant. ".repeat(8)))]);
            Ok(Box::pin(said.chain(futures_util::stream::pending())))
        }
    }

    let agent = agent_with(Some(Arc::new(Stalling)), None, Settings::default());
    let question = Ask::new("What is a node in the graph?").with_streaming(true);
    let turn = agent.ask(&question, &|_| {});
    assert!(futures_util::FutureExt::now_or_never(turn).is_none());
    let used = question.meter.usage();
    assert!(used.input_tokens > 100 && used.output_tokens >= 50, "{used:?}");
}

#[tokio::test]
async fn an_interrupted_call_counts_its_tokens() {
    let reply = vec![
        Ok(GenerateEvent::Text("A node is a participant in the graph. And then".into())),
        Err(GenerateError::Interrupted("cut".into())),
    ];
    let response =
        ask(&agent(Some(Script::new(vec![reply])), Settings::default()), "What is a node in the graph?")
            .await;
    assert!(response.degraded);
    assert!(response.metadata.prompt_tokens > 0 && response.metadata.completion_tokens > 0);
    assert_eq!(response.tokens_used, response.metadata.prompt_tokens + response.metadata.completion_tokens);
}

#[tokio::test]
async fn users_do_not_see_why_the_model_failed() {
    let refused = vec![Err(GenerateError::Interrupted("secret detail".into()))];
    let agent = agent(Some(Script::new(vec![refused])), Settings::default()).hiding_model_errors();
    let why = Mutex::new(String::new());
    let question = Ask::new("What is a node in the graph?");
    let listener = |event| {
        if let TurnEvent::ModelFailed(error) = event {
            *why.lock().unwrap() = error.to_string();
        }
    };
    let response = agent.ask(&question, &listener).await.unwrap();
    assert_eq!(response.error.as_deref(), Some(MODEL_UNAVAILABLE));
    assert!(response.degraded && why.lock().unwrap().contains("secret detail"));
}
