//! Code as a block of a page.
//!
//! Invariant: the fence is longer than any inside, so that the code cannot end it.

/// `code` in a fence that names its language.
pub(super) fn fenced(language: &str, code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{code}\n{fence}")
}
