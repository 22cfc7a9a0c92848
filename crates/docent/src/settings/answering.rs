//! Settings for answering: the agent, the model and the conversations.

use std::time::Duration;

use docent_backends::generate::RemoteSettings;
use docent_backends::session::sql::Address;
use docent_core::agent::{self, RetrievalMode, Rewrite, Verify};
use docent_core::cite::CitationStyle;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{Settings, out_of_range};
use crate::exit::{Exit, Failure};

/// The model used if a key is set but no model.
const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// `[agent]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// The number of earlier messages sent to the model.
    pub max_history: usize,
    /// The context window of the model in tokens, including its answer.
    pub context_tokens: usize,
    /// The maximum number of tool call rounds.
    pub max_tool_rounds: usize,
    /// The model's temperature.
    pub temperature: f32,
    /// The maximum number of tokens in an answer; 0 for the model's own limit.
    pub max_output_tokens: u32,
    /// The time limit for an answer that is sent as a whole.
    pub deadline_seconds: f64,
    /// The time limit for a streamed answer.
    pub stream_deadline_seconds: f64,
    /// What happens to unsupported sentences.
    pub verify: Verify,
    /// How citations are rendered.
    pub citation_style: CitationStyle,
    /// How the model gets passages.
    pub retrieval_mode: RetrievalMode,
    /// How follow-up questions are rewritten.
    pub rewrite: Rewrite,
    /// The name of the retrieval tool.
    pub tool_name: String,
    /// The size of the in-memory answer cache; 0 disables it.
    pub cached_answers: usize,
}

impl Default for Agent {
    fn default() -> Self {
        let settings = agent::Settings::default();
        Self {
            max_history: settings.max_history,
            context_tokens: settings.context_tokens,
            max_tool_rounds: settings.max_tool_rounds,
            temperature: settings.temperature,
            max_output_tokens: settings.max_output_tokens.unwrap_or(0),
            deadline_seconds: settings.deadline.as_secs_f64(),
            stream_deadline_seconds: settings.stream_deadline.as_secs_f64(),
            verify: settings.verify,
            citation_style: settings.citation_style,
            retrieval_mode: settings.retrieval_mode,
            rewrite: settings.rewrite,
            tool_name: settings.tool_name,
            cached_answers: settings.cached_answers,
        }
    }
}

impl Agent {
    /// The settings of the agent.
    pub fn settings(&self) -> agent::Settings {
        let mut settings = agent::Settings::default();
        settings.max_history = self.max_history;
        settings.context_tokens = self.context_tokens;
        settings.max_tool_rounds = self.max_tool_rounds;
        settings.temperature = self.temperature;
        settings.max_output_tokens = Some(self.max_output_tokens).filter(|most| *most > 0);
        settings.deadline = Duration::from_secs_f64(self.deadline_seconds);
        settings.stream_deadline = Duration::from_secs_f64(self.stream_deadline_seconds);
        settings.verify = self.verify;
        settings.citation_style = self.citation_style;
        settings.retrieval_mode = self.retrieval_mode;
        settings.rewrite = self.rewrite;
        settings.tool_name = self.tool_name.clone();
        settings.cached_answers = self.cached_answers;
        settings
    }

    /// Checks the documented ranges.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !(1..=100).contains(&self.max_history) {
            return Err(out_of_range("agent.max_history", "1 and 100", self.max_history));
        }
        if !(1..=10).contains(&self.max_tool_rounds) {
            return Err(out_of_range("agent.max_tool_rounds", "1 and 10", self.max_tool_rounds));
        }
        if !(0.0..=1.0).contains(&self.temperature) {
            return Err(out_of_range("agent.temperature", "0.0 and 1.0", self.temperature));
        }
        for (name, seconds) in [
            ("agent.deadline_seconds", self.deadline_seconds),
            ("agent.stream_deadline_seconds", self.stream_deadline_seconds),
        ] {
            if !(1.0..=600.0).contains(&seconds) {
                return Err(out_of_range(name, "1 and 600", seconds));
            }
        }
        if !(1000..=2_000_000).contains(&self.context_tokens) {
            return Err(out_of_range("agent.context_tokens", "1000 and 2000000", self.context_tokens));
        }
        if self.max_output_tokens as usize >= self.context_tokens {
            let range = format!("0 and agent.context_tokens ({})", self.context_tokens);
            return Err(out_of_range("agent.max_output_tokens", &range, self.max_output_tokens));
        }
        if self.tool_name.is_empty()
            || !self.tool_name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            let message = format!(
                "agent.tool_name may only contain letters, digits, _ and -, got `{}`",
                self.tool_name
            );
            return Err(Failure::new(Exit::NotConfigured, message));
        }
        Ok(())
    }
}

/// `[generator]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// Whether a model writes answers.
    pub kind: GeneratorKind,
    /// `openai`, `anthropic`, `gemini`, `cohere`, `ollama` …
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// The base URL, if it is not the provider's.
    pub base_url: Option<String>,
    /// The API key; never printed.
    pub api_key: Option<SecretString>,
    /// The maximum number of attempts per call.
    pub attempts: Option<u32>,
}

/// Whether a model writes answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorKind {
    /// Use a model if one is configured.
    #[default]
    Auto,
    /// Never use a model.
    Extractive,
    /// Always use a model.
    Model,
}

/// `[sessions]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// Where conversations are stored.
    pub kind: SessionsKind,
    /// The PostgreSQL database, with user and password; never printed.
    pub url: Option<SecretString>,
    /// Conversations are deleted this many days after their last use; 0 keeps them.
    pub retention_days: u32,
}

/// A hundred years.
const LONGEST_RETENTION: u32 = 36_500;

impl Sessions {
    /// Falls back to `DATABASE_URL` if the URL is not set.
    pub(super) fn or_database_url(&mut self) {
        let set = |url: &SecretString| !url.expose_secret().trim().is_empty();
        let other = || std::env::var(DATABASE_URL).ok().map(SecretString::from);
        self.url = self.url.take().filter(set).or_else(other).filter(set);
    }

    /// The configured PostgreSQL database.
    pub fn address(&self) -> Result<Address, Failure> {
        let Some(url) = &self.url else {
            let message = "PostgreSQL is selected for conversations, but sessions.url is not set";
            return Err(Failure::new(Exit::NotConfigured, message)
                .hint(format!("set DOCENT_SESSIONS__URL or {DATABASE_URL} to {EXAMPLE_URL}")));
        };
        Address::parse(url).map_err(|reason| {
            Failure::new(Exit::NotConfigured, format!("sessions.url: {reason}"))
                .hint(format!("the URL must look like {EXAMPLE_URL}"))
        })
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.kind == SessionsKind::Postgres {
            self.address()?;
        }
        if self.retention_days > LONGEST_RETENTION {
            return Err(out_of_range("sessions.retention_days", "0 and 36500", self.retention_days));
        }
        Ok(())
    }
}

/// The variable that many programs use for their database.
const DATABASE_URL: &str = "DATABASE_URL";

const EXAMPLE_URL: &str = "postgres://user:password@host/database";

/// Where conversations are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionsKind {
    /// In a file in the data folder.
    #[default]
    Sqlite,
    /// In a database that several servers can share.
    Postgres,
    /// In memory only; lost on exit.
    Memory,
}

impl Settings {
    /// The model to use; `None` if answers are extractive.
    pub fn remote_model(&self) -> Option<RemoteSettings> {
        let (generator, openai) = (&self.generator, &self.openai);
        let configured = openai.api_key.is_some()
            || openai.base_url.is_some()
            || [&generator.model, &generator.base_url, &generator.provider]
                .iter()
                .any(|setting| setting.is_some())
            || generator.api_key.is_some();
        match generator.kind {
            GeneratorKind::Extractive => return None,
            GeneratorKind::Auto if !configured => return None,
            _ => {}
        }
        // `OPENAI_*` variables apply to OpenAI only, not to another configured provider.
        let is_openai = generator.provider.as_deref().is_none_or(|provider| provider == "openai");
        let or_openai = |own: &Option<String>, openai: &Option<String>| {
            own.clone().or_else(|| openai.clone().filter(|_| is_openai))
        };
        let model = or_openai(&generator.model, &openai.model).unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let mut remote = RemoteSettings::new(model);
        // Otherwise a model named after another provider would send OpenAI's key to that provider.
        let openai_key = generator.api_key.is_none() && openai.api_key.is_some();
        remote.provider = generator.provider.clone().or_else(|| openai_key.then(|| "openai".to_owned()));
        remote.base_url = or_openai(&generator.base_url, &openai.base_url);
        remote.api_key = generator.api_key.clone().or_else(|| openai.api_key.clone().filter(|_| is_openai));
        remote.policy.attempts = generator.attempts.unwrap_or(remote.policy.attempts);
        // A longer deadline for answers is meant for slow models, so raise the model's timeouts, too.
        let deadline = Duration::from_secs_f64(self.agent.deadline_seconds);
        remote.start_timeout = remote.start_timeout.max(deadline);
        remote.idle_timeout = remote.idle_timeout.max(deadline.mul_f64(0.8));
        remote.policy.attempt_timeout = remote.policy.attempt_timeout.max(deadline.mul_f64(0.8));
        Some(remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Service;

    /// Settings with OpenAI's key and, optionally, a model and a provider.
    fn with_key(model: Option<&str>, provider: Option<&str>) -> RemoteSettings {
        let openai = Service {
            api_key: Some("sk-test".into()),
            model: model.map(str::to_owned),
            ..Service::default()
        };
        let generator = Generator { provider: provider.map(str::to_owned), ..Generator::default() };
        Settings { openai, generator, ..Settings::default() }.remote_model().unwrap()
    }

    #[test]
    fn without_a_key_there_is_no_model() {
        assert!(Settings::default().remote_model().is_none());
    }

    #[test]
    fn with_a_key_the_configured_or_the_default_model_is_used() {
        let remote = with_key(None, None);
        assert_eq!((remote.model.as_str(), remote.provider.as_deref()), ("gpt-4o-mini", Some("openai")));
        assert!(remote.api_key.is_some());
        assert_eq!(with_key(Some("gpt-4"), None).model, "gpt-4");
    }

    #[test]
    fn openai_settings_do_not_apply_to_another_provider() {
        let remote = with_key(Some("gpt-4"), Some("anthropic"));
        assert_eq!(remote.provider.as_deref(), Some("anthropic"));
        assert!(remote.api_key.is_none() && remote.model != "gpt-4");
    }

    #[test]
    fn extractive_never_uses_a_model() {
        let openai = Service { api_key: Some("sk-test".into()), ..Service::default() };
        let generator = Generator { kind: GeneratorKind::Extractive, ..Generator::default() };
        assert!(Settings { openai, generator, ..Settings::default() }.remote_model().is_none());
    }

    #[test]
    fn the_defaults_match_the_contract() {
        let settings = Settings::default();
        assert!(settings.check().is_ok());
        let (retrieval, agent) = (&settings.retrieval, &settings.agent);
        assert_eq!((retrieval.top_k, retrieval.threshold, retrieval.min_relevance_score), (5, 0.0, 0.3));
        assert_eq!((agent.temperature, agent.max_history, agent.max_tool_rounds), (0.1, 20, 4));
        assert_eq!((agent.deadline_seconds, agent.tool_name.as_str()), (10.0, "retrieve_documentation"));
        assert_eq!((agent.verify, agent.citation_style), (Verify::Mark, CitationStyle::Markdown));
        assert_eq!(agent.retrieval_mode, RetrievalMode::Prefetch);
        assert_eq!(settings.sessions.kind, SessionsKind::Sqlite);
    }

    #[test]
    fn zero_output_tokens_means_the_models_own_limit() {
        assert_eq!(Agent::default().settings().max_output_tokens, Some(1000));
        assert_eq!(Agent { max_output_tokens: 0, ..Agent::default() }.settings().max_output_tokens, None);
    }
}
