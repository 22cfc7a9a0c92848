//! Test the tool that models can call.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::embed::{EmbedError, EmbedderId, Purpose, Vector};
use crate::index::{Candidates, Description, Index, IndexError, IndexQuery};
use crate::testing::LetterEmbedder;

const NODE: &str = "What is a node in the graph?";
const ANSWER: &str = "A node is a participant in the graph [1].";

async fn tool_answer(agent: &Agent, script: &Script) -> String {
    let response = ask(agent, NODE).await;
    check(&response);
    assert!(response.grounded);
    script.requests()[1].messages.last().unwrap().content.clone()
}

fn calling(arguments: &str) -> Arc<Script> {
    Script::new(vec![tool("retrieve_documentation", arguments), text(ANSWER)])
}

#[tokio::test]
async fn finding_nothing_is_not_an_error() {
    let script = calling("{\"query\": \"zebra\"}");
    let answer = tool_answer(&agent(Some(script.clone()), Settings::default()), &script).await;
    assert!(answer.contains("\"results\":[]") && answer.contains("\"total_results\":0"), "{answer}");
    assert!(!answer.contains("\"error\""), "{answer}");
}

#[tokio::test]
async fn alternative_argument_names_are_accepted() {
    let script = calling("{\"query\": \"topic messages\", \"threshold\": 1.0}");
    let answer = tool_answer(&agent(Some(script.clone()), Settings::default()), &script).await;
    assert!(answer.contains("\"total_results\":0"), "{answer}");
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    for (arguments, message) in [
        ("{\"query\": \"x\", \"threshold\": 2}", "threshold must be between 0.0 and 1.0, got 2"),
        ("{\"query\": \"x\", \"top_k\": 1.5}", "top_k must be a whole number"),
        ("{\"query\": \"x\", \"similarity_threshold\": \"high\"}", "similarity_threshold must be a number"),
        ("{\"query\": \"x\", \"module\": \"kitchen\"}", "there is no module `kitchen`; available modules: m"),
    ] {
        let script = calling(arguments);
        let answer = tool_answer(&agent(Some(script.clone()), Settings::default()), &script).await;
        assert!(answer.contains(message), "{answer}");
    }
}

#[tokio::test]
async fn the_tool_can_be_renamed() {
    let script = Script::new(vec![tool("retrieve_context", "{\"query\": \"topic\"}"), text(ANSWER)]);
    let settings = Settings { tool_name: "retrieve_context".into(), ..Settings::default() };
    let answer = tool_answer(&agent(Some(script.clone()), settings), &script).await;
    assert!(answer.contains("\"total_results\":1"), "{answer}");
    let request = &script.requests()[0];
    assert_eq!(request.tools[0].name, "retrieve_context");
    assert!(request.messages[0].content.contains("retrieve_context"));
}

#[tokio::test]
async fn several_calls_in_one_message_are_all_answered() {
    let call = |id: &str, query: &str| ToolCall {
        id: id.into(),
        name: "retrieve_documentation".into(),
        arguments: format!("{{\"query\": \"{query}\"}}"),
    };
    let both = vec![
        Ok(GenerateEvent::ToolCalls(vec![call("a", "topic"), call("b", "water")])),
        Ok(GenerateEvent::Done(Usage::default())),
    ];
    let script = Script::new(vec![both, text(ANSWER)]);
    ask(&agent(Some(script.clone()), Settings::default()), NODE).await;
    let messages = &script.requests()[1].messages;
    let answered: Vec<&str> = messages.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(answered, ["a", "b"]);
}

#[tokio::test]
async fn roles_alternate_around_a_tool_call() {
    use crate::generate::Role::*;
    let script = calling("{\"query\": \"topic\"}");
    ask(&agent(Some(script.clone()), Settings::default()), NODE).await;
    let request = &script.requests()[1];
    let roles: Vec<crate::generate::Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [System, User, Assistant, Tool]);
    assert!(
        request.messages.iter().all(|message| (message.role == Assistant) != message.tool_calls.is_empty())
    );
}

#[tokio::test]
async fn a_tool_call_can_be_limited_to_a_module() {
    let mut chunks =
        [chunk("nodes", 0, "A node is in the graph."), chunk("pasta", 0, "A node of pasta is a graph too.")];
    chunks[1].module_name = "kitchen".to_owned();
    let index = MemoryIndex::new(chunks.map(|chunk| (chunk, Vec::new())).to_vec());
    let script = calling("{\"query\": \"node graph\", \"module\": \"kitchen\"}");
    let retriever = retriever(Arc::new(index), None);
    let clock = Arc::new(StoppedClock);
    let agent = Agent::builder(retriever, clock).generator(Some(script.clone())).build();
    ask(&agent, NODE).await;
    let answer = script.requests()[1].messages.last().unwrap().content.clone();
    assert!(answer.contains("\"total_results\":1") && answer.contains("pasta"), "{answer}");
}

#[tokio::test]
async fn tokens_are_estimated_if_the_provider_does_not_report_them() {
    let reply = vec![Ok(GenerateEvent::Text(ANSWER.to_owned())), Ok(GenerateEvent::Done(Usage::default()))];
    let response = ask(&agent(Some(Script::new(vec![reply])), Settings::default()), NODE).await;
    assert!(response.tokens_used > 50, "{}", response.tokens_used);
}

#[tokio::test]
async fn the_model_is_not_called_when_nothing_was_found() {
    let script = calling("{\"query\": \"zebra\"}");
    let response = ask(&agent(Some(script.clone()), Settings::default()), "zebra").await;
    assert!(script.requests().is_empty() && !response.grounded);
}

#[tokio::test]
async fn an_index_error_ends_the_turn() {
    let flaky = Flaky(book(), AtomicUsize::new(1));
    let clock = Arc::new(StoppedClock);
    let agent = Agent::builder(retriever(Arc::new(flaky), None), clock).build();
    let states: Mutex<Vec<State>> = Mutex::default();
    let question = Ask::new(NODE);
    let answered = agent
        .ask(&question, &|event| {
            if let TurnEvent::State(state) = event {
                states.lock().unwrap().push(state);
            }
        })
        .await;
    assert!(matches!(answered, Err(AskError::Retrieve(_))));
    assert_eq!(states.into_inner().unwrap().last(), Some(&State::Failed));
}

/// An index whose first search works and whose later searches fail.
struct Flaky(MemoryIndex, AtomicUsize);

#[async_trait]
impl Index for Flaky {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        if self.1.fetch_add(1, Ordering::Relaxed) > 0 {
            return Err(IndexError::Damaged("gone".into()));
        }
        self.0.search(query).await
    }

    async fn chunks(
        &self,
        rows: &[crate::index::RowId],
    ) -> Result<Vec<Option<Arc<crate::chunk::Chunk>>>, IndexError> {
        self.0.chunks(rows).await
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<crate::chunk::Chunk>>, IndexError> {
        self.0.page(document_id).await
    }

    async fn outline(&self) -> Result<Vec<crate::index::PageOutline>, IndexError> {
        self.0.outline().await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        self.0.vocabulary().await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        self.0.describe().await
    }

    async fn identity(&self) -> Result<crate::index::Identity, IndexError> {
        self.0.identity().await
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        Ok(self)
    }
}

/// An embedder whose first call works and whose later calls fail.
struct FlakyEmbedder(LetterEmbedder, AtomicUsize);

#[async_trait]
impl Embedder for FlakyEmbedder {
    fn id(&self) -> &EmbedderId {
        self.0.id()
    }

    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.0.count_tokens(text)
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        if self.1.fetch_add(1, Ordering::Relaxed) > 0 {
            return Err(EmbedError::Unavailable("gone".into()));
        }
        self.0.embed(texts, purpose).await
    }
}

#[tokio::test]
async fn a_failed_search_is_reported_to_the_model() {
    let flaky_index: Retriever = retriever(Arc::new(Flaky(book(), AtomicUsize::default())), None);
    let flaky_embedder: Arc<dyn Embedder> =
        Arc::new(FlakyEmbedder(LetterEmbedder::default(), AtomicUsize::default()));
    let flaky_embedder = retriever(Arc::new(book()), Some(flaky_embedder));
    for (retriever, message) in
        [(flaky_index, "Textbook search unavailable"), (flaky_embedder, "Embedding generation failed")]
    {
        let script = calling("{\"query\": \"topic\"}");
        let clock = Arc::new(StoppedClock);
        let agent = Agent::builder(retriever, clock).generator(Some(script.clone())).build();
        let answer = tool_answer(&agent, &script).await;
        assert!(answer.contains(message) && answer.contains("\"results\":[]"), "{answer}");
    }
}
