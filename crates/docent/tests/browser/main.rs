//! The chat page and the widget as users see them: the real binary, a real browser, a book that is really
//! published.
//!
//! Needs Chromium and its driver (Debian: `chromium` and `chromium-driver`) and, for the accessibility
//! checks, axe-core (`npm install --prefix target/test-tools axe-core`). If a tool is missing, its tests are
//! skipped with a message on stderr; with `DOCENT_TEST_REQUIRE_BROWSER` set they fail. Screenshots go to
//! `target/screenshots`.
//!
//! Invariant: no test relies on a pause. Every step waits for what a user would wait for, and after every
//! test the browser's console is empty except for messages that the test expects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[allow(dead_code, reason = "shared with the tests of the command line")]
#[path = "../it/support.rs"]
mod support;

#[allow(dead_code, reason = "shared with the tests of the command line")]
#[path = "../it/rendered.rs"]
mod rendered;

mod book;
mod browser;
mod chat;
mod panel;

mod asking;
mod citations;
mod highlights;
mod conversations;
mod figures;
mod follow_ups;
mod trouble;
mod looks;
mod keyboard;
mod searching;
mod reading;
mod quiz;
mod hostile;
mod widget;
mod description;
mod integrations;
