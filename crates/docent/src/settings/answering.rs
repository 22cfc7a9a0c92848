//! The settings of answers: the agent, the model, the conversations.

use std::time::Duration;

use docent_backends::generate::remote::RemoteSettings;
use docent_backends::session::sql::Address;
use docent_core::agent::{self, RetrievalMode, Rewrite, Verify};
use docent_core::cite::CitationStyle;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{Settings, out_of_range};
use crate::exit::{Exit, Failure};

/// The model used when a key is set and no model is named.
const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// `[agent]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Messages shown to the model.
    pub max_history: usize,
    /// Tokens sent to the model at most, its answer included.
    pub context_tokens: usize,
    /// Rounds of tool calls.
    pub max_tool_rounds: usize,
    /// The model's temperature.
    pub temperature: f32,
    /// The most tokens of an answer; 0 leaves it to the model.
    pub max_output_tokens: u32,
    /// The time a whole answer may take.
    pub deadline_seconds: f64,
    /// The time an answer may take that is streamed.
    pub stream_deadline_seconds: f64,
    /// What happens to unsupported sentences.
    pub verify: Verify,
    /// How citations look.
    pub citation_style: CitationStyle,
    /// How passages reach the model.
    pub retrieval_mode: RetrievalMode,
    /// Who makes a follow-up stand alone.
    pub rewrite: Rewrite,
    /// What the tool is called.
    pub tool_name: String,
    /// Answers kept in memory for when they are asked for again; 0 keeps none.
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
    /// As the agent wants it.
    pub fn settings(&self) -> agent::Settings {
        agent::Settings {
            max_history: self.max_history,
            context_tokens: self.context_tokens,
            max_tool_rounds: self.max_tool_rounds,
            temperature: self.temperature,
            max_output_tokens: Some(self.max_output_tokens).filter(|most| *most > 0),
            deadline: Duration::from_secs_f64(self.deadline_seconds),
            stream_deadline: Duration::from_secs_f64(self.stream_deadline_seconds),
            verify: self.verify,
            citation_style: self.citation_style,
            retrieval_mode: self.retrieval_mode,
            rewrite: self.rewrite,
            tool_name: self.tool_name.clone(),
            cached_answers: self.cached_answers,
        }
    }

    /// The ranges of the contract.
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
            let message =
                format!("agent.tool_name may only have letters, digits, _ and -, got `{}`", self.tool_name);
            return Err(Failure::new(Exit::NotConfigured, message));
        }
        Ok(())
    }
}

/// `[generator]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// Who writes answers.
    pub kind: GeneratorKind,
    /// `openai`, `anthropic`, `gemini`, `cohere`, `ollama` …
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// Another address.
    pub base_url: Option<String>,
    /// The key; never printed.
    pub api_key: Option<SecretString>,
    /// How often a call is tried.
    pub attempts: Option<u32>,
}

/// Who writes answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorKind {
    /// A model as soon as one is configured.
    #[default]
    Auto,
    /// Never a model.
    Extractive,
    /// Always a model.
    Model,
}

/// `[sessions]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// Where conversations are kept.
    pub kind: SessionsKind,
    /// The PostgreSQL database, with user and password; never printed.
    pub url: Option<SecretString>,
}

impl Sessions {
    /// Takes the address that other programs use when there is none of our own.
    pub(super) fn or_database_url(&mut self) {
        let set = |url: &SecretString| !url.expose_secret().trim().is_empty();
        let other = || std::env::var(DATABASE_URL).ok().map(SecretString::from);
        self.url = self.url.take().filter(set).or_else(other).filter(set);
    }

    /// The PostgreSQL database that is configured.
    pub fn address(&self) -> Result<Address, Failure> {
        let Some(url) = &self.url else {
            let message = "PostgreSQL is to keep the conversations, but sessions.url is not set";
            return Err(Failure::new(Exit::NotConfigured, message)
                .hint(format!("set DOCENT_SESSIONS__URL or {DATABASE_URL} to {EXAMPLE_URL}")));
        };
        Address::parse(url).map_err(|reason| {
            Failure::new(Exit::NotConfigured, format!("sessions.url: {reason}"))
                .hint(format!("it looks like {EXAMPLE_URL}"))
        })
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.kind == SessionsKind::Postgres {
            self.address()?;
        }
        Ok(())
    }
}

/// The variable that other programs find their database by.
const DATABASE_URL: &str = "DATABASE_URL";

const EXAMPLE_URL: &str = "postgres://user:password@host/database";

/// Where conversations are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionsKind {
    /// In a file of the data folder.
    #[default]
    Sqlite,
    /// In a database that several servers may share.
    Postgres,
    /// Nowhere: they go with the program.
    Memory,
}

impl Settings {
    /// The model to use; none when answers are extractive.
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
        // OpenAI's own variables are for OpenAI, not for another provider that was named.
        let is_openai = generator.provider.as_deref().is_none_or(|provider| provider == "openai");
        let or_openai = |own: &Option<String>, openai: &Option<String>| {
            own.clone().or_else(|| openai.clone().filter(|_| is_openai))
        };
        let model = or_openai(&generator.model, &openai.model).unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let mut remote = RemoteSettings::new(model);
        // Without this, a model called after another provider would be sent OpenAI's key.
        let openai_key = generator.api_key.is_none() && openai.api_key.is_some();
        remote.provider = generator.provider.clone().or_else(|| openai_key.then(|| "openai".to_owned()));
        remote.base_url = or_openai(&generator.base_url, &openai.base_url);
        remote.api_key = generator.api_key.clone().or_else(|| openai.api_key.clone().filter(|_| is_openai));
        remote.policy.attempts = generator.attempts.unwrap_or(remote.policy.attempts);
        // Whoever gives an answer more time means the model.
        let patience = Duration::from_secs_f64(self.agent.deadline_seconds);
        remote.start_timeout = remote.start_timeout.max(patience);
        remote.idle_timeout = remote.idle_timeout.max(patience.mul_f64(0.8));
        remote.policy.attempt_timeout = remote.policy.attempt_timeout.max(patience.mul_f64(0.8));
        Some(remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Service;

    /// OpenAI's key, and perhaps a model of its or another provider.
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
    fn with_a_key_the_model_is_the_one_named_or_the_default() {
        let remote = with_key(None, None);
        assert_eq!((remote.model.as_str(), remote.provider.as_deref()), ("gpt-4o-mini", Some("openai")));
        assert!(remote.api_key.is_some());
        assert_eq!(with_key(Some("gpt-4"), None).model, "gpt-4");
    }

    #[test]
    fn openais_settings_are_not_for_another_provider() {
        let remote = with_key(Some("gpt-4"), Some("anthropic"));
        assert_eq!(remote.provider.as_deref(), Some("anthropic"));
        assert!(remote.api_key.is_none() && remote.model != "gpt-4");
    }

    #[test]
    fn extractive_is_never_a_model() {
        let openai = Service { api_key: Some("sk-test".into()), ..Service::default() };
        let generator = Generator { kind: GeneratorKind::Extractive, ..Generator::default() };
        assert!(Settings { openai, generator, ..Settings::default() }.remote_model().is_none());
    }

    #[test]
    fn the_defaults_are_the_contracts() {
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
    fn the_length_of_an_answer_can_be_left_to_the_model() {
        assert_eq!(Agent::default().settings().max_output_tokens, Some(1000));
        assert_eq!(Agent { max_output_tokens: 0, ..Agent::default() }.settings().max_output_tokens, None);
    }
}
