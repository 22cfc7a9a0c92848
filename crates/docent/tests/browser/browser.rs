//! A headless Chromium for one test, and the waiting, typing and looking every test does.
//!
//! Invariant: a browser ends with its test, whatever becomes of it, and a test that leaves an
//! unexpected word in the console fails.

use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::ChromeCapabilities;
use thirtyfour::common::command::ExtensionCommand;
use thirtyfour::common::config::WebDriverConfig;
use thirtyfour::extensions::cdp::ChromeDevTools;
use thirtyfour::extensions::query::ElementPollerWithTimeout;
use thirtyfour::prelude::*;

/// What a patient reader waits.
pub const PATIENCE: Duration = Duration::from_secs(15);

pub struct Browser {
    pub driver: WebDriver,
    pub downloads: TempDir,
    foretold: Mutex<Vec<String>>,
    _chromedriver: Chromedriver,
}

/// Visits in a browser of its own; afterwards the console must be empty but for what was foretold.
/// When a visit fails its last sight is in `target/screenshots`.
pub async fn browse(name: &str, visit: impl AsyncFnOnce(&Browser)) {
    let Some(browser) = Browser::start().await else { return };
    let visited = AssertUnwindSafe(visit(&browser)).catch_unwind().await;
    if let Err(panic) = visited {
        browser.picture(&format!("failed-{name}")).await;
        eprintln!("{name}: the console says {:#?}", browser.console().await);
        browser.quit().await;
        resume_unwind(panic);
    }
    let complaints = browser.console().await;
    let foretold = browser.foretold.lock().unwrap().clone();
    browser.quit().await;
    let unexpected: Vec<&String> =
        complaints.iter().filter(|said| !foretold.iter().any(|words| said.contains(words))).collect();
    assert!(unexpected.is_empty(), "{name}: the console says {unexpected:#?}");
    for words in foretold {
        assert!(complaints.iter().any(|said| said.contains(&words)), "{name}: no complaint of {words}");
    }
}

impl Browser {
    async fn start() -> Option<Self> {
        let chromium = tool("chromium", &["chromium", "chromium-browser", "google-chrome"])?;
        let chromedriver = Chromedriver::start(&tool("chromium-driver", &["chromedriver"])?);
        let downloads = tempfile::tempdir().unwrap();
        let mut wanted = ChromeCapabilities::new();
        wanted.set_binary(chromium.to_str().unwrap()).unwrap();
        // Without motion nothing moves away under the pointer; without a sandbox it runs in containers.
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--force-prefers-reduced-motion",
            "--force-color-profile=srgb",
            "--lang=en",
            "--window-size=1200,800",
            // A machine without a mouse would not have one in its browser either.
            "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
        ] {
            wanted.add_arg(argument).unwrap();
        }
        wanted.insert_base_capability("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
        wanted
            .add_experimental_option("prefs", json!({"download.default_directory": downloads.path()}))
            .unwrap();
        let poller = ElementPollerWithTimeout::new(PATIENCE, Duration::from_millis(30));
        let settings = WebDriverConfig::builder().poller(Arc::new(poller)).build().unwrap();
        let driver = WebDriver::new_with_config(&chromedriver.url, wanted, settings).await.unwrap();
        let browser = Self { driver, downloads, foretold: Mutex::default(), _chromedriver: chromedriver };
        browser.sized(1200, 800).await;
        browser.prefers("light").await;
        Some(browser)
    }

    async fn quit(self) {
        self.driver.quit().await.unwrap();
    }

    pub async fn open(&self, url: &str) {
        self.driver.goto(url).await.unwrap();
    }

    pub async fn reload(&self) {
        self.driver.refresh().await.unwrap();
    }

    /// The element with this test id, once a reader can see it.
    pub async fn find(&self, testid: &str) -> WebElement {
        self.driver.query(By::Testid(testid)).and_displayed().first().await.unwrap()
    }

    pub async fn click(&self, testid: &str) {
        let query = self.driver.query(By::Testid(testid)).and_clickable();
        query.first().await.unwrap().click().await.unwrap();
    }

    /// What the element says, once it says something.
    pub async fn text(&self, testid: &str) -> String {
        let said = |element: WebElement| async move { element.text().await.map(|text| !text.is_empty()) };
        let query = self.driver.query(By::Testid(testid)).with_filter(said);
        query.first().await.unwrap().text().await.unwrap()
    }

    /// Waits until there is no such element, or nobody can see it.
    pub async fn gone(&self, testid: &str) {
        let shown = format!(
            "![...document.querySelectorAll('[data-testid=\"{testid}\"]')].some((one) => one.checkVisibility())"
        );
        self.until(&shown).await;
    }

    /// How many there are now.
    pub async fn count(&self, testid: &str) -> usize {
        self.driver.find_all(By::Testid(testid)).await.unwrap().len()
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: impl Into<TypingData>) {
        self.driver.action_chain().send_keys(keys).perform().await.unwrap();
    }

    pub async fn press_shift_tab(&self) {
        let chain = self.driver.action_chain();
        chain.key_down(Key::Shift).send_keys(Key::Tab).key_up(Key::Shift).perform().await.unwrap();
    }

    pub async fn hover(&self, element: &WebElement) {
        self.driver.action_chain().move_to_element_center(element).perform().await.unwrap();
    }

    /// Touches the middle of an element, as a finger does.
    pub async fn tap(&self, element: &WebElement) {
        element.scroll_into_view().await.unwrap();
        let script = "const at = arguments[0].getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]";
        let at = self.driver.execute(script, vec![element.to_json().unwrap()]).await.unwrap();
        let point = json!([{"x": at.json()[0], "y": at.json()[1]}]);
        self.devtools("Input.dispatchTouchEvent", json!({"type": "touchStart", "touchPoints": point})).await;
        self.devtools("Input.dispatchTouchEvent", json!({"type": "touchEnd", "touchPoints": []})).await;
    }

    /// The value of an expression on the page.
    pub async fn value(&self, expression: &str) -> Value {
        self.driver.execute(format!("return {expression}"), vec![]).await.unwrap().json().clone()
    }

    /// Waits until an expression on the page holds, and returns its value.
    pub async fn until(&self, expression: &str) -> Value {
        self.wait_for(expression).await.json().clone()
    }

    /// Waits until an expression on the page is an element.
    pub async fn until_element(&self, expression: &str) -> WebElement {
        self.wait_for(expression).await.element().unwrap()
    }

    async fn wait_for(&self, expression: &str) -> ScriptRet {
        let script = format!(
            "const finished = arguments[0], last = Date.now() + {};
             (function look() {{
               let value = null;
               try {{ value = {expression} }} catch {{ /* not yet */ }}
               if (value) finished(value);
               else if (Date.now() > last) finished(null);
               else setTimeout(look, 20);
             }})()",
            PATIENCE.as_millis()
        );
        let value = self.driver.execute_async(script, vec![]).await.unwrap();
        assert!(!value.json().is_null(), "this never came true: {expression}");
        value
    }

    /// Goes to the tab that was opened last, once there is one.
    pub async fn follow_to_new_tab(&self) {
        let here = self.driver.window().await.unwrap();
        let last = tokio::time::Instant::now() + PATIENCE;
        let new = loop {
            let tabs = self.driver.windows().await.unwrap();
            if let Some(new) = tabs.into_iter().find(|tab| *tab != here) {
                break new;
            }
            assert!(tokio::time::Instant::now() < last, "no tab was opened");
        };
        self.driver.switch_to_window(new).await.unwrap();
        self.until("document.readyState === 'complete'").await;
    }

    /// What the browser downloads into a file with this ending, once it is all there.
    pub async fn download(&self, ending: &str) -> String {
        let last = tokio::time::Instant::now() + PATIENCE;
        loop {
            let files = std::fs::read_dir(self.downloads.path()).unwrap().flatten().map(|entry| entry.path());
            // A name is reserved before the file is written, so an empty one is not it yet.
            let mut written = files.filter(|file| file.to_string_lossy().ends_with(ending));
            if let Some(text) =
                written.find_map(|file| std::fs::read_to_string(file).ok().filter(|text| !text.is_empty()))
            {
                return text;
            }
            assert!(tokio::time::Instant::now() < last, "no file {ending} was downloaded");
            tokio::task::yield_now().await;
        }
    }

    /// The size of the page as the reader sees it.
    pub async fn sized(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// A telephone, with a finger instead of a mouse.
    pub async fn is_a_phone(&self) {
        let size = json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        self.devtools("Emulation.setTouchEmulationEnabled", json!({"enabled": true, "maxTouchPoints": 1}))
            .await;
    }

    /// What the reader's system prefers: `light` or `dark`.
    pub async fn prefers(&self, scheme: &str) {
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    pub async fn devtools(&self, command: &str, parameters: Value) {
        let tools = ChromeDevTools::new(self.driver.handle.clone());
        tools.execute_cdp_with_params(command, parameters).await.unwrap();
    }

    /// What the page looks like, into `target/screenshots`.
    pub async fn picture(&self, name: &str) {
        let folder = workspace().join("target/screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        if let Err(error) = self.driver.screenshot(&folder.join(format!("{name}.png"))).await {
            eprintln!("{name}: no screenshot: {error}");
        }
    }

    /// axe-core finds nothing serious here.
    pub async fn is_accessible(&self, name: &str) {
        let file = workspace().join("target/test-tools/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(&file) else {
            return missing("axe-core", "npm install --prefix target/test-tools axe-core");
        };
        self.driver.execute(axe, vec![]).await.unwrap();
        let script = "const finished = arguments[0];
            axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => finished(
              violations
                .filter(({ impact }) => impact === 'serious' || impact === 'critical')
                .map(({ id, impact, nodes }) => `${impact}: ${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`)),
              (error) => finished([String(error)]))";
        let found = self.driver.execute_async(script, vec![]).await.unwrap().json().clone();
        assert_eq!(found, json!([]), "{name}");
    }

    /// The console will have these words, and the test wants it so.
    pub fn foretell(&self, words: &str) {
        self.foretold.lock().unwrap().push(words.to_owned());
    }

    /// Warnings and errors since the last look.
    async fn console(&self) -> Vec<String> {
        let answer =
            self.driver.cmd(thirtyfour::common::command::Command::ExtensionCommand(Box::new(Log))).await;
        let entries: Vec<Value> = answer.unwrap().value().unwrap();
        entries
            .iter()
            .filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")))
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// The driver's command for the console.
#[derive(Debug)]
struct Log;

impl ExtensionCommand for Log {
    fn parameters_json(&self) -> Option<Value> {
        Some(json!({"type": "browser"}))
    }

    fn method(&self) -> Method {
        Method::POST
    }

    fn endpoint(&self) -> Arc<str> {
        "/se/log".into()
    }
}

/// The driver, on a port it chose itself. When it ends, so does its browser.
struct Chromedriver {
    url: String,
    child: Child,
}

impl Chromedriver {
    fn start(program: &Path) -> Self {
        // It takes a free port for IPv4 and wants the same for IPv6; when that one is taken it gives up.
        (0..20).find_map(|_| Self::try_to_start(program)).expect("chromedriver starts and says its port")
    }

    fn try_to_start(program: &Path) -> Option<Self> {
        let mut command = Command::new(program);
        let mut child = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut started = Self { url: String::new(), child };
        started.url = format!("http://127.0.0.1:{}", port?);
        Some(started)
    }
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The first of these programs on the path.
fn tool(package: &str, names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates =
        std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let found = candidates.find(|file| file.is_file());
    if found.is_none() {
        missing(names[0], &format!("apt install {package}"));
    }
    found
}

/// Says what is not there, past the capture of the test's output; fails if it has to be there.
fn missing(what: &str, remedy: &str) {
    let said = format!("NOT TESTED IN A BROWSER: {what} is missing ({remedy})");
    assert!(std::env::var_os("DOCENT_TEST_REQUIRE_BROWSER").is_none(), "{said}");
    let _ = writeln!(std::io::stderr(), "{said}");
}
