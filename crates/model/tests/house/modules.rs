//! The import graph of one crate, read from its `use` items and paths, and its cycles.
//!
//! A file is a node. An edge runs from a file to the file that defines what it names; names that a
//! module only re-exports are followed to where they are defined. `mod` and `pub use` of a child
//! are no edges: a folder's face may name its rooms.

use super::sources::{SourceFile, repository_root, rust_sources, without_tests};
use std::collections::{BTreeMap, BTreeSet};

type ModulePath = Vec<String>;

/// The modules of a crate that have their own file.
struct Graph {
    modules: BTreeMap<ModulePath, Module>,
}

struct Module {
    file: String,
    /// Absolute paths that the module names, without its re-exports.
    uses: Vec<ModulePath>,
    /// Names it re-exports, with their absolute paths.
    reexports: BTreeMap<String, ModulePath>,
}

/// The cycles of a crate, one line each with the files in it.
pub(crate) fn cycles(crate_name: &str) -> Vec<String> {
    Graph::read(crate_name).cycles()
}

/// What a crate's head says of a table of its modules, each of which may import those above it.
const ORDERED: &str = "//! Imports point upwards in this table only.";

/// The imports that point downwards in the table of modules of a crate, one line each; none of a
/// crate without such a table.
pub(crate) fn downward_imports(crate_name: &str) -> Vec<String> {
    let root = format!("crates/{crate_name}/src/lib.rs");
    let files = rust_sources();
    let Some(head) = files.iter().find(|file| file.path == root) else {
        return Vec::new();
    };
    if !head.text.contains(ORDERED) {
        return Vec::new();
    }
    let rooms = table_of_modules(&head.text);
    assert!(rooms.len() > 1, "{root}: the table has no modules");
    let prefix = format!("crates/{crate_name}/src/");
    let mut found = Vec::new();
    for (file, imported) in Graph::read(crate_name).imports() {
        let places = [&file, &imported].map(|path| {
            let inner = path.trim_start_matches(&prefix);
            let room = inner.split(['/', '.']).next().unwrap_or(inner);
            rooms.iter().position(|name| name == room)
        });
        if let [Some(own), Some(other)] = places
            && other > own
        {
            found.push(format!("{file} imports {imported}"));
        }
    }
    found
}

/// The names in the first column of the table in a head, from the top.
fn table_of_modules(head: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in head.lines() {
        if let Some(row) = line.strip_prefix("//! | `")
            && let Some((name, _)) = row.split_once('`')
        {
            names.push(name.trim_end_matches('/').to_owned());
        }
    }
    names
}

impl Graph {
    fn read(crate_name: &str) -> Self {
        let prefix = format!("crates/{crate_name}/src/");
        let files = rust_sources();
        let own: Vec<&SourceFile> = files
            .iter()
            .filter(|f| f.path.starts_with(&prefix))
            .collect();
        assert!(
            !own.is_empty(),
            "{}/{prefix} has no sources",
            repository_root().display()
        );
        let paths: BTreeSet<ModulePath> =
            own.iter().map(|f| module_path(&f.path, &prefix)).collect();
        let modules = own.iter().map(|file| {
            let path = module_path(&file.path, &prefix);
            let module = read_module(file, &path, &paths);
            (path, module)
        });
        Self {
            modules: modules.collect(),
        }
    }

    /// Each file with each other one that it imports.
    fn imports(&self) -> BTreeSet<(String, String)> {
        let mut imports = BTreeSet::new();
        for module in self.modules.values() {
            for path in &module.uses {
                if let Some(file) = self.file_of(path)
                    && file != module.file
                {
                    imports.insert((module.file.clone(), file.to_owned()));
                }
            }
        }
        imports
    }
}

/// `crates/engine/src/io/uring.rs` is `io::uring`, `crates/engine/src/lib.rs` the root.
fn module_path(file: &str, prefix: &str) -> ModulePath {
    let inner = file.trim_start_matches(prefix).trim_end_matches(".rs");
    let mut parts: ModulePath = inner.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || inner == "lib" || inner == "main" {
        parts.pop();
    }
    parts
}

fn read_module(file: &SourceFile, path: &ModulePath, all: &BTreeSet<ModulePath>) -> Module {
    let code = strip(without_tests(&file.text));
    let mut module = Module {
        file: file.path.clone(),
        uses: Vec::new(),
        reexports: BTreeMap::new(),
    };
    let mut rest = code.as_str();
    while let Some(at) = find_use(rest) {
        let is_public = rest[..at].trim_end().ends_with("pub")
            || rest[..at].trim_end().ends_with(')') && rest[..at].contains("pub(");
        let tail = &rest[at + 4..];
        let end = tail.find(';').unwrap_or(tail.len());
        for (absolute, name) in expand(&tail[..end], path, all) {
            if is_public {
                module.reexports.insert(name, absolute);
            } else {
                module.uses.push(absolute);
            }
        }
        rest = &tail[end..];
    }
    for word in words_with_paths(&code) {
        if let Some(absolute) = resolve(&word, path, all) {
            module.uses.push(absolute);
        }
    }
    module
}

/// The start of the next `use ` item.
fn find_use(code: &str) -> Option<usize> {
    code.match_indices("use ").map(|(at, _)| at).find(|at| {
        code[..*at]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace())
    })
}

/// Every path of a use tree as absolute module path and the name it binds.
fn expand(tree: &str, here: &ModulePath, all: &BTreeSet<ModulePath>) -> Vec<(ModulePath, String)> {
    flatten(tree.trim())
        .iter()
        .filter_map(|path| {
            let words: ModulePath = path.split("::").map(|w| w.trim().to_owned()).collect();
            let name = words.last()?.clone();
            let (last, bound) = match name.split_once(" as ") {
                Some((last, bound)) => (last.trim().to_owned(), bound.trim().to_owned()),
                None => (name.clone(), name),
            };
            let mut words = words;
            *words.last_mut()? = last;
            Some((resolve(&words, here, all)?, bound))
        })
        .collect()
}

/// `a::{b, c::{d}}` becomes `a::b` and `a::c::d`.
fn flatten(tree: &str) -> Vec<String> {
    let Some(open) = tree.find('{') else {
        return vec![tree.to_owned()];
    };
    let head = &tree[..open];
    let inner = tree[open + 1..].trim_end().trim_end_matches('}');
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty());
    parts
        .flat_map(|part| flatten(part).into_iter().map(|p| format!("{head}{p}")))
        .collect()
}

/// Paths such as `crate::a::B` or `child::B` outside of `use` items.
fn words_with_paths(code: &str) -> Vec<ModulePath> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(|c| !is_part(c))
        .filter(|word| word.contains("::"))
        .map(|word| {
            let parts = word.split("::").filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        })
        .collect()
}

/// The absolute path of a path in the module `here`; none for other crates.
fn resolve(words: &[String], here: &ModulePath, all: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let first = words.first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => here.clone(),
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        child => {
            let mut path = here.clone();
            path.push(child.to_owned());
            return all.contains(&path).then(|| {
                path.extend_from_slice(&words[1..]);
                path
            });
        }
    };
    for word in &words[1..] {
        match word.as_str() {
            "super" => drop(base.pop()),
            "self" => {}
            _ => base.push(word.clone()),
        }
    }
    Some(base)
}

/// The code without comments and the contents of strings.
fn strip(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for line in code.lines() {
        let line = line.trim_start();
        if !line.starts_with("//") {
            let line = line.split(" // ").next().unwrap_or(line);
            let outside = line.split('"').step_by(2);
            out.extend(outside);
            out.push('\n');
        }
    }
    out
}

impl Graph {
    /// The file that defines what `path` names, with re-exports followed.
    fn file_of(&self, path: &ModulePath) -> Option<&str> {
        let mut path = path.clone();
        for _ in 0..8 {
            let depth = (0..=path.len())
                .rev()
                .find(|n| self.modules.contains_key(&path[..*n]))?;
            let module = &self.modules[&path[..depth]];
            match path.get(depth).and_then(|name| module.reexports.get(name)) {
                Some(target) if *target != path => {
                    let mut next = target.clone();
                    next.extend_from_slice(&path[depth + 1..]);
                    path = next;
                }
                _ => return Some(&module.file),
            }
        }
        None
    }

    fn cycles(&self) -> Vec<String> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in self.modules.values() {
            let targets = module.uses.iter().filter_map(|path| self.file_of(path));
            let targets = targets.filter(|file| *file != module.file);
            edges.entry(&module.file).or_default().extend(targets);
        }
        let reach: BTreeMap<&str, BTreeSet<&str>> = edges
            .keys()
            .map(|file| (*file, reachable(file, &edges)))
            .collect();
        let mut found = BTreeSet::new();
        for (file, targets) in &reach {
            let group: Vec<&str> = targets
                .iter()
                .copied()
                .filter(|other| reach.get(other).is_some_and(|back| back.contains(file)))
                .collect();
            if group.len() > 1 {
                found.insert(group.join(" <-> "));
            }
        }
        found.into_iter().collect()
    }
}

fn reachable<'a>(from: &'a str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in edges.get(file).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    seen
}
