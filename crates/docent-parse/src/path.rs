//! Paths of files within a source, with `/` between folders.
//!
//! Invariant: a resolved path does not lead out of the source.

/// Resolves a path with `.` and `..` relative to a folder. It cannot leave the root.
pub fn resolve(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
