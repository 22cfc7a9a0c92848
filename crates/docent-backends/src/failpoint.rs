//! Places where a test can make the program crash, pause or run out of disk space.
//!
//! Every write of an ingest and of a turn has a name and calls [`reach`]. `DOCENT_TEST_FAILPOINT`
//! selects one of them and what happens there: `NAME=ACTION`, or `NAME=ACTION@N` for the Nth time it is
//! reached (counted from 1). The actions are `abort` (exit immediately, as with `kill -9`), `pause`
//! (print a line to stderr and wait to be killed) and `full` (fail as if the disk were full).
//! `DOCENT_TEST_FAILPOINT_VISITS` names a file to which the name of every point reached is appended, so
//! that a test can discover them all.
//!
//! Invariant: release builds have no fail points, unless their tests ask for the feature `failpoints`; without them
//! [`reach`] does nothing.

/// Call this just before or just after the write called `name`.
#[cfg(not(any(debug_assertions, feature = "failpoints")))]
#[inline(always)]
pub fn reach(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(debug_assertions, feature = "failpoints"))]
pub use enabled::reach;

#[cfg(any(debug_assertions, feature = "failpoints"))]
mod enabled {
    use std::fs::OpenOptions;
    use std::io::{self, Write};
    use std::path::PathBuf;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The settings from the environment variables.
    struct Script {
        point: Option<Point>,
        visits: Option<PathBuf>,
    }

    struct Point {
        name: String,
        action: String,
        /// Which visit triggers the action, counted from 1.
        at: usize,
        visits: AtomicUsize,
    }

    static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
        let point = std::env::var("DOCENT_TEST_FAILPOINT").ok().and_then(|text| {
            let (name, action) = text.split_once('=')?;
            let (action, at) = action.split_once('@').unwrap_or((action, "1"));
            let (name, action) = (name.to_owned(), action.to_owned());
            Some(Point { name, action, at: at.parse().ok()?, visits: AtomicUsize::new(0) })
        });
        Script { point, visits: std::env::var_os("DOCENT_TEST_FAILPOINT_VISITS").map(PathBuf::from) }
    });

    /// Call this just before or just after the write called `name`.
    pub fn reach(name: &'static str) -> io::Result<()> {
        let script = &*SCRIPT;
        if let Some(path) = &script.visits {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            writeln!(file, "{name}")?;
        }
        let Some(point) = script.point.as_ref().filter(|point| point.name == name) else { return Ok(()) };
        if point.visits.fetch_add(1, Ordering::SeqCst) + 1 != point.at {
            return Ok(());
        }
        match point.action.as_str() {
            "abort" => std::process::abort(),
            "pause" => {
                let _ = writeln!(io::stderr(), "failpoint: paused at {name}");
                loop {
                    std::thread::park();
                }
            }
            "full" => Err(io::Error::new(io::ErrorKind::StorageFull, format!("failpoint {name}"))),
            other => Err(io::Error::other(format!("failpoint {name}: unknown action {other}"))),
        }
    }
}
