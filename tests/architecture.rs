//! Which module may know which. The table stands in docs/architecture.md, between two marks; here the sources are held against it.
//!
//! A row names a module by its path and the modules that it may import from. A module belongs to the row with the longest path that
//! its own begins with. Test modules are left out: they may know anything.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An import: the path of the module that has it, the path that it names, and the file.
#[derive(Clone, Debug)]
struct Arrow {
    from: Vec<String>,
    to: Vec<String>,
    file: PathBuf,
}

/// A row of the table: a module's path, and the paths that it may know.
#[derive(Debug)]
struct Row {
    module: Vec<String>,
    knows: Vec<Vec<String>>,
}

fn path(text: &str) -> Vec<String> {
    text.split("::").map(str::to_owned).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The table of docs/architecture.md: `| module | … | knows |` between the marks.
fn table() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let begin = text.find("<!-- arrows -->").expect("docs/architecture.md marks where the table begins");
    let end = text.find("<!-- /arrows -->").expect("docs/architecture.md marks where the table ends");
    let rows = text[begin..end].lines().filter(|line| line.starts_with("| `"));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(path).collect::<Vec<_>>();
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 3, "a row has three cells: {line}");
        Row { module: names(cells[0]).remove(0), knows: names(cells[2]) }
    })
    .collect()
}

/// Whether an item is compiled for tests only.
fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| a.path().is_ident("cfg") && a.to_token_stream().to_string().contains("(test)"))
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Enum(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Impl(i) => &i.attrs,
        syn::Item::Macro(i) => &i.attrs,
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Static(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        syn::Item::Trait(i) => &i.attrs,
        syn::Item::Type(i) => &i.attrs,
        syn::Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// All arrows of the sources.
fn arrows() -> Vec<Arrow> {
    let mut found = Vec::new();
    visit(&root().join("src"), &mut Vec::new(), &mut BTreeSet::new(), &mut found);
    assert!(found.len() > 500, "the sources are read: {}", found.len());
    found
}

/// Reads a folder of modules; `tests` collects the modules in files of their own that are compiled for tests only.
fn visit(folder: &Path, module: &mut Vec<String>, tests: &mut BTreeSet<Vec<String>>, found: &mut Vec<Arrow>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    // A module's own file says which of those in its folder are for tests.
    entries.sort_by_key(|entry| (entry.is_dir(), entry.clone()));
    for entry in entries {
        let name = entry.file_stem().unwrap().to_string_lossy().into_owned();
        let code = entry.extension().is_some_and(|e| e == "rs");
        if module.is_empty() && name == "main" {
            continue;
        }
        let top = module.is_empty() && name == "lib";
        if !top {
            module.push(name);
        }
        if code && !tests.contains(module) {
            let file = syn::parse_file(&std::fs::read_to_string(&entry).unwrap()).unwrap();
            for item in &file.items {
                if let syn::Item::Mod(syn::ItemMod { ident, content: None, attrs, .. }) = item
                    && for_tests(attrs)
                {
                    tests.insert(module.iter().cloned().chain([ident.to_string()]).collect());
                }
            }
            if !top {
                items(&file.items, module, &entry, found);
            }
        } else if entry.is_dir() && !tests.contains(module) {
            visit(&entry, module, tests, found);
        }
        if !top {
            module.pop();
        }
    }
}

fn items(all: &[syn::Item], module: &mut Vec<String>, file: &Path, found: &mut Vec<Arrow>) {
    for item in all.iter().filter(|item| !for_tests(attributes(item))) {
        match item {
            syn::Item::Mod(syn::ItemMod { ident, content: Some((_, inner)), .. }) => {
                module.push(ident.to_string());
                items(inner, module, file, found);
                module.pop();
            }
            // Documentation may point anywhere: in tokens it is a string.
            item => tokens(item.to_token_stream(), module, file, found),
        }
    }
}

/// Finds `crate::…` and `super::…` in tokens, those of macros included.
fn tokens(stream: TokenStream, module: &[String], file: &Path, found: &mut Vec<Arrow>) {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    let ident = |i: usize| match all.get(i) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    };
    let colons = |i: usize| {
        let colon = |i: usize| matches!(all.get(i), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        colon(i) && colon(i + 1)
    };
    let mut i = 0;
    while i < all.len() {
        if let TokenTree::Group(group) = &all[i] {
            tokens(group.stream(), module, file, found);
        }
        let qualified = i > 1 && colons(i - 2);
        let mut base = match ident(i).as_deref() {
            Some("crate") if colons(i + 1) && !qualified => Vec::new(),
            Some("super") if colons(i + 1) && !qualified => module[..module.len() - 1].to_vec(),
            _ => {
                i += 1;
                continue;
            }
        };
        i += 3;
        while ident(i).as_deref() == Some("super") && colons(i + 1) {
            base.pop();
            i += 3;
        }
        while let Some(part) = ident(i) {
            base.push(part);
            if !colons(i + 1) {
                break;
            }
            i += 3;
        }
        let mut named = Vec::new();
        match all.get(i) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                tree(group.stream(), &base, &mut named);
            }
            _ => named.push(base),
        }
        found.extend(named.into_iter().map(|to| Arrow { from: module.to_vec(), to, file: file.to_owned() }));
        i += 1;
    }
}

/// The paths of a group of imports: `{self, a::b, c::{d, e}}`.
fn tree(stream: TokenStream, base: &[String], named: &mut Vec<Vec<String>>) {
    let mut current = base.to_vec();
    for token in stream {
        match token {
            TokenTree::Ident(ident) if ident == "self" => {}
            TokenTree::Ident(ident) => current.push(ident.to_string()),
            TokenTree::Punct(p) if p.as_char() == ',' => named.push(std::mem::replace(&mut current, base.to_vec())),
            TokenTree::Group(group) => tree(group.stream(), &current.clone(), named),
            _ => {}
        }
    }
    if current.len() > base.len() {
        named.push(current);
    }
}

/// The row that a path belongs to.
fn row<'a>(rows: &'a [Row], path: &[String]) -> Option<&'a Row> {
    rows.iter().filter(|row| path.starts_with(&row.module)).max_by_key(|row| row.module.len())
}

#[test]
fn every_import_is_one_that_the_table_allows_and_no_permission_is_unused() {
    let rows = table();
    let mut used = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for Arrow { from, to, file } in arrows() {
        let file = file.strip_prefix(root()).unwrap().display().to_string();
        let Some(own) = row(&rows, &from) else {
            wrong.insert(format!("{file}: the table has no row for the module {}", from.join("::")));
            continue;
        };
        let Some(other) = row(&rows, &to) else {
            wrong.insert(format!("{file}: the table has no row for {}", to.join("::")));
            continue;
        };
        // Its own parts, and the module that holds it, whose re-exports it may use.
        if own.module == other.module || to.starts_with(&own.module) {
            continue;
        }
        if own.module.starts_with(&other.module) && to.len() == other.module.len() + 1 {
            wrong.insert(format!("{file} imports {} from the module that holds it", to.join("::")));
            continue;
        }
        match own.knows.iter().find(|known| to.starts_with(known)) {
            Some(known) => {
                used.insert((own.module.clone(), known.clone()));
            }
            None => {
                wrong.insert(format!("{file}: {} may not know {}", own.module.join("::"), to.join("::")));
            }
        }
    }
    for row in &rows {
        for known in &row.knows {
            if !used.contains(&(row.module.clone(), known.clone())) {
                wrong.insert(format!(
                    "nothing in {} imports from {}: strike it out",
                    row.module.join("::"),
                    known.join("::")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn no_modules_form_a_cycle() {
    let rows = table();
    for depth in [1, usize::MAX] {
        let mut graph: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
        for Arrow { from, to, .. } in arrows() {
            let (Some(from), Some(to)) = (row(&rows, &from), row(&rows, &to)) else { continue };
            let cut = |row: &Row| row.module[..row.module.len().min(depth)].to_vec();
            if cut(from) != cut(to) {
                graph.entry(cut(from)).or_default().insert(cut(to));
            }
        }
        // Modules that know nothing which is left are taken away, until nothing or cycles are left.
        loop {
            let known: Vec<_> = graph.keys().cloned().collect();
            let before = known.len();
            graph.retain(|_, to| to.iter().any(|to| known.contains(to)));
            if graph.len() == before {
                break;
            }
        }
        assert!(graph.is_empty(), "these modules know each other in a circle: {graph:#?}");
    }
}

#[test]
fn only_the_registry_and_the_families_themselves_name_a_family() {
    let mut wrong = Vec::new();
    for Arrow { from, to, file } in arrows() {
        if to.first().is_some_and(|first| first == "task") && !["task", "registry"].contains(&from[0].as_str()) {
            wrong.push(format!("{} imports {}", file.strip_prefix(root()).unwrap().display(), to.join("::")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let source =
        "use crate::{a::b, c::{self, d}}; use super::e; fn f() { g!(crate::h::i); let x = super::super::j::k(); }
        #[cfg(test)] mod tests { use crate::left::out; }";
    let mut found = Vec::new();
    let mut module = path("outer::inner");
    items(&syn::parse_file(source).unwrap().items, &mut module, Path::new("x.rs"), &mut found);
    let mut to: Vec<String> = found.into_iter().map(|arrow| arrow.to.join("::")).collect();
    to.sort();
    to.dedup();
    assert_eq!(to, ["a::b", "c", "c::d", "h::i", "j::k", "outer::e"]);
}
