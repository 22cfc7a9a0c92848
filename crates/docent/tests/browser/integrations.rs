//! The packages in `integrations/`: the handbook, built by the real site generator with one of them, as a user sees it.
//!
//! Each build also runs `docent ingest`, so that the answers are about the site and their citations lead back to it.
//!
//! The site generators are in `target/test-tools/integrations` (`cargo xtask setup`). If they are missing, the tests
//! are skipped; with `DOCENT_TEST_REQUIRE_INTEGRATIONS` set they fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use docent_testkit::ScriptedSite;
use docent_testkit::scripted_site::Answer;
use thirtyfour::prelude::*;

use crate::browser::{Browser, browse, workspace};
use crate::panel::{Panel, SHADOW};
use crate::rendered::{file, generators};
use crate::support::{Docent, Served};

/// The letters and the slash are keys of some themes.
const QUESTION: &str = "How many turns/minute is a walk, and what is a trot?";
const ANSWER: &str = "Eight turns a minute is a walk, twelve is a trot.";

#[tokio::test]
async fn a_docusaurus_site_has_the_search_bar_and_the_widget() {
    let Some(project) = Project::new("docusaurus") else { return };
    project.add_package("docusaurus-plugin-docent");
    // The latest version of the docs, and the unreleased one.
    copy(&project.at("site/docs"), &project.at("site/versioned_docs/version-1.0"));
    project.link_packages();
    let out = project.at("out/book");
    let output = project.node("@docusaurus/core/bin/docusaurus.mjs", &["build", "--out-dir", text(&out)]);
    assert!(output.contains("Docusaurus · language en"), "{output}");

    browse("docusaurus", async |browser| {
        let page = project.site.url() + "/book/docs/mill/wheel";
        project.is_answered_on(browser, &page, "docusaurus").await;
        assert_eq!(tag(browser, "locale").await, "en");
        assert_eq!(tag(browser, "version").await, "1.0");

        // The widget stays when the user follows a link, and knows the version of the next page.
        browser.value("window.same = true").await;
        Panel { browser }.click("close").await;
        let version =
            "[...document.querySelectorAll('a')].find((one) => one.pathname === '/book/docs/log-book')";
        browser.until_element(version).await.click().await.unwrap();
        browser.until("location.pathname === '/book/docs/log-book' && window.same").await;
        browser.until(&format!("{SHADOW} && document.querySelectorAll('docent-widget').length === 1")).await;

        // The search bar opens the same dialog, and is small on a phone.
        browser
            .until_element("document.querySelector('nav button[aria-haspopup=dialog]')")
            .await
            .click()
            .await
            .unwrap();
        Panel { browser }.find("search").await;
        browser.press(Key::Escape).await;
        Panel { browser }.gone("search").await;
        browser.is_accessible("docusaurus").await;
        browser.value("document.querySelector('[class*=colorModeToggle] button').click()").await;
        browser.until("document.documentElement.dataset.theme === 'dark'").await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'dark'").await;
        browser.picture("docusaurus-dark").await;
        browser.is_accessible("docusaurus, dark").await;
        browser.emulate_phone().await;
        browser.picture("docusaurus-phone").await;
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);

        browser.open(&(project.site.url() + "/book/de/docs/next/log-book")).await;
        Panel { browser }.find("button").await;
        assert_eq!(tag(browser, "locale").await, "de");
        assert_eq!(tag(browser, "version").await, "current");
        browser
            .until("document.querySelector('nav button[aria-haspopup=dialog]').innerText.startsWith('Suche')")
            .await;
    })
    .await;

    // On a page of the coming version, the same question is answered from that version.
    browse("docusaurus-next", async |browser| {
        let page = project.site.url() + "/book/docs/next/mill/wheel";
        project.is_answered_on(browser, &page, "docusaurus-next").await;
    })
    .await;

    let options = "const { validateOptions } = require('docusaurus-plugin-docent/src/options');
        const { ingest } = require('docusaurus-plugin-docent/src/ingest');
        const url = 'https://docent.example.org';
        const wrong = [() => validateOptions({}), () => validateOptions({ url: 'docent.example.org' }),
          () => validateOptions({ url, titel: 'Ask' }), () => validateOptions({ url, ingest: 'docs' }),
          () => ingest('no-docent', [], '.'), () => ingest('false', [], '.')];
        for (const run of wrong) { try { run(); console.log('nothing'); } catch (error) { console.log(error.message); } }";
    let url = "docusaurus-plugin-docent: `url` must be the address of your Docent server, such as \"https://docent.example.org\"";
    let expected = [
        url,
        url,
        "docusaurus-plugin-docent: unknown option `titel`; the options are url, title, placeholder, accent, search, widget, ingest, binary",
        "docusaurus-plugin-docent: `ingest` must be true, false or the arguments of `docent ingest` as a list of strings",
        "docusaurus-plugin-docent: cannot find the program `no-docent`; install Docent, or set `binary` to its path",
        "docusaurus-plugin-docent: `false ingest` failed with exit status 1",
    ];
    assert_eq!(project.says("node", &["-e", options]).lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_mkdocs_site_has_the_widget() {
    let Some(project) = Project::new("mkdocs") else { return };
    project.install("mkdocs-docent");
    let (site, out) = (project.at("site"), project.at("out"));
    let build = |config: &str, folder: &Path, variables: &[(&str, &str)]| {
        let mut command = project.python("mkdocs", &["build", "-q", "-f", config, "-d", text(folder)]);
        command.current_dir(&site).envs(variables.iter().copied());
        finish(command)
    };
    let (built, output) = build("mkdocs.yml", &out, &[]);
    assert!(built && output.contains("MkDocs · language en"), "{output}");
    let (built, output) = build("plain.yml", &out.join("plain"), &[("INGEST", "false")]);
    assert!(built && !output.contains("published"), "{output}");

    browse("mkdocs", async |browser| {
        // Material, with instant loading.
        let page = project.site.url() + "/mill/wheel/";
        project.is_answered_on(browser, &page, "mkdocs-material").await;
        assert_eq!(tag(browser, "locale").await, "en");
        Panel { browser }.click("close").await;
        browser.value("window.same = true").await;
        browser.value("document.querySelector('a[href$=\"log-book/\"]').click()").await;
        browser
            .until("document.querySelector('h1').innerText.startsWith('The log book') && window.same")
            .await;
        Panel { browser }.find("button").await;
        browser.value("document.querySelector('input[data-md-color-scheme=slate]').click()").await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'dark'").await;
        browser.picture("mkdocs-material-dark").await;

        // The theme's single keys do not react to what is typed in the widget.
        let plain = project.site.url() + "/plain/mill/wheel/";
        browser.open(&plain).await;
        let panel = Panel { browser };
        panel.click("button").await;
        panel.click("new").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("answer").await.contains(ANSWER));
        assert_eq!(browser.value("location.href").await, plain);
        browser.picture("mkdocs").await;
    })
    .await;

    let fails = |variables: &[(&str, &str)], message: &str| {
        let (built, output) = build("mkdocs.yml", &project.at("failed"), variables);
        assert!(!built && output.contains(message), "{output}");
    };
    fails(&[("SERVER_URL", "docent.example.org")], "Plugin 'docent' option 'url': The URL isn't valid");
    fails(
        &[("INGEST", "docs")],
        "Expected true, false or the arguments of `docent ingest` as a list of strings.",
    );
    fails(
        &[("PROGRAM", "no-docent")],
        "docent: cannot find the program `no-docent`; install Docent, or set `binary` to its path",
    );
    fails(&[("PROGRAM", "ls")], "docent: `ls ingest` failed with exit status");
}

#[tokio::test]
async fn a_sphinx_site_has_the_widget() {
    let Some(project) = Project::new("sphinx") else { return };
    project.install("sphinx-docent");
    let (site, out) = (project.at("site"), project.at("out"));
    let build = |folder: &Path, setting: &str| {
        finish(project.python("sphinx", &["-q", "-b", "html", "-D", setting, text(&site), text(folder)]))
    };
    let (built, output) = build(&out, "html_theme=alabaster");
    assert!(built && output.contains("Sphinx · language en"), "{output}");
    let (built, output) = build(&out.join("furo"), "html_theme=furo");
    assert!(built, "{output}");

    browse("sphinx", async |browser| {
        // Sphinx' default theme has no dark mode.
        browser.prefers("dark").await;
        let page = project.site.url() + "/mill/wheel.html";
        project.is_answered_on(browser, &page, "sphinx").await;
        assert_eq!(browser.value("document.querySelector('docent-widget').dataset.theme").await, "light");
        assert_eq!(tag(browser, "locale").await, "en");
        assert_eq!(tag(browser, "version").await, "1.0");

        browser.open(&(project.site.url() + "/furo/mill/wheel.html")).await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'dark'").await;
        browser.picture("sphinx-furo-dark").await;
        // Furo's button goes from the system's theme to light to dark.
        browser.value("document.querySelector('.theme-toggle').click()").await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'light'").await;
    })
    .await;

    let fails = |setting: &str, message: &str| {
        let (built, output) = build(&project.at("failed"), setting);
        assert!(!built && output.contains(message), "{output}");
    };
    fails(
        "docent_url=docent.example.org",
        "docent_url must be the address of your Docent server, such as \"https://docent.example.org\"",
    );
    fails(
        "html_baseurl=",
        "docent_ingest = True needs html_baseurl, so that citations can link to the pages",
    );
    fails(
        "docent_binary=no-docent",
        "cannot find the program `no-docent`; install Docent, or set docent_binary to its path",
    );
    fails("docent_binary=ls", "`ls ingest` failed with exit status");
}

#[tokio::test]
async fn an_mdbook_has_the_widget() {
    let Some(project) = Project::new("mdbook") else { return };
    project.install("mdbook-docent");
    let build = |out: &Path, variables: &[(&str, &str)]| {
        let mut command = project.command(&project.tools.join("venv/bin/mdbook"));
        command.args(["build", text(&project.at("site")), "-d", text(out)]);
        command.env("MDBOOK_PREPROCESSOR__DOCENT__URL", &project.served.url);
        command.env("MDBOOK_PREPROCESSOR__DOCENT__BINARY", env!("CARGO_BIN_EXE_docent"));
        command.env("MDBOOK_OUTPUT__HTML__SITE_URL", project.site.url() + "/");
        command.envs(variables.iter().copied());
        finish(command)
    };
    let (built, output) = build(&project.at("out"), &[]);
    assert!(built && output.contains("MdBook · language en"), "{output}");

    browse("mdbook", async |browser| {
        let page = project.site.url() + "/mill/wheel.html";
        project.is_answered_on(browser, &page, "mdbook").await;
        assert_eq!(tag(browser, "locale").await, "en");
        Panel { browser }.click("close").await;
        browser.value("document.querySelector('#mdbook-theme-coal').click()").await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'dark'").await;
        browser.picture("mdbook-dark").await;

        // All chapters on one page still have one widget; mdBook opens the print dialog there.
        browser.value("sessionStorage.clear()").await;
        let print = std::fs::read_to_string(project.at("out/print.html")).unwrap();
        let quiet = print.replace("window.print", "window.focus");
        std::fs::write(project.at("out/all.html"), quiet).unwrap();
        browser.open(&(project.site.url() + "/all.html")).await;
        Panel { browser }.find("button").await;
        assert_eq!(browser.value("document.querySelectorAll('docent-widget').length").await, 1);
    })
    .await;

    let fails = |name: &str, value: &str, message: &str| {
        let (built, output) = build(&project.at("failed"), &[(name, value)]);
        assert!(!built && output.contains(message), "{output}");
    };
    fails(
        "MDBOOK_PREPROCESSOR__DOCENT__URL",
        "docent.example.org",
        "mdbook-docent: `url` in [preprocessor.docent] must be the address of your Docent server, such as \"https://docent.example.org\"",
    );
    fails("MDBOOK_PREPROCESSOR__DOCENT__TITEL", "Ask", "unknown setting `titel` in [preprocessor.docent]");
    fails("MDBOOK_OUTPUT__HTML__SITE_URL", "/", "`ingest = true` needs the address of the book");
    fails("MDBOOK_PREPROCESSOR__DOCENT__BINARY", "no-docent", "cannot find the program `no-docent`");
    fails("MDBOOK_PREPROCESSOR__DOCENT__BINARY", "ls", "`ls ingest` failed with exit status");
}

#[tokio::test]
async fn a_vitepress_site_has_the_search_button_and_the_widget() {
    let Some(project) = Project::new("vitepress") else { return };
    project.add_package("vitepress-docent");
    project.link_packages();
    let out = project.at("out");
    let output = project.node("vitepress/bin/vitepress.js", &["build", ".", "--outDir", text(&out)]);
    assert!(output.contains("VitePress · language en"), "{output}");
    let page = std::fs::read_to_string(out.join("mill/wheel.html")).unwrap();
    assert!(page.contains("docent-search") && !page.contains("widget.js"), "rendered without a browser");

    browse("vitepress", async |browser| {
        let page = project.site.url() + "/mill/wheel.html";
        project.is_answered_on(browser, &page, "vitepress").await;
        assert_eq!(tag(browser, "locale").await, "en-US");

        browser.value("window.same = true").await;
        Panel { browser }.click("close").await;
        browser.value("document.querySelector('.VPSidebar a[href$=\"pond.html\"]').click()").await;
        browser.until("location.pathname === '/water/pond.html' && window.same").await;
        browser.until("document.querySelectorAll('docent-widget').length === 1").await;
        browser.until_element("document.querySelector('.docent-search')").await.click().await.unwrap();
        Panel { browser }.find("search").await;
        browser.press(Key::Escape).await;
        Panel { browser }.gone("search").await;
        browser.value("document.querySelector('.VPSwitchAppearance').click()").await;
        browser.until("document.querySelector('docent-widget').dataset.theme === 'dark'").await;
        browser.picture("vitepress-dark").await;
        browser.emulate_phone().await;
        browser.picture("vitepress-phone").await;
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
    })
    .await;

    let options = "Promise.all([import('vitepress-docent'), import('vitepress-docent/ingest')]).then(([{ withDocent }, { docentIngest }]) => {
        const url = 'https://docent.example.org';
        const site = { root: '.', srcDir: '.', site: { base: '/' } };
        const wrong = [() => withDocent({}), () => withDocent({}, { url, titel: 'Ask' }), () => docentIngest()(site),
          () => docentIngest({ baseUrl: url, binary: 'no-docent' })(site), () => docentIngest({ ingest: [], binary: 'false' })(site)];
        for (const run of wrong) { try { run(); console.log('nothing'); } catch (error) { console.log(error.message); } }
      });";
    let expected = [
        "vitepress-docent: `url` must be the address of your Docent server, such as \"https://docent.example.org\"",
        "vitepress-docent: unknown option `titel`; the options are url, title, placeholder, accent, search",
        "vitepress-docent: `docentIngest` needs the address of the site, so that citations can link to it: set `sitemap.hostname`, or `baseUrl`",
        "vitepress-docent: cannot find the program `no-docent`; install Docent, or set `binary` to its path",
        "vitepress-docent: `false ingest` failed with exit status 1",
    ];
    assert_eq!(project.says("node", &["-e", options]).lines().collect::<Vec<_>>(), expected);
}

/// The handbook in the sources of one site generator, a server for what it builds, and a Docent server that the site's
/// pages may use.
struct Project {
    docent: Docent,
    served: Served,
    site: ScriptedSite,
    tools: PathBuf,
}

impl Project {
    fn new(generator: &str) -> Option<Self> {
        let tools = tools()?;
        let docent = Docent::new();
        let fixtures = generators().join("../integrations");
        for sources in [generators().join(generator).join("source"), fixtures.join(generator)] {
            copy(&sources, &docent.home.path().join("site"));
        }
        let site = publish(docent.home.path().join("out"));
        let docent = docent.with("DOCENT_SERVE__CORS_ORIGINS", &format!("[\"{}\"]", site.url()));
        let served = docent.serve();
        Some(Self { docent, served, site, tools })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.docent.home.path().join(path)
    }

    /// Runs in the folder of the sources, with the addresses and the packages in the environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap();
        command
            .current_dir(self.at("site"))
            .env("PATH", format!("{}/bin:{path}", text(&self.at("packages"))));
        command.env("PYTHONPATH", self.at("packages")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("NODE_PATH", self.tools.join("node_modules")).env("NO_COLOR", "1");
        // Docusaurus would otherwise keep what it has compiled, and Material prints a notice.
        command.env("DOCUSAURUS_NO_PERSISTENT_CACHE", "true").env("NO_MKDOCS_2_WARNING", "1");
        command.env("DOCENT_DATA_DIR", self.at("data")).env("PROGRAM", env!("CARGO_BIN_EXE_docent"));
        command.env("SERVER_URL", &self.served.url).env("SITE_URL", self.site.url() + "/");
        command
    }

    /// Runs a module of the Python environment.
    fn python(&self, module: &str, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.tools.join("venv/bin/python"));
        command.args(["-m", module]).args(arguments);
        command
    }

    /// Runs a script of an npm package, which must succeed; returns its output.
    fn node(&self, script: &str, arguments: &[&str]) -> String {
        let script = self.tools.join("node_modules").join(script);
        self.says("node", &[&[text(&script)], arguments].concat())
    }

    fn says(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = self.command(Path::new(program));
        command.args(arguments);
        let (succeeded, output) = finish(command);
        assert!(succeeded, "{output}");
        output
    }

    /// Installs one of our Python packages.
    fn install(&self, name: &str) {
        // The build writes into the folder of the package.
        let copied = self.at("integrations").join(name);
        copy(&workspace().join("integrations").join(name), &copied);
        let packages = self.at("packages");
        let options = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"];
        let from = ["--no-build-isolation", "--target", text(&packages), text(&copied)];
        let (installed, output) = finish(self.python("pip", &[&options[..], &from].concat()));
        assert!(installed, "{output}");
    }

    /// Unpacks one of our npm packages, as it would be published, beside the ones it needs.
    fn add_package(&self, name: &str) {
        let package = workspace().join("integrations").join(name);
        let packed = self.docent.home.path();
        self.says("npm", &["pack", "--silent", "--pack-destination", text(packed), text(&package)]);
        let folder = self.tools.join("node_modules").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let archive = self.at(&format!("{name}-0.1.0.tgz"));
        self.says("tar", &["xzf", text(&archive), "--strip-components=1", "-C", text(&folder)]);
    }

    /// Makes the npm packages available to the sources.
    fn link_packages(&self) {
        let packages = self.tools.join("node_modules");
        #[cfg(unix)]
        std::os::unix::fs::symlink(packages, self.at("site/node_modules")).unwrap();
    }

    /// On the page about the wheel, Ctrl-K finds a section, and a question is answered with a citation that leads back
    /// to this page.
    async fn is_answered_on(&self, browser: &Browser, page: &str, name: &str) {
        browser.open(page).await;
        let panel = Panel { browser };
        assert_eq!(panel.text("button").await, "Ask the handbook");
        let chain = browser.driver.action_chain();
        chain.key_down(Key::Control).send_keys("k").key_up(Key::Control).perform().await.unwrap();
        panel.find("search").await;
        browser.press("gear rat").await;
        let rows = format!("{SHADOW}.querySelector('[data-testid=search-rows]').innerText");
        browser.until(&format!("{rows}.includes('Gear ratios')")).await;
        browser.picture(&format!("{name}-search")).await;
        browser.press(Key::Escape).await;
        panel.gone("search").await;
        panel.click("button").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("answer").await.contains(ANSWER));
        panel.click("citation").await;
        let link = format!("{SHADOW}.querySelector('[data-testid=citation-card] a.open-in-book').href");
        let link = browser.until(&link).await.as_str().unwrap().to_owned();
        assert!(link.starts_with(&format!("{page}#running-it")), "{link} is not on {page}");
        browser.picture(name).await;
        browser.press(Key::Escape).await;
        panel.gone("citation-card").await;
    }
}

/// What the script tag says about the page.
async fn tag(browser: &Browser, name: &str) -> serde_json::Value {
    browser.value(&format!("document.querySelector('script[src$=\"/widget.js\"]').dataset.{name}")).await
}

/// Serves a folder, which may still be empty.
fn publish(folder: PathBuf) -> ScriptedSite {
    let script = move |visit: &docent_testkit::scripted_site::Visit| {
        let Some(file) = file(&folder, &visit.path) else {
            return Answer::status(if visit.path.ends_with("favicon.ico") { 204 } else { 404 });
        };
        let kind = match file.extension().and_then(|ending| ending.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("json") => "application/json",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        Answer::of(kind, std::fs::read(&file).unwrap())
    };
    ScriptedSite::start(script).unwrap()
}

/// The folder with the site generators.
fn tools() -> Option<PathBuf> {
    let folder = workspace().join("target/test-tools/integrations");
    if folder.join("installed").exists() {
        return Some(folder);
    }
    let missing = "the site generators are not installed (cargo xtask setup)";
    assert!(std::env::var_os("DOCENT_TEST_REQUIRE_INTEGRATIONS").is_none(), "{missing}");
    docent_testkit::skipped(missing);
    None
}

/// Whether a command succeeds, and everything it prints.
fn finish(mut command: Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
