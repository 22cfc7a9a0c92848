//! The progress of an ingest: progress bars on a terminal, JSON lines with `--json`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use docent_backends::progress::Progress;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;

use crate::output::Output;

/// The minimum time between two JSON lines, except for the first and the last of a step.
const BETWEEN_LINES: Duration = Duration::from_millis(250);

/// The progress reporter for this output. The warning is printed after the sources are read and before they
/// replace the index.
pub fn reporter(output: &Output, warning: Option<String>) -> Box<dyn Progress> {
    let reporter: Box<dyn Progress> =
        if output.json { Box::new(Lines::new(output)) } else { Box::new(Bars::new(output)) };
    match warning {
        Some(warning) => {
            let warning = Mutex::new(Some(warning));
            Box::new(Warned { output: *output, warning, reporter })
        }
        None => reporter,
    }
}

/// A reporter that also prints a warning.
struct Warned {
    output: Output,
    warning: Mutex<Option<String>>,
    reporter: Box<dyn Progress>,
}

impl Progress for Warned {
    fn step(&self, name: &str) {
        if name != "reading"
            && let Some(warning) = locked(&self.warning).take()
        {
            if !self.output.json {
                // Removes the progress bar first.
                self.reporter.passages(0, 0);
            }
            self.output.warn(warning);
        }
        self.reporter.step(name);
    }

    fn passages(&self, done: usize, total: usize) {
        self.reporter.passages(done, total);
    }

    fn pages(&self, done: usize, known: usize) {
        self.reporter.pages(done, known);
    }
}

/// Prints a JSON line for every step, and some for the progress within it.
struct Lines {
    output: Output,
    step: Mutex<String>,
    last: Mutex<Option<Instant>>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    /// A step begins.
    Step { step: &'a str },
    /// `done` of the pages found so far are read.
    Pages { done: usize, known: usize },
    /// `done` of `total` passages have completed the step.
    Passages { step: &'a str, done: usize, total: usize },
}

impl Lines {
    fn new(output: &Output) -> Self {
        Self { output: *output, step: Mutex::default(), last: Mutex::default() }
    }

    fn say(&self, line: &Line<'_>, at_once: bool) {
        let mut last = locked(&self.last);
        if at_once || last.is_none_or(|last| last.elapsed() > BETWEEN_LINES) {
            *last = Some(Instant::now());
            // A failed write is reported with the final line.
            let _ = self.output.json_line(line);
        }
    }
}

impl Progress for Lines {
    fn step(&self, name: &str) {
        *locked(&self.step) = name.to_owned();
        self.say(&Line::Step { step: name }, true);
    }

    fn passages(&self, done: usize, total: usize) {
        let step = locked(&self.step).clone();
        self.say(&Line::Passages { step: &step, done, total }, done == 0 || done == total);
    }

    fn pages(&self, done: usize, known: usize) {
        self.say(&Line::Pages { done, known }, false);
    }
}

fn locked<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Progress bars on a terminal; prints nothing elsewhere.
pub struct Bars {
    visible: bool,
    step: Mutex<String>,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    /// A reporter that shows nothing yet.
    pub fn new(output: &Output) -> Self {
        Self { visible: output.watched() && !output.json, step: Mutex::default(), bar: Mutex::new(None) }
    }

    fn replace(&self, bar: Option<ProgressBar>) {
        let mut slot = locked(&self.bar);
        if let Some(old) = slot.take() {
            old.finish_and_clear();
        }
        *slot = bar;
    }

    fn counting(&self, of: &str, total: usize) {
        let bar = ProgressBar::new(total as u64).with_message(locked(&self.step).clone());
        let template = format!("{{msg}} {{wide_bar}} {{pos}}/{{len}} {of} · {{rate}} · {{eta}} left");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate));
        self.replace(Some(bar));
    }
}

impl Progress for Bars {
    fn pages(&self, done: usize, known: usize) {
        if !self.visible || known == 0 {
            return;
        }
        let begun = locked(&self.bar).as_ref().is_some_and(|bar| bar.length().is_some());
        if !begun {
            self.counting("pages found so far", known);
        }
        if let Some(bar) = &*locked(&self.bar) {
            bar.set_length(known as u64);
            bar.set_position(done as u64);
        }
    }

    fn step(&self, name: &str) {
        *locked(&self.step) = name.to_owned();
        if self.visible {
            let bar = ProgressBar::new_spinner().with_message(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            self.replace(Some(bar));
        }
    }

    fn passages(&self, done: usize, total: usize) {
        if !self.visible {
            return;
        }
        if total == 0 {
            return self.replace(None);
        }
        if done == 0 || locked(&self.bar).is_none() {
            self.counting("passages", total);
        }
        if let Some(bar) = &*locked(&self.bar) {
            bar.set_position(done as u64);
        }
        if done == total {
            self.replace(None);
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.replace(None);
    }
}
