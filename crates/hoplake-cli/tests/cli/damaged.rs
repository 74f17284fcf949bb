//! What `verify` and `log` say of each kind of object below a graph, damaged in each way.
//!
//! The kinds come from the format's code: a name that [`kind`] does not know, a kind of section or an owner of a table that the graph here
//! does not have fails the test, so that a new one is added to the graph.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use hoplake_format::{
    Direction, Manifest, Slot, TableOwner,
    constants::{DATA_FOLDER, HINT_NAME, MANIFEST_FOLDER, manifest_name},
    segment::{SectionKind, decode_root},
};
use hoplake_testkit::MariaDbServer;
use serde_json::json;

use crate::hoplake::Shell;

/// A graph with every kind of object and of section: a feed's, with changes on top of its copy, and versions that were removed.
fn grown() -> Shell {
    let server = MariaDbServer::start(&[]).unwrap();
    let rows = "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, '5'), (2, '6')";
    server.sql("test", rows).unwrap();
    let shell = Shell::empty();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    let entry = "name = 'note'\ntypes = { body = 'int64' }\non_error = 'dead-letter'\nvertex = { label = 'Note' }\n";
    shell.write("feed.toml", &format!("{settings}[[table]]\n{entry}"));
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    server.sql("test", "INSERT INTO note VALUES (3, 'x'), (4, '8')").unwrap();
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let vertex =
        |key: i64, body: i64| json!({"op": "upsert_vertex", "label": "Note", "key": key, "properties": {"body": body}});
    let edge =
        |op: &str, target: i64| json!({"op": op, "label": "cites", "source": ["Note", 1], "target": ["Note", target]});
    let mut dated = edge("upsert_edge", 2);
    dated["properties"] = json!({"since": 2026});
    for lines in [
        vec![vertex(10, 1), vertex(11, 2), dated, edge("upsert_edge", 4)],
        vec![vertex(10, 7), json!({"op": "delete_vertex", "label": "Note", "key": 11}), edge("delete_edge", 4)],
    ] {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        shell.write("changes.jsonl", &text);
        shell.run(&["apply", "graph", "changes.jsonl"]).ok();
        // The second has an index to change; it exists already then.
        shell.run(&["index", "create", "graph", "Note.body"]);
    }
    shell.run(&["vacuum", "graph", "--keep-versions", "3"]).ok();
    shell
}

/// All files below a folder, by names with `/`.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
            match path.is_dir() {
                true => folders.push((format!("{name}/"), path)),
                false => drop(found.insert(name, path)),
            }
        }
    }
    found
}

/// What an object is.
fn kind(name: &str, bytes: &[u8]) -> &'static str {
    let (folder, rest) = name.split_once('/').unwrap_or(("", name));
    match (folder, rest.rsplit_once('.').map(|(_, ending)| ending)) {
        ("", None) if rest == HINT_NAME => "hint",
        (MANIFEST_FOLDER, Some("hlm")) => match Slot::decode(bytes).unwrap() {
            Slot::Version(_) => "manifest",
            Slot::Removed { .. } => "tombstone",
        },
        (DATA_FOLDER, Some("hls")) => "segment",
        (DATA_FOLDER, Some("parquet")) => "table",
        ("feeds", Some("zst")) => "state",
        ("dead-letters", Some("parquet")) => "letters",
        _ => panic!("{name}: a kind of object that this test does not know"),
    }
}

/// What becomes of an object's bytes; nothing if it is deleted.
type Damage = fn(&[u8]) -> Option<Vec<u8>>;

/// The ways in which an object is damaged.
const DAMAGES: [(&str, Damage); 6] = [
    ("deleted", |_| None),
    ("emptied", |_| Some(Vec::new())),
    ("truncated", |bytes| Some(bytes[..bytes.len() - 1].to_vec())),
    ("appended to", |bytes| Some([bytes, b"more"].concat())),
    ("flipped at its beginning", |bytes| Some(flipped(bytes, 0))),
    ("flipped in the middle", |bytes| Some(flipped(bytes, bytes.len() / 2))),
];

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 4;
    bytes
}

/// Asserts that `verify` reports damage of an object.
fn reported(shell: &Shell, name: &str, what: &str) {
    let run = shell.run(&["verify", "graph"]);
    assert_eq!(run.status, 7, "{name} {what}: {}{}", run.out, run.err);
    let named = |line: &str| line.starts_with("damaged: ") && line.contains(name);
    assert!(run.err.lines().any(named), "{name} {what}: {}", run.err);
    assert!(run.err.contains("\nhint: "), "{name} {what}: {}", run.err);
}

#[test]
fn every_kind_of_damage_to_every_kind_of_object_is_reported() {
    let shell = grown();
    shell.run(&["verify", "graph"]).ok();
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, path) in files(&shell.path().join("graph")) {
        let whole = fs::read(&path).unwrap();
        let seen = kinds.entry(kind(&name, &whole)).or_default();
        *seen += 1;
        // Of each kind two are enough: what a load wrote and what a commit did.
        if *seen > 2 {
            continue;
        }
        for (damage, damaged) in DAMAGES {
            match damaged(&whole) {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            match damage {
                // As a writer leaves it that is killed before it writes one.
                "deleted" if name == HINT_NAME => drop(shell.run(&["verify", "graph"]).ok()),
                // As a manifest was that was damaged before its version was removed.
                "emptied" if kind(&name, &whole) == "tombstone" => {}
                _ => reported(&shell, &name, damage),
            }
            fs::write(&path, &whole).unwrap();
        }
    }
    let expected = BTreeSet::from(["hint", "letters", "manifest", "segment", "state", "tombstone"]);
    assert_eq!(kinds.keys().copied().filter(|kind| *kind != "table").collect::<BTreeSet<_>>(), expected);
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn a_flipped_bit_in_every_kind_of_section_and_table_is_reported() {
    let shell = grown();
    let graph = shell.path().join("graph");
    let newest = Manifest::decode(&fs::read(graph.join(HINT_NAME)).unwrap()).unwrap();
    let mut sections = BTreeSet::new();
    for segment in &newest.segments {
        let path = graph.join(&segment.name);
        let whole = fs::read(&path).unwrap();
        for section in decode_root(&whole[..segment.end.length as usize], &segment.end).unwrap().sections {
            // Of each kind one.
            if section.items > 0 && sections.insert(section.kind.to_number() >> 16) {
                fs::write(&path, flipped(&whole, section.blocks().start as usize)).unwrap();
                reported(&shell, &segment.name, &format!("{:?}", section.kind));
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    let all = (1..).take_while(|kind| SectionKind::from_number(kind << 16).is_some());
    assert_eq!(sections, all.collect(), "every kind of section");
    let mut owners = BTreeSet::new();
    for table in &newest.tables {
        let path = graph.join(&table.name);
        let whole = fs::read(&path).unwrap();
        let owner = match table.owner {
            TableOwner::Vertices(_) => "vertices",
            TableOwner::Changed(_) => "changed",
            TableOwner::Edges(_, Direction::Out) => "edges out",
            TableOwner::Edges(_, Direction::In) => "edges in",
        };
        if owners.insert(owner) {
            fs::write(&path, flipped(&whole, (table.position + table.length / 2) as usize)).unwrap();
            reported(&shell, &table.name, owner);
            fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(owners, BTreeSet::from(["changed", "edges in", "edges out", "vertices"]));
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn an_object_that_was_appended_to_is_reported_of_one_version_too() {
    let shell = grown();
    let graph = shell.path().join("graph");
    let manifest = Manifest::decode(&fs::read(graph.join(HINT_NAME)).unwrap()).unwrap();
    let path = graph.join(manifest.objects().into_keys().next().unwrap());
    let whole = fs::read(&path).unwrap();
    let newest = manifest.version.to_string();
    shell.run(&["verify", "graph", "--version", &newest]).ok();
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    let run = shell.run(&["verify", "graph", "--version", &newest]);
    assert!(run.status == 7 && run.err.contains("bytes where"), "{}", run.err);
}

#[test]
fn a_log_prints_what_is_there_and_reports_what_is_not() {
    let shell = Shell::with_graph();
    shell.run(&["tag", "graph", "first", "--version", "1"]).ok();
    shell.run(&["tag", "graph", "again", "--version", "1"]).ok();
    for version in 1..=3 {
        let name = manifest_name(version);
        let path = shell.path().join("graph").join(&name);
        let whole = fs::read(&path).unwrap();
        for (damage, damaged) in DAMAGES {
            match damaged(&whole) {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let run = shell.run(&["log", "graph"]);
            assert_eq!(run.status, 7, "{version} {damage}: {}{}", run.out, run.err);
            assert!(run.err.contains(&name) && run.err.contains("hoplake verify graph"), "{}", run.err);
            assert_eq!(run.out.lines().count(), 2, "{version} {damage}, the others: {}", run.out);
            fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(shell.run(&["log", "graph"]).ok().out.lines().count(), 3);
}
