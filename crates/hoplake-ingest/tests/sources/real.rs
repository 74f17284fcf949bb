//! Real data sets, against the counts that come with them. The folder of archives is `HOPLAKE_TEST_DATA`, or
//! `../shared/data` next to the repository; where it is absent, these tests say so and pass.

use std::process::Command;

use super::*;

/// The extracted archive of a data set, or nothing if there is no such data.
fn data(set: &str) -> Option<(PathBuf, tempfile::TempDir)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let data =
        std::env::var_os("HOPLAKE_TEST_DATA").map_or_else(|| root.join("../shared/data"), PathBuf::from).join(set);
    let Ok(entries) = fs::read_dir(&data) else {
        eprintln!("left out: there is no {}", data.display());
        return None;
    };
    let archive = entries.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(".tar.zst"));
    let target = tempfile::tempdir().unwrap();
    let mut tar =
        Command::new("tar").arg("-xC").arg(target.path()).stdin(std::process::Stdio::piped()).spawn().unwrap();
    zstd::stream::copy_decode(fs::File::open(archive.unwrap()).unwrap(), tar.stdin.take().unwrap()).unwrap();
    assert!(tar.wait().unwrap().success());
    Some((data, target))
}

/// The number of rows of every table.
fn counts(dataset: &Dataset) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for phase in [Phase::Vertices, Phase::Edges] {
        for input in &dataset.inputs {
            for chunk in input.scan(phase, Arc::new(BadRows::stop())).unwrap() {
                let chunk = chunk.unwrap();
                *counts.entry(name(dataset, chunk.feed)).or_insert(0) += chunk.batch.num_rows() as u64;
            }
        }
    }
    counts
}

/// The name of a table in lower case, without what separates its parts.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

#[test]
fn basic_with_every_table() {
    let Some((data, folder)) = data("snb-sf0.1-datagen") else { return };
    let found: BTreeMap<String, u64> =
        counts(&opened(folder.path())).iter().map(|(name, n)| (plain(name), *n)).collect();
    let mut expected = BTreeMap::new();
    for line in
        fs::read_to_string(data.join("counts.txt")).unwrap().lines().filter(|line| !line.contains("updateStream"))
    {
        let (count, file) = line.trim().split_once(' ').unwrap();
        let table = file.rsplit('/').next().unwrap().trim_end_matches("_0_0.csv");
        let table = match table {
            "person_email_emailaddress" => "personemail".to_owned(),
            "person_speaks_language" => "personspeaks".to_owned(),
            other => plain(other),
        };
        expected.insert(table, count.parse().unwrap());
    }
    assert_eq!(found, expected);
}

#[test]
fn basic_with_messages_implied() {
    for set in ["snb-sample-903p-genuine", "snb-sf0.1-official-partial"] {
        let Some((data, folder)) = data(set) else { return };
        let found = counts(&opened(folder.path()));
        let text = fs::read_to_string(data.join("counts.txt")).unwrap();
        let mut edges = 0;
        for (name, count) in
            text.lines().filter(|line| line.contains("dangling")).filter_map(|line| line.split_once(": "))
        {
            let count: u64 = count.split(' ').next().unwrap().parse().unwrap();
            let table = found.iter().find(|(table, _)| plain(table) == plain(name));
            assert_eq!(table.map(|(_, found)| *found), Some(count), "{set} {name}");
            edges += count;
        }
        let totals: Vec<&str> = text.lines().last().unwrap().split("} V ").nth(1).unwrap().split(" E ").collect();
        let vertices: u64 = found.iter().filter(|(name, _)| !name.contains(['-', '.'])).map(|(_, count)| count).sum();
        assert_eq!([vertices.to_string(), edges.to_string()], [totals[0], totals[1].trim()], "{set}");
    }
}

#[test]
fn bi_with_every_folder() {
    let Some((data, folder)) = data("snb-sf0.1-bi-spark") else { return };
    let found: BTreeMap<String, u64> =
        counts(&opened(folder.path())).iter().map(|(name, n)| (plain(name), *n)).collect();
    for line in fs::read_to_string(data.join("counts.txt")).unwrap().lines() {
        let Some(rest) = line.strip_prefix("initial_snapshot/") else { continue };
        let folder = rest.split(['/', ' ']).nth(1).unwrap();
        let table = folder.replace("University", "Organisation").replace("Company", "Organisation");
        let count: u64 = rest.rsplit('=').next().unwrap().parse().unwrap();
        assert_eq!(found.get(&plain(&table)), Some(&count), "{folder}");
    }
    assert_eq!(found["commentreplyofcomment"] + found["commentreplyofpost"], found["comment"]);
    assert_eq!((found["forumcontainerofpost"], found["tagclassissubclassoftagclass"]), (found["post"], 70));
}

#[test]
fn air_routes_and_gnutella() {
    let Some((_, folder)) = data("air-routes") else { return };
    let found = counts(&opened(folder.path()));
    let expected = [
        ("-contains->", 7008),
        ("-route->", 50637),
        ("airport", 3504),
        ("continent", 7),
        ("country", 237),
        ("version", 1),
    ];
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let Some((_, folder)) = data("p2p-gnutella31") else { return };
    let dataset = opened(folder.path());
    assert_eq!(
        (vertex_types(&dataset), edge_types(&dataset)),
        (vec!["vertex[int64]: ".into()], vec!["edge: weight float64".into()])
    );
    let expected = [("vertex", 62_586), ("vertex-edge->vertex", 147_892)];
    assert_eq!(counts(&dataset), expected.map(|(name, count)| (name.to_owned(), count)).into());
}
