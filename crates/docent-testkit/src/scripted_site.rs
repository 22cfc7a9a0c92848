//! A website in the test's own process; a function decides how it responds to each request, correctly or not.
//!
//! Invariant: every request is recorded before it is answered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

/// A request as the site received it.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The path and the query string.
    pub path: String,
    /// The headers, with lower-case names.
    pub headers: BTreeMap<String, String>,
}

/// How the site responds to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A complete response.
    Whole {
        /// The status.
        code: u16,
        /// Headers besides the length.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Sends these bytes repeatedly, `times` times or until the client disconnects.
    Repeat {
        /// The bytes to repeat.
        piece: Vec<u8>,
        /// The number of repetitions.
        times: usize,
        /// Headers.
        headers: Vec<(String, String)>,
    },
    /// Sends a byte now and then until the client disconnects.
    Drip,
    /// Closes the connection.
    HangUp,
}

impl Answer {
    /// An HTML page.
    pub fn html(body: impl Into<String>) -> Self {
        Self::of("text/html; charset=utf-8", body.into().into_bytes())
    }

    /// A body with this content type.
    pub fn of(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Whole { code: 200, headers: vec![("content-type".into(), kind.into())], body: body.into() }
    }

    /// A status with a short body.
    pub fn status(code: u16) -> Self {
        Self::Whole {
            code,
            headers: vec![("content-type".into(), "text/html".into())],
            body: format!("<h1>Status {code}</h1><p>There is nothing to read here.</p>").into_bytes(),
        }
    }

    /// A redirect.
    pub fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).with("location", to)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Self::Whole { headers, .. } | Self::Repeat { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.into()));
        }
        self
    }
}

/// Pages by path; a test may change them while they are served.
pub type Pages = Arc<Mutex<BTreeMap<String, Answer>>>;

/// The site; it stops when dropped.
#[derive(Debug)]
pub struct ScriptedSite {
    address: SocketAddr,
    visits: Arc<Mutex<Vec<Visit>>>,
    closed: Arc<AtomicBool>,
}

impl ScriptedSite {
    /// Responds to every request with `script`.
    pub fn start(script: impl Fn(&Visit) -> Answer + Send + Sync + 'static) -> std::io::Result<Self> {
        Self::start_at("127.0.0.1:0", script)
    }

    /// The same on a given address.
    pub fn start_at(
        address: &str,
        script: impl Fn(&Visit) -> Answer + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let site = Self { address: listener.local_addr()?, visits: Arc::default(), closed: Arc::default() };
        let (visits, closed, script) = (site.visits.clone(), site.closed.clone(), Arc::new(script));
        thread::spawn(move || {
            for connection in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(connection) = connection else { continue };
                let (visits, script) = (visits.clone(), script.clone());
                thread::spawn(move || answer(connection, &visits, &*script));
            }
        });
        Ok(site)
    }

    /// Serves pages by path, each with an `ETag` derived from its bytes; other paths are not found.
    pub fn of_pages(pages: Pages) -> std::io::Result<Self> {
        Self::start(move |visit| {
            let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            match pages.get(&visit.path) {
                Some(answer) => conditional(visit, answer.clone()),
                None => Answer::status(404),
            }
        })
    }

    /// The URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far and clears the list.
    pub fn visits(&self) -> Vec<Visit> {
        std::mem::take(&mut *self.visits.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ScriptedSite {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the listener, which then notices that it should stop.
        let _ = TcpStream::connect(self.address);
    }
}

/// The response with its `ETag`, or 304 if nothing changed.
fn conditional(visit: &Visit, answer: Answer) -> Answer {
    let Answer::Whole { code: 200, body, .. } = &answer else { return answer };
    let tag = format!("\"{:016x}\"", xxh3_64(body));
    if visit.headers.get("if-none-match") == Some(&tag) {
        return Answer::Whole { code: 304, headers: vec![("etag".into(), tag)], body: Vec::new() };
    }
    answer.with("etag", tag)
}

fn answer(connection: TcpStream, visits: &Mutex<Vec<Visit>>, script: &(dyn Fn(&Visit) -> Answer + Sync)) {
    let Ok(reader) = connection.try_clone() else { return };
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let Some(path) = lines.next().and_then(|line| line.split(' ').nth(1).map(str::to_owned)) else { return };
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    let visit = Visit { path, headers };
    visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit.clone());
    // A client that disconnected is not an error of the site.
    let _ = write(connection, &script(&visit));
}

fn write(mut connection: TcpStream, answer: &Answer) -> std::io::Result<()> {
    match answer {
        Answer::Whole { code, headers, body } => {
            let mut head = head(*code, headers);
            if *code != 304 {
                head += &format!("content-length: {}\r\n", body.len());
            }
            connection.write_all(format!("{head}\r\n").as_bytes())?;
            connection.write_all(body)
        }
        Answer::Repeat { piece, times, headers } => {
            connection.write_all(format!("{}\r\n", head(200, headers)).as_bytes())?;
            (0..*times).try_for_each(|_| connection.write_all(piece))
        }
        Answer::Drip => {
            let kind = [("content-type".to_owned(), "text/html".to_owned())];
            connection.write_all(format!("{}\r\n<p>", head(200, &kind)).as_bytes())?;
            loop {
                connection.write_all(b"a")?;
                thread::sleep(Duration::from_millis(20));
            }
        }
        Answer::HangUp => Ok(()),
    }
}

fn head(code: u16, headers: &[(String, String)]) -> String {
    let mut head = format!("HTTP/1.1 {code} Scripted\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head
}
