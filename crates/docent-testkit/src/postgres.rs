//! A real PostgreSQL server for one test: Debian's package, with its own folder and port.
//!
//! If PostgreSQL is not installed, the test is skipped with a message, unless `DOCENT_TEST_REQUIRE_POSTGRES`
//! is set.
//!
//! Invariant: the server ends with its test, even if the test fails, and leaves no files behind.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "only used by tests, which should fail with the reason"
)]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use uuid::Uuid;

/// The password of the database owner, which must never appear in any output.
pub const PASSWORD: &str = "swordfish-7f3a";

/// Where Debian installs the versions.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Maximum time to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server; stops when dropped.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts a server on a free local port. Returns nothing if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let required = std::env::var_os("DOCENT_TEST_REQUIRE_POSTGRES").is_some();
            assert!(!required, "PostgreSQL is required but not installed (Debian: postgresql)");
            super::skipped("PostgreSQL is not installed (Debian: postgresql)");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("docent-postgres-{}", Uuid::new_v4()));
        let mut postgres = Self { programs, folder, port: 0, server: None };
        postgres.make();
        // Another process may take a port that was free a moment ago.
        let started = (0..5).any(|_| {
            postgres.port = free_port();
            postgres.run()
        });
        assert!(started, "PostgreSQL did not start: {}", postgres.log());
        Some(postgres)
    }

    /// Creates a new, empty database and returns its URL.
    pub fn database(&self) -> String {
        let name = format!("d{}", Uuid::new_v4().simple());
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// Runs SQL as the superuser and returns its output.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]);
        psql.arg("--command").arg(sql).arg(self.address(database));
        let output = psql.output().expect("psql can be started");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Stops the server abruptly, like a power failure.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            // On SIGQUIT it ends its children first and writes nothing more.
            let _ = Command::new("kill").args(["-QUIT", &server.id().to_string()]).status();
            let _ = server.wait();
        }
    }

    /// Starts a killed server again with the same data and port.
    pub fn restart(&mut self) {
        assert!(self.run(), "PostgreSQL did not start again: {}", self.log());
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://docent:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Initializes the data folder.
    fn make(&self) {
        let password = self.folder.with_extension("password");
        std::fs::write(&password, PASSWORD).expect("a file can be written");
        // The server runs as another user, who must be able to read the file.
        let everyone = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&password, everyone).expect("a file can be shared");
        let mut initdb = self.command("initdb");
        initdb.args(["--username", "docent", "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        initdb.args(["--locale", "C.UTF-8", "--no-sync", "--pwfile"]).arg(&password);
        let output = initdb.arg("--pgdata").arg(&self.folder).output().expect("initdb can be started");
        let _ = std::fs::remove_file(&password);
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the server; returns whether it accepts connections.
    fn run(&mut self) -> bool {
        let log = std::fs::File::create(self.folder.with_extension("log")).expect("a file can be written");
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.folder).arg("-p").arg(self.port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"] {
            command.args(["-c", setting]);
        }
        command.stdout(Stdio::null()).stderr(log).stdin(Stdio::null());
        let mut server = command.spawn().expect("postgres can be started");
        let begun = Instant::now();
        let ready = loop {
            if server.try_wait().is_ok_and(|ended| ended.is_some()) || begun.elapsed() > TIMEOUT {
                break false;
            }
            if self.is_ready() {
                break true;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        self.server = Some(server);
        if !ready {
            self.kill();
        }
        ready
    }

    fn is_ready(&self) -> bool {
        let mut command = Command::new(self.programs.join("pg_isready"));
        command.args(["--quiet", "--host", "127.0.0.1", "--port", &self.port.to_string()]);
        command.status().is_ok_and(|status| status.success())
    }

    /// One of PostgreSQL's programs, which ends when this process does. PostgreSQL refuses to run as root, so
    /// in that case the user created by Debian's package is used.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if is_root() {
            command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
        }
        command.args(["--pdeathsig", "QUIT", "--"]).arg(self.programs.join(program));
        // A folder that every user can enter.
        command.current_dir("/");
        command
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.with_extension("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = std::fs::remove_file(self.folder.with_extension("log"));
    }
}

/// The programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = Path::new(VERSIONS).read_dir().ok()?;
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().map(|entry| entry.path()).filter(|path| path.join("bin/initdb").exists());
    Some(newest.max_by_key(version)?.join("bin"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("there is a free port").port()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
