//! A language model behind an API: OpenAI, any provider that `genai` supports, or any compatible URL.
//!
//! An attempt that fails before the first event is retried; later failures are returned to the caller as part
//! of the stream.
//!
//! Invariant: errors and logs contain neither the key nor the conversation.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use docent_core::generate::{EventStream, GenerateError, GenerateRequest, Generator};
use futures_util::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden};
use secrecy::ExposeSecret;
use tokio::time::Instant;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::address::Address;
use super::answer;
use super::failure::Failure;
use super::request;
use super::settings::RemoteSettings;
use crate::resilience::{self, Breaker, BreakerState};

/// A model behind an API.
#[derive(Debug)]
pub struct RemoteGenerator {
    settings: RemoteSettings,
    client: Client,
    target: ModelIden,
    breaker: Breaker,
    /// Whether the model has rejected the temperature parameter; see [`Self::attempt`].
    fixed_temperature: AtomicBool,
}

/// A stream and its first event.
type Begun = (ChatStream, ChatStreamEvent);

impl RemoteGenerator {
    /// Validates the settings; does not connect.
    pub fn new(settings: RemoteSettings) -> Result<Self, GenerateError> {
        let address = Address::find(&settings)?;
        let key = settings.api_key.clone().filter(|key| !key.expose_secret().trim().is_empty());
        if key
            .as_ref()
            .is_some_and(|key| !key.expose_secret().trim().bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(GenerateError::Refused("the API key contains invalid characters".to_owned()));
        }
        let mut builder = Client::builder();
        if let Some(endpoint) = &address.endpoint {
            builder = builder.append_provider_config(address.kind, Endpoint::from_owned(endpoint.as_str()));
        }
        let keyless = address.url_without_key();
        // The key is exposed only here, for each call.
        builder = builder.with_auth_resolver_fn(
            move |_: ModelIden| -> Result<Option<AuthData>, genai::resolver::Error> {
                Ok(match (&key, &keyless) {
                    (Some(key), _) => Some(AuthData::from_single(key.expose_secret().trim())),
                    (None, Some(url)) => {
                        Some(AuthData::RequestOverride { url: url.clone(), headers: Headers::default() })
                    }
                    (None, None) => None,
                })
            },
        );
        let client = builder
            .build()
            .map_err(|_| GenerateError::Refused("cannot set up the HTTP client".to_owned()))?;
        Ok(Self {
            target: ModelIden::new(address.kind, settings.model.as_str()),
            client,
            settings,
            breaker: Breaker::new("model"),
            fixed_temperature: AtomicBool::new(false),
        })
    }

    /// The state of the circuit breaker.
    pub fn breaker(&self) -> BreakerState {
        self.breaker.state()
    }

    /// One attempt, up to the first event. If the model rejects the temperature, the request is repeated
    /// without it, and later requests omit it, too.
    async fn attempt(&self, request: &GenerateRequest) -> Result<Begun, Failure> {
        let with_temperature = !self.fixed_temperature.load(Ordering::Relaxed);
        match self.begin(request, with_temperature).await {
            Err(failure) if with_temperature && failure.blames_temperature => {
                self.fixed_temperature.store(true, Ordering::Relaxed);
                self.begin(request, false).await
            }
            outcome => outcome,
        }
    }

    async fn begin(&self, request: &GenerateRequest, with_temperature: bool) -> Result<Begun, Failure> {
        let failure = |error| Failure::before_answer(&error, &self.settings.model);
        let mut options = request::options(request, with_temperature);
        if self.settings.base_url.is_some() {
            options = request::keep_model_name(options, &self.settings.model);
        }
        let chat = request::chat(request);
        let started = self.client.exec_chat_stream(&self.target, chat, Some(&options)).await;
        let mut stream = started.map_err(failure)?.stream;
        loop {
            // `genai` logs what servers send, and error messages may quote keys and questions.
            match stream.next().with_subscriber(NoSubscriber::default()).await {
                // `Start` comes before the request is sent.
                Some(Ok(ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)) => {}
                Some(Ok(event)) => return Ok((stream, event)),
                Some(Err(error)) => return Err(failure(error)),
                None => return Err(Failure::unavailable("its response was not in the expected format")),
            }
        }
    }
}

#[async_trait]
impl Generator for RemoteGenerator {
    fn model(&self) -> &str {
        &self.settings.model
    }

    fn circuit(&self) -> &'static str {
        match self.breaker.state() {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
        }
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<EventStream, GenerateError> {
        let deadline = Instant::now() + self.settings.start_timeout;
        let begun =
            resilience::begin(&self.settings.policy, &self.breaker, Some(deadline), || self.attempt(request));
        let ((stream, first), permit) = begun.await.map_err(|failure| failure.error)?;
        Ok(answer::events(stream, first, permit, self.settings.idle_timeout))
    }
}
