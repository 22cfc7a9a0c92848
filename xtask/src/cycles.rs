//! Checks that modules do not import each other in circles.
//!
//! Within every folder of a crate, each module counts with everything below it. If one needs another, by a path
//! that begins with `crate::` or `super::`, the other must not need the first, directly or through further modules.
//! A module and its own parent may use each other. Only text is read, nothing is compiled, so macros are not
//! seen; what is only compiled for tests is left out.
//!
//! Invariant: the same sources give the same report, in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Path of a module inside its crate: `["http", "turn"]`; empty for the crate itself.
type Module = Vec<String>;

/// Which module of a folder needs which others of the same folder.
type Needs = BTreeMap<String, BTreeSet<String>>;

/// Fails with the circles of all crates.
pub fn check() -> Result<(), String> {
    let mut circles = Vec::new();
    let mut crates: Vec<PathBuf> = entries(Path::new("crates"))?;
    crates.sort();
    for folder in crates {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sources = sources(&folder.join("src"))?;
        circles.extend(circles_of(&sources).into_iter().map(|circle| format!("{name}: {circle}")));
    }
    if circles.is_empty() { Ok(()) } else { Err(circles.join("\n   ")) }
}

/// The text of each module below `root`, without tests.
fn sources(root: &Path) -> Result<BTreeMap<Module, String>, String> {
    let (mut sources, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(module) = module_at(path.strip_prefix(root).unwrap_or(&path)) else { continue };
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            sources.insert(module, without_tests(&text));
        }
    }
    Ok(sources)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// The module in the file `path`; none if it is not Rust, or only has tests.
fn module_at(path: &Path) -> Option<Module> {
    if path.extension()? != "rs" {
        return None;
    }
    let mut module: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.iter().any(|part| part == "tests") {
        return None;
    }
    if ["lib", "main", "mod"].contains(&module.last()?.as_str()) {
        module.pop();
    }
    Some(module)
}

/// Leaves out comments and items below `#[cfg(test)]`; relies on rustfmt's indentation.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let item = lines.find(|line| !line.starts_with("#[")).unwrap_or_default();
            if !item.ends_with(';') && !item.ends_with('}') {
                lines.find(|line| line.starts_with(['}', ']', ')']));
            }
            continue;
        }
        kept.push_str(line.split("//").next().unwrap_or_default());
        kept.push('\n');
    }
    kept
}

/// One line for each circle: the modules of one folder that need each other.
fn circles_of(sources: &BTreeMap<Module, String>) -> Vec<String> {
    let mut folders: BTreeMap<&[String], Needs> = BTreeMap::new();
    for (module, text) in sources {
        for needed in paths(text).filter_map(|path| resolve(&path, module, sources)) {
            let shared = module.iter().zip(&needed).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (module.get(shared), needed.get(shared)) {
                let needs = folders.entry(&module[..shared]).or_default();
                needs.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    let circle = |(folder, needs): (&&[String], &Needs)| {
        let folder = if folder.is_empty() { "crate".to_owned() } else { folder.join("::") };
        groups(needs)
            .into_iter()
            .map(|group| format!("{} need each other in {folder}", group.join(", ")))
            .collect::<Vec<_>>()
    };
    folders.iter().flat_map(circle).collect()
}

/// All paths in `text` that begin with `crate::` or `super::`, with those of a `use` of several items spelled out.
fn paths(text: &str) -> impl Iterator<Item = Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::"].iter().flat_map(|start| text.match_indices(start)) {
        let (at, _) = start;
        let before = text[..at].chars().next_back();
        if before.is_none_or(|before| !before.is_alphanumeric() && before != ':' && before != '_') {
            spell_out(
                &mut text[at..].chars().filter(|character| *character != '\n').peekable(),
                &[],
                &mut paths,
            );
        }
    }
    paths.into_iter()
}

/// Reads one path, or a group in braces, after `prefix`.
fn spell_out(
    characters: &mut std::iter::Peekable<impl Iterator<Item = char>>,
    prefix: &[String],
    paths: &mut Vec<Vec<String>>,
) {
    let mut path = prefix.to_vec();
    loop {
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        let mut name = String::new();
        while let Some(character) =
            characters.next_if(|character| character.is_alphanumeric() || *character == '_')
        {
            name.push(character);
        }
        if name.is_empty() {
            break;
        }
        path.push(name);
        if characters.next_if_eq(&':').is_none() || characters.next_if_eq(&':').is_none() {
            break;
        }
    }
    if characters.next_if_eq(&'{').is_none() {
        paths.push(path);
        return;
    }
    loop {
        spell_out(characters, &path, paths);
        // What follows a name inside the braces: a comma, `as NAME`, or the end of the group.
        while characters.next_if(|character| !matches!(character, ',' | '}' | ';')).is_some() {}
        if characters.next_if_eq(&',').is_none() {
            characters.next_if_eq(&'}');
            return;
        }
    }
}

/// The module that `path`, written in `module`, leads to; none if it is `module` itself.
fn resolve(path: &[String], module: &[String], sources: &BTreeMap<Module, String>) -> Option<Module> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let (mut at, names) = if ups > 0 {
        (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..])
    } else {
        (Module::new(), &path[1..])
    };
    for name in names {
        at.push(name.clone());
        if !sources.contains_key(&at) {
            at.pop();
            break;
        }
    }
    (at != module).then_some(at)
}

/// The groups of two or more that all reach each other.
fn groups(needs: &Needs) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        needs.keys().map(|from| (from.as_str(), reachable(from, needs))).collect();
    let mut groups = BTreeSet::new();
    for (from, targets) in &reached {
        let group: Vec<String> = targets
            .iter()
            .filter(|target| reached.get(*target).is_some_and(|back| back.contains(from)))
            .map(|target| (*target).to_owned())
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reachable<'n>(from: &str, needs: &'n Needs) -> BTreeSet<&'n str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        for target in needs.get(next).into_iter().flatten() {
            if reached.insert(target.as_str()) {
                open.push(target);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{Module, circles_of, without_tests};
    use std::collections::BTreeMap;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: BTreeMap<Module, String> = files
            .iter()
            .map(|(module, text)| {
                let module = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
                (module, without_tests(text))
            })
            .collect();
        assert_eq!(circles_of(&sources), expected);
    }

    #[test]
    fn two_modules_that_import_each_other_are_a_circle() {
        check(
            &[("a", "use crate::b::B;\n"), ("b", "fn f() { crate::a::f() }\n")],
            &["a, b need each other in crate"],
        );
        check(&[("a", "use crate::b::B;\n"), ("b", "use std::fmt;\n")], &[]);
    }

    #[test]
    fn a_circle_may_lead_through_several_modules_and_files_below_them() {
        check(
            &[
                ("", ""),
                ("http", ""),
                ("http::a", "use super::b::{self, B};\n"),
                ("http::b", ""),
                ("http::b::deep", "use crate::{\n    http::c::{C, D as E},\n    other,\n};\n"),
                ("http::c", "use super::a;\n"),
                ("other", ""),
            ],
            &["a, b, c need each other in http"],
        );
    }

    #[test]
    fn a_module_and_its_parent_may_use_each_other() {
        check(&[("a", "use crate::a::part::Part;\n"), ("a::part", "use super::Whole;\n")], &[]);
    }

    #[test]
    fn comments_and_tests_do_not_count() {
        let tests =
            "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more {\n    use crate::b::B;\n}\nuse crate::c::C;\n";
        check(&[("a", tests), ("b", "// see crate::a::A\nuse crate::a::A;\n"), ("c", "")], &[]);
        check(&[("a", tests), ("b", ""), ("c", "use crate::a::A;\n")], &["a, c need each other in crate"]);
    }
}
