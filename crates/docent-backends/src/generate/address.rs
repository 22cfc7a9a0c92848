//! The protocol and the URL of a model.
//!
//! Invariant: a base URL is never guessed from a model's name; a key is only sent to the configured address.

use docent_core::generate::GenerateError;
use genai::adapter::AdapterKind;

use super::settings::RemoteSettings;

/// The protocol, and the URL if it is not the provider's own.
#[derive(Debug, PartialEq)]
pub(super) struct Address {
    pub(super) kind: AdapterKind,
    pub(super) endpoint: Option<String>,
}

impl Address {
    pub(super) fn find(settings: &RemoteSettings) -> Result<Self, GenerateError> {
        let base_url = settings.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let provider = settings.provider.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let mut kind = match provider {
            Some(name) => provider_kind(name, base_url.is_some())?,
            None if base_url.is_some() => AdapterKind::OpenAI,
            None => suggested_kind(&settings.model),
        };
        if kind == AdapterKind::OpenAI && base_url.is_none() && needs_responses(&settings.model) {
            kind = AdapterKind::OpenAIResp;
        }
        let Some(base_url) = base_url else { return Ok(Self { kind, endpoint: None }) };
        // Ollama offers OpenAI's protocol under this path, and its own elsewhere.
        if kind == AdapterKind::Ollama && base_url.trim_end_matches('/').ends_with("/v1") {
            kind = AdapterKind::OpenAI;
        }
        Ok(Self { kind, endpoint: Some(endpoint(base_url, kind)?) })
    }

    /// The full URL of an OpenAI-compatible server, for calls without a key.
    pub(super) fn url_without_key(&self) -> Option<String> {
        let endpoint = self.endpoint.as_ref().filter(|_| self.kind == AdapterKind::OpenAI)?;
        Some(match endpoint.split_once('?') {
            Some((path, query)) => format!("{path}chat/completions?{query}"),
            None => format!("{endpoint}chat/completions"),
        })
    }
}

fn provider_kind(name: &str, has_url: bool) -> Result<AdapterKind, GenerateError> {
    let name = name.to_lowercase().replace(['-', '.', ' '], "_");
    match name.as_str() {
        "google" => Ok(AdapterKind::Gemini),
        "openai_compatible" | "vllm" | "llama_cpp" | "lmstudio" | "lm_studio" if has_url => {
            Ok(AdapterKind::OpenAI)
        }
        "openai_compatible" | "vllm" | "llama_cpp" | "lmstudio" | "lm_studio" => {
            Err(GenerateError::Refused(format!("the provider `{name}` needs a base URL")))
        }
        name => AdapterKind::from_lower_str(name).ok_or_else(|| {
            let known: Vec<&str> = AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect();
            GenerateError::Refused(format!(
                "unknown provider `{name}`; known providers: {}",
                known.join(", ")
            ))
        }),
    }
}

/// `genai` treats every unknown name as an Ollama model. Here it is treated as an OpenAI model, unless it
/// starts with `ollama::`.
fn suggested_kind(model: &str) -> AdapterKind {
    match AdapterKind::from_model(model) {
        Ok(AdapterKind::Ollama) if !model.starts_with("ollama::") => AdapterKind::OpenAI,
        // These models also support chat completions; see `needs_responses`.
        Ok(AdapterKind::OpenAIResp) if !model.starts_with("openai_resp::") => AdapterKind::OpenAI,
        Ok(kind) => kind,
        Err(_) => AdapterKind::OpenAI,
    }
}

/// The few models that OpenAI offers only through the Responses API.
fn needs_responses(model: &str) -> bool {
    model.starts_with("gpt") && (model.contains("codex") || model.contains("-pro"))
}

/// The base URL as `genai` needs it: with a trailing slash, and with `/v1/` if it has no path.
fn endpoint(base_url: &str, kind: AdapterKind) -> Result<String, GenerateError> {
    let refused = || GenerateError::Refused("the base URL must look like http://host:port/v1".to_owned());
    let (url, query) = match base_url.split_once('?') {
        Some((url, query)) => (url, format!("?{query}")),
        None => (base_url, String::new()),
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(refused)?;
    if !matches!(scheme, "http" | "https") || rest.contains([' ', '#']) {
        return Err(refused());
    }
    let rest = rest.trim_end_matches('/').trim_end_matches("/chat/completions");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() {
        return Err(refused());
    }
    let path = match path {
        "" if kind == AdapterKind::OpenAI => "v1/".to_owned(),
        "" => String::new(),
        path => format!("{path}/"),
    };
    Ok(format!("{scheme}://{host}/{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(provider: Option<&str>, model: &str, base_url: Option<&str>) -> Result<Address, String> {
        let mut settings = RemoteSettings::new(model);
        settings.provider = provider.map(str::to_owned);
        settings.base_url = base_url.map(str::to_owned);
        Address::find(&settings).map_err(|error| error.to_string())
    }

    fn check_url(base_url: &str, expected: &str) {
        let address = find(None, "any", Some(base_url)).unwrap();
        assert_eq!(address, Address { kind: AdapterKind::OpenAI, endpoint: Some(expected.to_owned()) });
    }

    #[test]
    fn base_urls_are_normalized() {
        check_url("http://127.0.0.1:8099", "http://127.0.0.1:8099/v1/");
        check_url("http://127.0.0.1:8099/", "http://127.0.0.1:8099/v1/");
        check_url(" http://127.0.0.1:8099/v1 ", "http://127.0.0.1:8099/v1/");
        check_url("http://127.0.0.1:8099/v1/", "http://127.0.0.1:8099/v1/");
        check_url("https://host/v1/chat/completions", "https://host/v1/");
        check_url("https://host/deep/path?version=1", "https://host/deep/path/?version=1");
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for url in ["localhost:8080", "ftp://host", "http://", "http:///v1", "http://a b"] {
            assert!(find(None, "any", Some(url)).unwrap_err().contains("base URL"), "{url}");
        }
    }

    #[test]
    fn a_query_stays_at_the_end() {
        let address = find(None, "any", Some("https://host/path?version=1")).unwrap();
        assert_eq!(address.url_without_key().unwrap(), "https://host/path/chat/completions?version=1");
    }

    #[test]
    fn the_provider_is_configured_or_derived_from_the_model_or_openai() {
        let kind = |provider, model| find(provider, model, None).unwrap().kind;
        assert_eq!(kind(None, "gpt-4o-mini"), AdapterKind::OpenAI);
        assert_eq!(kind(None, "gpt-5-mini"), AdapterKind::OpenAI);
        assert_eq!(kind(None, "gpt-5-pro"), AdapterKind::OpenAIResp);
        assert_eq!(kind(None, "ft:something-new"), AdapterKind::OpenAI);
        assert_eq!(kind(None, "claude-sonnet-4-5"), AdapterKind::Anthropic);
        assert_eq!(kind(None, "gemini-2.5-flash"), AdapterKind::Gemini);
        assert_eq!(kind(None, "ollama::llama3.2"), AdapterKind::Ollama);
        assert_eq!(kind(Some("ollama"), "llama3.2"), AdapterKind::Ollama);
        assert_eq!(kind(Some("Google"), "gemini-2.5-flash"), AdapterKind::Gemini);
        assert_eq!(kind(Some("open-router"), "any/model"), AdapterKind::OpenRouter);
    }

    #[test]
    fn the_error_for_an_unknown_provider_lists_the_known_ones() {
        assert!(find(Some("opnai"), "any", None).unwrap_err().contains("anthropic"));
        assert!(find(Some("vllm"), "any", None).unwrap_err().contains("needs a base URL"));
    }

    #[test]
    fn both_of_ollamas_protocols_are_supported() {
        let own = find(Some("ollama"), "llama3.2", Some("http://localhost:11434")).unwrap();
        assert_eq!(
            (own.kind, own.endpoint.as_deref()),
            (AdapterKind::Ollama, Some("http://localhost:11434/"))
        );
        let compatible = find(Some("ollama"), "llama3.2", Some("http://localhost:11434/v1")).unwrap();
        assert_eq!(compatible.kind, AdapterKind::OpenAI);
    }
}
