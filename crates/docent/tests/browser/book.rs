//! A small book that is published on one local port and served by Docent on another.
//!
//! Invariant: what is published is what was ingested, so that a link into the book leads to the words it
//! quotes.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use docent_testkit::scripted_model::ScriptedModel;

use crate::support::{Docent, Served};

/// The book's definition of a node.
pub const DEFINITION: &str = "A node is a participant in the ROS 2 graph: a named unit of computation that does one job and communicates with other nodes.";

/// A section: anchor, heading, text.
type Section = (&'static str, &'static str, &'static str);

/// Path, title and sections of every page.
const PAGES: [(&str, &str, &[Section]); 5] = [
    (
        "index.html",
        "Walking machines",
        &[("about", "About this book", "This handbook is about robots that walk on two legs.")],
    ),
    (
        "ros2/nodes.html",
        "Nodes",
        &[
            ("what-a-node-is", "What a node is", DEFINITION),
            (
                "lifecycle",
                "Managed nodes",
                "A managed node moves through four states: unconfigured, inactive, active and finalized. A \
                 launch file can hold the motors back until every sensor reports that it is active.",
            ),
            (
                "executors",
                "Executors",
                "An executor calls the callbacks that are due. A program that never spins its executor \
                 receives no messages at all.",
            ),
        ],
    ),
    (
        "ros2/topics.html",
        "Topics",
        &[
            (
                "publishing",
                "Publishing and subscribing",
                "A topic is a named bus over which nodes exchange messages. A publisher does not know who \
                 listens, and a subscriber does not know who speaks.",
            ),
            (
                "quality",
                "Quality of service",
                "A subscriber that asks for reliable delivery gets nothing from a publisher that only \
                 offers best effort.",
            ),
        ],
    ),
    (
        "simulation/gazebo.html",
        "Gazebo",
        &[
            (
                "gravity",
                "Gravity",
                "Gazebo applies a gravity of 9.81 metres per second squared unless the world file says \
                 otherwise.",
            ),
            (
                "clock",
                "The simulated clock",
                "Gazebo publishes the simulated time on the topic named clock. A node follows that clock \
                 when its parameter use_sim_time is true.",
            ),
        ],
    ),
    (
        "simulation/twins.html",
        "Digital twins",
        &[(
            "twin",
            "What a twin is",
            "A digital twin is a model of one particular robot that measurements keep in step with it.",
        )],
    ),
];

/// A book before it is served.
pub struct Book {
    docent: Docent,
    site: Site,
    /// Before the end of every page; `DOCENT` stands for the address of the server.
    tags: &'static str,
    is_published: bool,
}

/// A book that is published and served.
pub struct Library {
    pub docent: Docent,
    pub site: Site,
    pub served: Served,
}

impl Book {
    pub fn new() -> Self {
        let docent = Docent::new();
        let site = Site::publish(docent.home.path().join("book"));
        let docent = docent.with("DOCENT_SERVE__TITLE", "Walking machines");
        let book = Self { docent, site, tags: "", is_published: true };
        PAGES.into_iter().fold(book, |book, (path, title, sections)| {
            let sections: String = sections
                .iter()
                .map(|(id, heading, text)| {
                    format!("<section><h2 id=\"{id}\">{heading}</h2>\n<p>{text}</p></section>\n")
                })
                .collect();
            book.page(path, title, &sections)
        })
    }

    /// Adds a page; `title` and `body` are HTML.
    pub fn page(self, path: &str, title: &str, body: &str) -> Self {
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <style>body {{ font: 1rem/1.6 sans-serif; margin: 2rem; }} section {{ min-height: 70vh; }}</style>\n\
             </head><body><main><h1>{title}</h1>\n{body}</main></body></html>\n"
        );
        self.docent.write(&format!("book/{path}"), &html);
        self
    }

    /// Adds the page of the water wheel in two versions, as mike publishes them; it turns six times a minute in 1.0 and
    /// eight times in 2.0.
    pub fn with_versions(self) -> Self {
        let list = r#"[{"version": "2.0", "aliases": ["latest"]}, {"version": "1.0", "aliases": []}]"#;
        self.docent.write("book/versions.json", list);
        [("1.0", "six"), ("2.0", "eight")].into_iter().fold(self, |book, (version, turns)| {
            let text = format!("<section><h2 id=\"speed\">Speed</h2>\n<p>The water wheel turns {turns} times a minute.</p></section>\n");
            book.page(&format!("{version}/wheel.html"), "The water wheel", &text)
        })
    }

    /// Adds any file of the book.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let file = self.docent.write(&format!("book/{path}"), "");
        std::fs::write(file, content).unwrap();
        self
    }

    /// Adds a setting as an environment variable.
    pub fn with(self, variable: &str, value: &str) -> Self {
        Self { docent: self.docent.with(variable, value), ..self }
    }

    /// Adds settings to `docent.toml`.
    pub fn configured(self, settings: &str) -> Self {
        self.docent.write("docent.toml", settings);
        self
    }

    /// Uses this model to write answers.
    pub fn written_by(self, model: &ScriptedModel) -> Self {
        self.with("OPENAI_BASE_URL", &model.url()).with("OPENAI_API_KEY", "sk-test-1234567890")
    }

    /// Puts the widget on the published pages and allows their origin.
    pub fn with_widget(self) -> Self {
        self.with_tags("<script src=\"DOCENT/widget.js\" defer></script>")
    }

    /// Puts the script for sites that use DocSearch on the published pages, with DocSearch's own call.
    pub fn with_docsearch(self) -> Self {
        self.with_tags(
            "<script src=\"DOCENT/docsearch.js\"></script>\n<script>if (document.getElementById('docsearch')) \
             docsearch({ container: '#docsearch', appId: 'R2IYF7ETH7', apiKey: '599cec', indexName: 'docs' });</script>",
        )
    }

    fn with_tags(self, tags: &'static str) -> Self {
        let origins = format!("[\"{}\"]", self.site.url);
        Self { tags, ..self.with("DOCENT_SERVE__CORS_ORIGINS", &origins) }
    }

    /// Leaves the public address of the book unknown to Docent, so that its pages are read on the server.
    pub fn unpublished(self) -> Self {
        Self { is_published: false, ..self }
    }

    pub fn serve(self) -> Library {
        let Self { docent, site, tags, is_published } = self;
        let mut ingest = vec!["ingest", "book", "--quiet"];
        if is_published {
            ingest.extend(["--base-url", &site.url]);
        }
        docent.ok(&ingest);
        let served = docent.serve();
        site.state.tags.set(tags.replace("DOCENT", &served.url)).unwrap();
        Library { docent, site, served }
    }
}

impl Library {
    /// The operator's report.
    pub fn report(&self) -> String {
        let file = self.docent.home.path().join("report.html");
        self.docent.ok(&["report", file.to_str().unwrap()]);
        std::fs::read_to_string(file).unwrap()
    }

    /// Waits until the most recent conversation has `turns` turns.
    pub async fn until_stored(&self, turns: u64) {
        let deadline = tokio::time::Instant::now() + crate::browser::TIMEOUT;
        while self.conversations().first().and_then(|last| last["turn_count"].as_u64()) != Some(turns) {
            assert!(tokio::time::Instant::now() < deadline, "no conversation reached {turns} turns");
        }
    }

    /// The conversations stored by the server.
    pub fn conversations(&self) -> Vec<serde_json::Value> {
        self.docent.json(&["sessions", "list"]).as_array().unwrap().clone()
    }
}

/// Serves a folder of pages on a local port; stops when dropped.
pub struct Site {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Added at the end of every page.
    tags: OnceLock<String>,
    /// The content security policy of the pages, if there is one.
    policy: OnceLock<String>,
    closed: AtomicBool,
}

impl Site {
    fn publish(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<State>::default();
        let known = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if known.closed.load(Ordering::Relaxed) {
                    return;
                }
                let (folder, known) = (folder.clone(), known.clone());
                // A browser opens connections it may never use, so each gets its own thread.
                std::thread::spawn(move || answer(connection, &folder, &known));
            }
        });
        Self { url, state }
    }

    pub fn page(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// From now on, sends this content security policy with every page.
    pub fn restrict(&self, policy: String) {
        self.state.policy.set(policy).unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Relaxed);
        // Connect once more so that the thread notices it should stop.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

/// Answers one request.
fn answer(mut connection: TcpStream, folder: &Path, state: &State) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(()) };
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
    let page = std::fs::read_to_string(folder.join(path)).ok().filter(|_| !path.contains(".."));
    let (status, body) = match page {
        Some(page) => ("200 OK", page),
        // Browsers request an icon and report an error if there is none.
        None if path == "favicon.ico" => ("204 No Content", String::new()),
        None => ("404 Not Found", String::new()),
    };
    let tags = state.tags.get().map(String::as_str).unwrap_or_default();
    let body = body.replace("</body>", &format!("{tags}</body>"));
    let policy = state.policy.get().map(|policy| format!("content-security-policy: {policy}\r\n"));
    let policy = policy.unwrap_or_default();
    write!(
        connection,
        "HTTP/1.1 {status}\r\n{policy}content-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}
