//! The read-only cookie: how it is signed and verified.
//!
//! It is signed with the hash of an API key, so all servers with the same keys accept it, and removing a key also
//! invalidates its cookies.
//!
//! Invariant: the cookie gives access to `/read` and nothing else, and only for a day.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, header};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::settings::Serve;

const COOKIE: &str = "docent_read";

/// How long the cookie is valid, in seconds.
const LIFETIME: u64 = 24 * 60 * 60;

/// The value of `Set-Cookie` for a client that has shown the key with this hash.
pub fn new(key: &[u8; 32], settings: &Serve) -> String {
    cookie(&sign(key, now() + LIFETIME), settings)
}

fn cookie(pass: &str, settings: &Serve) -> String {
    let public = settings.public_url.as_deref().unwrap_or_default();
    let folder = public.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let folder = folder.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
    let path = folder.map(|folder| format!("/{folder}")).unwrap_or_default();
    let secure = if public.starts_with("https://") { "; Secure" } else { "" };
    format!("{COOKIE}={pass}; Path={path}/read; Max-Age={LIFETIME}; HttpOnly; SameSite=Lax{secure}")
}

/// Whether the request has a valid cookie that was signed with this key's hash.
pub fn is_valid(headers: &HeaderMap, key: &[u8; 32]) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut passes = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    passes.any(|pass| {
        let until = pass.split_once('.').and_then(|(until, _)| until.parse::<u64>().ok());
        until.is_some_and(|until| {
            let in_time = (now()..=now() + LIFETIME).contains(&until);
            in_time && bool::from(subtle::ConstantTimeEq::ct_eq(sign(key, until).as_bytes(), pass.as_bytes()))
        })
    })
}

/// The value of the cookie: when it expires, and the signature.
fn sign(key: &[u8; 32], until: u64) -> String {
    // HMAC accepts keys of any length, so this does not fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(format!("read until {until}").as_bytes());
    let proof = hex::encode(mac.finalize().into_bytes());
    format!("{until}.{proof}")
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn shown(pass: &str) -> HeaderMap {
        let cookies = format!("theme=dark; {COOKIE}={pass}");
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(&cookies).unwrap())])
    }

    #[test]
    fn the_cookie_is_only_valid_for_its_key_and_until_it_expires() {
        let (key, other) = ([7; 32], [8; 32]);
        let pass = sign(&key, now() + 60);
        assert!(is_valid(&shown(&pass), &key));
        assert!(!is_valid(&shown(&pass), &other));
        assert!(!is_valid(&shown(&sign(&key, now() - 60)), &key), "expired");
        assert!(!is_valid(&shown(&sign(&key, now() + 10 * LIFETIME)), &key), "longer than any cookie lives");
        for forged in ["", ".", "1", "x.y", &format!("{}.", now() + 60), &pass[..pass.len() - 1]] {
            assert!(!is_valid(&shown(forged), &key), "{forged}");
        }
        assert!(!is_valid(&HeaderMap::new(), &key));
    }

    #[test]
    fn the_cookie_is_limited_to_the_path_of_the_pages() {
        let at = |url: Option<&str>| {
            let settings = Serve { public_url: url.map(str::to_owned), ..Serve::default() };
            cookie("1.a", &settings)
        };
        let cookie = at(None);
        assert_eq!(cookie, "docent_read=1.a; Path=/read; Max-Age=86400; HttpOnly; SameSite=Lax");
        let public = at(Some("https://example.org/docent/"));
        assert!(public.contains("Path=/docent/read;") && public.ends_with("; Secure"), "{public}");
        assert!(at(Some("http://example.org")).contains("Path=/read;"));
    }
}
