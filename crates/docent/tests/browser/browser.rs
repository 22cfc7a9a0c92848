//! A headless Chromium for one test, with helpers for waiting, typing and reading the page.
//!
//! Invariant: a browser ends with its test, even if the test fails, and a test with an unexpected message in
//! the console fails.

use std::io::{BufRead, BufReader};
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

/// Timeout for anything that a user would wait for.
pub const TIMEOUT: Duration = Duration::from_secs(15);

pub struct Browser {
    pub driver: WebDriver,
    pub downloads: TempDir,
    expected: Mutex<Vec<String>>,
    _chromedriver: Chromedriver,
}

/// Runs a test in its own browser; afterwards the console must be empty except for expected messages. If a
/// test fails, its last screenshot is in `target/screenshots`.
pub async fn browse(name: &str, visit: impl AsyncFnOnce(&Browser)) {
    let Some(browser) = Browser::start().await else { return };
    let visited = AssertUnwindSafe(visit(&browser)).catch_unwind().await;
    if let Err(panic) = visited {
        browser.picture(&format!("failed-{name}")).await;
        eprintln!("{name}: console messages: {:#?}", browser.console().await);
        browser.quit().await;
        resume_unwind(panic);
    }
    let messages = browser.console().await;
    let expected = browser.expected.lock().unwrap().clone();
    browser.quit().await;
    let unexpected: Vec<&String> =
        messages.iter().filter(|said| !expected.iter().any(|words| said.contains(words))).collect();
    assert!(unexpected.is_empty(), "{name}: unexpected console messages: {unexpected:#?}");
    for words in expected {
        assert!(messages.iter().any(|said| said.contains(&words)), "{name}: {words} not in the console");
    }
}

impl Browser {
    async fn start() -> Option<Self> {
        let chromium = tool("chromium", &["chromium", "chromium-browser", "google-chrome"])?;
        let chromedriver = Chromedriver::start(&tool("chromium-driver", &["chromedriver"])?);
        let downloads = tempfile::tempdir().unwrap();
        let mut wanted = ChromeCapabilities::new();
        wanted.set_binary(chromium.to_str().unwrap()).unwrap();
        // Without animations nothing moves away under the pointer; without a sandbox it runs in containers.
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--force-prefers-reduced-motion",
            "--force-color-profile=srgb",
            "--lang=en",
            "--window-size=1200,800",
            // On a machine without a mouse, the browser would report no pointer.
            "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
        ] {
            wanted.add_arg(argument).unwrap();
        }
        wanted.insert_base_capability("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
        wanted
            .add_experimental_option("prefs", json!({"download.default_directory": downloads.path()}))
            .unwrap();
        let poller = ElementPollerWithTimeout::new(TIMEOUT, Duration::from_millis(30));
        let settings = WebDriverConfig::builder().poller(Arc::new(poller)).build().unwrap();
        let driver = WebDriver::new_with_config(&chromedriver.url, wanted, settings).await.unwrap();
        let browser = Self { driver, downloads, expected: Mutex::default(), _chromedriver: chromedriver };
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

    /// The element with this test id, as soon as it is visible.
    pub async fn find(&self, testid: &str) -> WebElement {
        self.driver.query(By::Testid(testid)).and_displayed().first().await.unwrap()
    }

    pub async fn click(&self, testid: &str) {
        let query = self.driver.query(By::Testid(testid)).and_clickable();
        query.first().await.unwrap().click().await.unwrap();
    }

    /// The text of the element, as soon as it is visible and not empty. The page reads it, because it may
    /// replace the element at any time.
    pub async fn text(&self, testid: &str) -> String {
        let said = format!(
            "[...document.querySelectorAll('[data-testid=\"{testid}\"]')]
               .filter((one) => one.checkVisibility()).map((one) => one.innerText.trim()).find(Boolean)"
        );
        self.until(&said).await.as_str().unwrap().to_owned()
    }

    /// Waits until no such element is visible.
    pub async fn gone(&self, testid: &str) {
        let shown = format!(
            "![...document.querySelectorAll('[data-testid=\"{testid}\"]')].some((one) => one.checkVisibility())"
        );
        self.until(&shown).await;
    }

    /// The current number of such elements.
    pub async fn count(&self, testid: &str) -> usize {
        self.driver.find_all(By::Testid(testid)).await.unwrap().len()
    }

    /// Sends keys to the focused element.
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

    /// Taps the middle of an element, like a finger.
    pub async fn tap(&self, element: &WebElement) {
        element.scroll_into_view().await.unwrap();
        let script = "const at = arguments[0].getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]";
        let at = self.driver.execute(script, vec![element.to_json().unwrap()]).await.unwrap();
        let point = json!([{"x": at.json()[0], "y": at.json()[1]}]);
        self.devtools("Input.dispatchTouchEvent", json!({"type": "touchStart", "touchPoints": point})).await;
        self.devtools("Input.dispatchTouchEvent", json!({"type": "touchEnd", "touchPoints": []})).await;
    }

    /// The value of a JavaScript expression on the page.
    pub async fn value(&self, expression: &str) -> Value {
        self.driver.execute(format!("return {expression}"), vec![]).await.unwrap().json().clone()
    }

    /// Waits until an expression on the page is true and returns its value.
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
            TIMEOUT.as_millis()
        );
        let value = self.driver.execute_async(script, vec![]).await.unwrap();
        assert!(!value.json().is_null(), "timed out waiting for: {expression}");
        value
    }

    /// Switches to the tab that was opened last, as soon as there is one.
    pub async fn follow_to_new_tab(&self) {
        let here = self.driver.window().await.unwrap();
        let last = tokio::time::Instant::now() + TIMEOUT;
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

    /// The content of the downloaded file with this extension, as soon as it is complete.
    pub async fn download(&self, ending: &str) -> String {
        let last = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let files = std::fs::read_dir(self.downloads.path()).unwrap().flatten().map(|entry| entry.path());
            // The name is reserved before the file is written, so an empty file is not complete yet.
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

    /// Sets the size of the viewport.
    pub async fn sized(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Emulates a phone with a touch screen.
    pub async fn emulate_phone(&self) {
        let size = json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        self.devtools("Emulation.setTouchEmulationEnabled", json!({"enabled": true, "maxTouchPoints": 1}))
            .await;
    }

    /// Sets the color scheme that the system prefers: `light` or `dark`.
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

    /// Saves a screenshot in `target/screenshots`.
    pub async fn picture(&self, name: &str) {
        let folder = workspace().join("target/screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        if let Err(error) = self.driver.screenshot(&folder.join(format!("{name}.png"))).await {
            eprintln!("{name}: no screenshot: {error}");
        }
    }

    /// Checks that axe-core finds no accessibility problems: none at all on our own pages, and no serious ones on pages of
    /// others, whose outline is not ours.
    pub async fn is_accessible(&self, name: &str) {
        let file = workspace().join("target/test-tools/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(&file) else {
            return missing("axe-core", "npm install --prefix target/test-tools axe-core");
        };
        self.driver.execute(axe, vec![]).await.unwrap();
        let script = "const finished = arguments[0];
            axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => finished(
              violations
                .filter(({ impact }) => !document.querySelector('docent-widget, #docsearch') || impact === 'serious' || impact === 'critical')
                .map(({ id, impact, nodes }) => `${impact}: ${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`)),
              (error) => finished([String(error)]))";
        let found = self.driver.execute_async(script, vec![]).await.unwrap().json().clone();
        assert_eq!(found, json!([]), "{name}");
    }

    /// Expects these words in the console; the test fails without them.
    pub fn expect_in_console(&self, words: &str) {
        self.expected.lock().unwrap().push(words.to_owned());
    }

    /// Warnings and errors since the last call.
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

/// The WebDriver command that reads the console.
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
        // It picks a free IPv4 port and needs the same one for IPv6; if that one is taken, it gives up.
        (0..20).find_map(|_| Self::try_to_start(program)).expect("chromedriver starts and prints its port")
    }

    fn try_to_start(program: &Path) -> Option<Self> {
        let mut command = Command::new(program);
        let mut child = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        // Keep reading so that later output does not fill the pipe.
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

/// The first of these programs that is on the path.
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

/// Reports a missing tool even if the test's output is captured; fails if the tool is required.
fn missing(what: &str, remedy: &str) {
    let said = format!("browser tests need {what} ({remedy})");
    assert!(std::env::var_os("DOCENT_TEST_REQUIRE_BROWSER").is_none(), "{said}");
    docent_testkit::skipped(&said);
}
