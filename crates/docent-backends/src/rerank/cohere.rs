//! Cohere's rerank API, and compatible servers.
//!
//! Invariant: every passage gets a score between 0 and 1; any other response is an error.

use async_trait::async_trait;
use docent_core::rerank::{RerankError, Reranker};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use crate::provider::{CallPolicy, Contact, Failure, Provider, base_url};

/// Cohere's default address.
const HOME: &str = "https://api.cohere.com";

/// Maximum number of passages per call.
pub const MOST_PASSAGES: usize = 1000;

/// Which model to use, its address, and timeouts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CohereRerankerSettings {
    /// The model's name.
    pub model: String,
    /// The address of the API, if it is not Cohere's own.
    pub base_url: Option<String>,
    /// The API key; Cohere requires one.
    pub api_key: Option<SecretString>,
    /// Timeouts and retries.
    pub call_policy: CallPolicy,
}

impl CohereRerankerSettings {
    /// A model at Cohere, with timeouts for a waiting user.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), base_url: None, api_key: None, call_policy: CallPolicy::interactive() }
    }
}

/// A reranker behind an API.
#[derive(Debug)]
pub struct CohereReranker {
    settings: CohereRerankerSettings,
    name: String,
    provider: Provider,
}

impl CohereReranker {
    /// Validates the settings; does not connect.
    pub fn new(settings: CohereRerankerSettings) -> Result<Self, RerankError> {
        let own = settings.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let (base, query) = base_url(own.unwrap_or(HOME), &["/rerank", "/v1", "/v2"])?;
        let at_home = base == HOME;
        let contact =
            Contact { who: "Cohere", section: "reranker", key_variable: "COHERE_API_KEY", base, query };
        let key = settings.api_key.clone();
        let provider = if at_home { Provider::with_key(contact, key)? } else { Provider::new(contact, key)? };
        Ok(Self { name: format!("cohere/{}", settings.model), settings, provider })
    }

    async fn judge(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, Failure> {
        let CohereRerankerSettings { model, call_policy, .. } = &self.settings;
        let mut scores = Vec::with_capacity(passages.len());
        for passages in passages.chunks(MOST_PASSAGES) {
            let body =
                json!({"model": model, "query": query, "documents": passages, "top_n": passages.len()});
            let read = |answer: &[u8]| in_order(answer, passages.len());
            scores.extend(self.provider.post("/v2/rerank", model, &body, call_policy, read).await?);
        }
        Ok(scores)
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Judged>,
}

#[derive(Deserialize)]
struct Judged {
    index: usize,
    relevance_score: f32,
}

/// The scores in the order of the passages; the response has the best first.
fn in_order(answer: &[u8], passages: usize) -> Result<Vec<f32>, Failure> {
    let Answer { results } = serde_json::from_slice(answer).map_err(|_| Failure::unreadable())?;
    let mut scores = vec![f32::NAN; passages];
    for Judged { index, relevance_score } in results {
        *scores.get_mut(index).ok_or_else(Failure::unreadable)? = relevance_score.clamp(0.0, 1.0);
    }
    match scores.iter().any(|score| score.is_nan()) {
        true => Err(Failure::unavailable("it did not score every passage")),
        false => Ok(scores),
    }
}

#[async_trait]
impl Reranker for CohereReranker {
    fn name(&self) -> &str {
        &self.name
    }

    async fn rerank(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError> {
        self.judge(query, passages).await.map_err(|failure| {
            tracing::warn!(reranker = self.name, %failure, "reranking failed; keeping the original order");
            failure.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::resilience::Policy;
    use docent_testkit::{Act, ScriptedProvider};

    async fn reranker(script: Vec<Act>, then: Act) -> (ScriptedProvider, CohereReranker) {
        let server = ScriptedProvider::start(8, script, then).await.unwrap();
        let mut settings = CohereRerankerSettings::new("rerank-v3.5");
        settings.base_url = Some(format!("{}/v2", server.url()));
        settings.api_key = Some("sk-secret".into());
        let short = Duration::from_millis(5);
        settings.call_policy.policy = Policy { first_delay: short, max_delay: short, ..Policy::default() };
        (server, CohereReranker::new(settings).unwrap())
    }

    #[tokio::test]
    async fn cohere_keeps_the_contract() {
        let (server, reranker) = reranker(vec![], Act::Answer).await;
        docent_core::testing::reranker_contract(&reranker).await;
        assert_eq!(server.violations(), Vec::<String>::new());
        assert_eq!(server.paths()[0], "/v2/rerank");
        let body = &server.requests()[0].body;
        assert_eq!((&body["model"], &body["top_n"]), (&json!("rerank-v3.5"), &json!(3)));
        assert_eq!(reranker.name(), "cohere/rerank-v3.5");
    }

    #[tokio::test]
    async fn many_passages_are_split_into_several_calls() {
        let (server, reranker) = reranker(vec![], Act::Answer).await;
        let passages = vec!["a node"; 1001];
        assert_eq!(reranker.rerank("node", &passages).await.unwrap().len(), 1001);
        assert_eq!(server.requests().len(), 2);
        assert_eq!(server.violations(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn transient_failures_are_retried() {
        let (server, reranker) = reranker(vec![Act::Busy(429, 0), Act::Truncated], Act::Answer).await;
        reranker.rerank("node", &["a node"]).await.unwrap();
        assert_eq!(server.requests().len(), 3);
    }

    #[tokio::test]
    async fn errors_name_the_setting_to_check_and_contain_no_secrets() {
        for (act, message) in [
            (Act::Status(401), "check COHERE_API_KEY"),
            (Act::Status(404), "check reranker.model and reranker.base_url"),
            (Act::Status(500), "the server returned HTTP 500"),
            (Act::TooFew, "it did not score every passage"),
            (Act::Null, "not in the expected format"),
        ] {
            let (_server, reranker) = reranker(vec![], act).await;
            let error = reranker.rerank("my question", &["my passage"]).await.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            assert!(!error.contains("secret") && !error.contains("my "), "{error}");
        }
        let error = CohereReranker::new(CohereRerankerSettings::new("rerank-v3.5")).unwrap_err().to_string();
        assert!(error.ends_with("set COHERE_API_KEY"), "{error}");
    }
}
