//! The server behind nginx, configured as docs/operating.md says.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use docent_testkit::scripted_model::Reply;
use reqwest::{Client, RequestBuilder};
use serde_json::json;
use tempfile::TempDir;

use super::limits::wait_for;
use super::{NODE, Site};
use crate::model::Model;
use crate::support::Docent;

const NGINX: &str = "/usr/sbin/nginx";

/// The host name in the documentation.
const HOST: &str = "docent.example.org";

/// The first code block in this language in the section about proxies.
fn documented(language: &str) -> String {
    let docs = include_str!("../../../../../docs/operating.md");
    let section = docs.split("\n## Behind a reverse proxy\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let block = section.split(&format!("\n```{language}\n")).nth(1).unwrap();
    block.split("\n```").next().unwrap().to_owned()
}

/// A running nginx; it ends when this is dropped.
struct Nginx {
    url: String,
    child: Child,
    folder: TempDir,
}

impl Nginx {
    /// Starts nginx with the documented server block. Only the addresses are other ones, and there is no
    /// certificate. Skips the test if nginx is not installed.
    fn start(server: &str) -> Option<Self> {
        if !Path::new(NGINX).exists() {
            let missing = format!("there is no {NGINX}; `cargo xtask check` installs it");
            assert!(std::env::var_os("DOCENT_TEST_REQUIRE_PROXY").is_none(), "{missing}");
            docent_testkit::skipped(&missing);
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let block = documented("nginx");
        let documented = ["listen 443 ssl;", "http://127.0.0.1:8080"];
        assert!(documented.iter().all(|part| block.contains(part)), "{block}");
        let block: String = block
            .replace(documented[0], &format!("listen 127.0.0.1:{port};"))
            .replace(documented[1], server)
            .lines()
            .filter(|line| !line.trim_start().starts_with("ssl_certificate"))
            .map(|line| format!("    {line}\n"))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("    {name}_temp_path {name};\n"))
            .concat();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\n    access_log off;\n{temporary}{block}}}\n"
        );
        std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
        let mut command = Command::new(NGINX);
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let nginx = Self { url: format!("http://127.0.0.1:{port}"), child, folder };
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() || nginx.has_ended());
        assert!(!nginx.has_ended(), "{}", nginx.said());
        Some(nginx)
    }

    fn has_ended(&self) -> bool {
        self.said().contains("[emerg]")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_documented_nginx_configuration_works() {
    let good = "A node is a participant in the ROS 2 graph [1].";
    let model = Model::start(vec![Reply::Stall { after: format!("{good} And") }]);
    let docent = model.serve(Docent::new()).with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "4");
    docent.write("docent.toml", &documented("toml"));
    let site = Site::new(&docent);
    let Some(nginx) = Nginx::start(&site.served.url) else { return };
    // Clients at two addresses.
    let [one, other] = [1, 2].map(|last| {
        Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, last])).build().unwrap()
    });
    let search = |client: &Client| {
        let url = format!("{}/api/v1/search", nginx.url);
        client.post(url).header("host", HOST).json(&json!({ "query": "node" }))
    };
    let status = |request: RequestBuilder| {
        let response = site.runtime.block_on(request.send()).unwrap();
        (response.status().as_u16(), response)
    };

    // A sentence arrives although the answer never ends, so nothing is buffered.
    let asked = one
        .post(format!("{}/api/v1/ask", nginx.url))
        .header("host", HOST)
        .json(&json!({ "query": NODE, "stream": true }));
    let (answered, mut response) = status(asked);
    assert_eq!(answered, 200);
    let mut heard = String::new();
    while !heard.contains("event: sentence") {
        let chunk = site.runtime.block_on(response.chunk()).unwrap().expect("the answer goes on");
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
    // The server notices through the proxy that the client is gone.
    drop(response);
    model.hangup();

    // Every client has its own limit, whatever it claims to be.
    let claims = |number: u8| search(&one).header("x-forwarded-for", format!("192.0.2.{number}"));
    let statuses: Vec<u16> = (0..50).map(|number| status(claims(number)).0).collect();
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    assert_eq!(status(search(&other)).0, 200);

    // The server knows its public name and no other, and metrics are not public.
    let page =
        |host: &str, path: &str| status(one.get(format!("{}{path}", nginx.url)).header("host", host)).0;
    assert_eq!((page(HOST, "/"), page("evil.example", "/"), page(HOST, "/metrics")), (200, 403, 404));
}
