//! Checks of the `Host` and `Origin` headers: which host names are served, and which pages may call the API.
//!
//! A malicious page can point its own host name at this machine (DNS rebinding); browsers then treat it as a
//! page of this server. So only known host names are served.
//!
//! Invariant: a request that a browser sends for a page of another site cannot read or change a conversation.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Server;
use super::error::{ApiError, Code};
use crate::settings::Serve;

/// Paths for probes and scrapers, which reach the server under any host name. They expose no conversations.
const FOR_MACHINES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The known host names and origins.
pub struct Hosts {
    /// Host names without ports; `*` allows all.
    names: Vec<String>,
    /// The host names of `serve.hosts`; an origin with one of them is this server's own, on any port.
    own_names: Vec<String>,
    /// The origin of `serve.public_url`.
    public_origin: Option<String>,
    /// `serve.cors_origins`.
    cors_origins: Vec<String>,
}

impl Hosts {
    /// Applies the settings; `listen` is the configured listen address.
    pub fn new(settings: &Serve, listen: &str) -> Self {
        let public = settings.public_url.as_deref().and_then(|url| url.split_once("://"));
        let public_authority = public.map(|(_, rest)| rest.split('/').next().unwrap_or_default());
        let names = settings.hosts.iter().map(String::as_str).chain([listen, "localhost"]);
        Self {
            names: names.chain(public_authority).map(name_of).collect(),
            own_names: settings.hosts.iter().map(|host| name_of(host)).collect(),
            public_origin: public
                .zip(public_authority)
                .map(|((scheme, _), authority)| format!("{scheme}://{authority}").to_lowercase()),
            cors_origins: settings.cors_origins.clone(),
        }
    }

    /// Whether the host is known. IP addresses are always allowed: DNS rebinding needs a host name. So is an
    /// empty host, which browsers never send.
    fn is_known(&self, authority: &str) -> bool {
        let name = name_of(authority);
        name.is_empty()
            || name.parse::<IpAddr>().is_ok()
            || self.names.iter().any(|known| known == "*" || *known == name)
    }

    /// Whether the request comes from a page of this server, or not from a page at all.
    pub fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = text(headers, header::ORIGIN) else { return true };
        let origin = origin.to_lowercase();
        let Some((_, authority)) = origin.split_once("://") else { return false };
        let host = text(headers, header::HOST).unwrap_or_default().to_lowercase();
        without_default_port(authority) == without_default_port(&host)
            || self.public_origin.as_ref() == Some(&origin)
            || self.own_names.contains(&name_of(authority))
    }

    /// Whether the request comes from a page that may call the API.
    fn is_allowed_page(&self, headers: &HeaderMap) -> bool {
        self.is_own_page(headers)
            || text(headers, header::ORIGIN)
                .is_some_and(|origin| self.cors_origins.iter().any(|known| known == "*" || *known == origin))
    }
}

/// Rejects requests for unknown hosts, and API requests from origins that are not allowed.
pub async fn check(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    if FOR_MACHINES.contains(&path) {
        return next.run(request).await;
    }
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let host = text(headers, header::HOST).or(authority).unwrap_or_default();
    if !server.hosts.is_known(&host) {
        return ApiError::new(Code::Forbidden, "Host not allowed")
            .detail("the operator can allow the host with serve.public_url or serve.hosts")
            .into_response();
    }
    if path.starts_with("/api/") && !server.hosts.is_allowed_page(headers) {
        return ApiError::new(Code::Forbidden, "Origin not allowed")
            .detail("the operator can allow the origin with serve.cors_origins")
            .into_response();
    }
    next.run(request).await
}

/// The value of a header; `?`, which is never known, if it is not text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?").to_owned())
}

/// The host name of `name:port` in lower case; IPv6 addresses lose their brackets.
fn name_of(authority: &str) -> String {
    let name = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None if authority.parse::<IpAddr>().is_ok() => authority,
        None => authority.split(':').next().unwrap_or_default(),
    };
    name.trim_end_matches('.').to_lowercase()
}

fn without_default_port(authority: &str) -> &str {
    authority.strip_suffix(":80").or(authority.strip_suffix(":443")).unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn hosts(change: impl Fn(&mut Serve)) -> Hosts {
        let mut settings = Serve::default();
        change(&mut settings);
        Hosts::new(&settings, "127.0.0.1:8080")
    }

    #[test]
    fn only_known_hosts_are_served() {
        let local = hosts(|_| {});
        for known in ["127.0.0.1:8080", "localhost", "LOCALHOST:8080", "[::1]:8080", "192.0.2.7", ""] {
            assert!(local.is_known(known), "{known}");
        }
        for foreign in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "?"]
        {
            assert!(!local.is_known(foreign), "{foreign}");
        }
        let public = hosts(|settings| {
            settings.public_url = Some("https://Docent.example.org:8443/book".to_owned());
            settings.hosts = vec!["docent.internal".to_owned()];
        });
        for known in ["docent.example.org", "docent.example.org.:443", "docent.internal:80", "localhost"] {
            assert!(public.is_known(known), "{known}");
        }
        assert!(!public.is_known("evil.example"));
        assert!(hosts(|settings| settings.hosts = vec!["*".to_owned()]).is_known("anything.example"));
        assert!(Hosts::new(&Serve::default(), "mill:8080").is_known("mill:8080"));
    }

    #[test]
    fn pages_of_other_sites_need_an_allowed_origin() {
        let known = hosts(|settings| {
            settings.public_url = Some("https://docent.example.org".to_owned());
            settings.hosts = vec!["docent.internal".to_owned()];
            settings.cors_origins = vec!["https://docs.example.org".to_owned(), "null".to_owned()];
        });
        let check = |host: &str, origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            headers.insert(header::ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
            (known.is_own_page(&headers), known.is_allowed_page(&headers))
        };
        assert_eq!(check("localhost:8080", "http://localhost:8080"), (true, true));
        assert_eq!(check("localhost:8080", "http://localhost:3000"), (false, false));
        assert_eq!(check("127.0.0.1:8080", "http://127.0.0.1:3000"), (false, false));
        assert_eq!(check("127.0.0.1:8080", "https://docent.internal:8443"), (true, true));
        assert_eq!(check("127.0.0.1:8080", "https://docent.example.org"), (true, true));
        assert_eq!(check("docent.example.org:443", "https://docent.example.org"), (true, true));
        assert_eq!(check("localhost:8080", "https://docs.example.org"), (false, true));
        assert_eq!(check("localhost:8080", "null"), (false, true));
        assert_eq!(check("localhost:8080", "https://evil.example"), (false, false));
        assert_eq!(check("localhost:8080", "\u{e9}"), (false, false));
        assert!(known.is_own_page(&HeaderMap::new()), "programs send no origin");
    }
}
