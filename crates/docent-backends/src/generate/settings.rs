//! Which model writes the answers, and how long Docent waits for it.
//!
//! Invariant: printing the settings does not print the key.

use std::time::Duration;

use secrecy::SecretString;

use crate::resilience::Policy;

/// Which model to use, its address, and timeouts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteSettings {
    /// The name of the provider, such as `openai`, `anthropic`, `gemini`, `cohere`, `ollama`, `vllm`. If not
    /// set: OpenAI's protocol if there is a `base_url`, otherwise the provider that the model's name
    /// suggests, otherwise OpenAI.
    pub provider: Option<String>,
    /// The provider's name of the model.
    pub model: String,
    /// The address of the API, if it is not the provider's own.
    pub base_url: Option<String>,
    /// The API key; local servers need none. If not set, the provider's environment variable is read, unless
    /// there is a `base_url`.
    pub api_key: Option<SecretString>,
    /// Retries; [`Policy::attempt_timeout`] is the timeout for the first event.
    pub policy: Policy,
    /// Timeout for the first event, for all attempts together.
    pub start_timeout: Duration,
    /// Maximum time between two events.
    pub idle_timeout: Duration,
}

impl RemoteSettings {
    /// The named model at OpenAI, with default timeouts and retries.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            provider: None,
            model: model.into(),
            base_url: None,
            api_key: None,
            policy: Policy::default(),
            start_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(8),
        }
    }
}
