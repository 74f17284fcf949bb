//! Loads from where data is: objects of a store, names with wildcards, and mappings that name files elsewhere.

use std::{fs, path::Path};

use hoplake::{BadRowPolicy, Error, ErrorKind, LoadOptions, LoadReport, Store};

use crate::graphs::{in_memory, load_into};

const PEOPLE: &str = "id,name\n1,Ann\n2,Bob\n";
const KNOWS: &str = "from,to\n1,2\n2,1\n";
const MAPPING: &str = "[[vertices]]\nfile = \"people.csv\"\nlabel = \"P\"\nkey = \"id\"\n\n[[edges]]\nfile = \"more/knows.csv\"\n\
                       label = \"knows\"\nsource = \"from\"\nsource_label = \"P\"\ntarget = \"to\"\ntarget_label = \"P\"\n";

async fn put(url: &str, objects: &[(&str, &str)]) {
    let store = Store::open(url).unwrap();
    for (name, text) in objects {
        store.put(name, text.as_bytes().to_vec().into()).await.unwrap();
    }
}

async fn load(options: LoadOptions) -> Result<LoadReport, Error> {
    let temp = tempfile::tempdir().unwrap();
    let loaded = load_into(&in_memory().1, LoadOptions { temp_dir: Some(temp.path().into()), ..options }).await;
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "copies are removed");
    loaded
}

fn mapped(mapping: impl AsRef<Path>) -> LoadOptions {
    LoadOptions { mapping: Some(mapping.as_ref().into()), ..LoadOptions::from_paths::<&Path>([]) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_in_a_store_suffices() {
    let objects = [("people.csv", PEOPLE), ("more/knows.csv", KNOWS), ("map.toml", MAPPING)];
    put("memory://inputs/mapping", &objects).await;
    let report = load(mapped("memory://inputs/mapping/map.toml")).await.unwrap();
    assert_eq!((report.vertices, report.edges), (2, 2));
    // One here names files there.
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("map.toml");
    fs::write(&here, MAPPING.replace("more/", "memory://inputs/mapping/more/")).unwrap();
    fs::write(folder.path().join("people.csv"), PEOPLE).unwrap();
    assert_eq!(load(mapped(&here)).await.unwrap().edges, 2);
    fs::write(&here, MAPPING.replace("more/", "memory://inputs/mapping/none/")).unwrap();
    let missing = load(mapped(&here)).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("memory://inputs/mapping/none/knows.csv"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_named_by_folder_and_by_wildcard() {
    let gremlin = "~id,~label,name:String\n1,P,Ann\n2,P,Bob\n";
    let edges = "~id,~from,~to,~label\n9,1,2,knows\n";
    let bad = "~id,~from,~to,~label\n9,1,7,knows\n";
    let objects = [("a/people.csv", gremlin), ("a/edges.csv", edges), ("a/_SUCCESS", ""), ("a/b/bad.csv", bad)];
    put("memory://inputs/names", &objects).await;
    for from in ["memory://inputs/names/a/*.csv", "memory://inputs/names/a/[ep]*"] {
        let report = load(LoadOptions::from_paths([from])).await.unwrap();
        assert_eq!((report.vertices, report.edges), (2, 1), "{from}");
    }
    // Below the folder there is the bad one, too; messages have its name.
    let folder = LoadOptions::from_paths(["memory://inputs/names/a"]);
    let error = load(folder.clone()).await.unwrap_err().to_string();
    assert!(error.starts_with("memory://inputs/names/a/b/bad.csv, line 2, column target: \"7\" is the key"), "{error}");
    let rejects = tempfile::tempdir().unwrap();
    let file = rejects.path().join("rejects.csv");
    load(LoadOptions { bad_rows: BadRowPolicy::Skip(file.clone()), ..folder }).await.unwrap();
    let rejects = fs::read_to_string(file).unwrap();
    assert!(rejects.contains("memory://inputs/names/a/b/bad.csv,2,target,7,") && rejects.contains("\"9,1,7,knows\""));
    for none in ["memory://inputs/names/none", "memory://inputs/names/a/*.parquet", "memory://inputs/names/a/x.csv"] {
        let error = load(LoadOptions::from_paths([none])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{none}");
        assert!(error.to_string().contains(none), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_named_by_wildcard() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.el", "1 2\n"), ("b.el", "2 3\n"), ("c.txt", "7 8\n"), ("x[1].el", "4 5\n")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let load_edges =
        async |name: &str| load(LoadOptions::from_paths([folder.path().join(name)])).await.map(|it| it.edges);
    assert_eq!(load_edges("?.el").await.unwrap(), 2);
    assert_eq!(load_edges("x[1].el").await.unwrap(), 1, "a file that is there is not a pattern");
    assert!(load_edges("*.none").await.unwrap_err().to_string().contains("no file matches"));
    let slash = load(LoadOptions::from_paths(["s3:/bucket/x.csv"])).await.unwrap_err();
    assert!(slash.to_string().contains("write s3://, with two slashes"), "{slash}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_copied_for_a_load_that_cannot_be() {
    let people = "~id,~label,name:String\n1,P,Ann\n";
    put("memory://inputs/bounds", &[("people.csv", people)]).await;
    let url = "memory://inputs/bounds/people.csv";
    let bytes = people.len() as u64;
    let bound = |bytes| LoadOptions { copied_bytes_max: Some(bytes), ..LoadOptions::from_paths([url]) };
    assert_eq!(load(bound(bytes)).await.unwrap().vertices, 1);
    let rejected = load(bound(bytes - 1)).await.unwrap_err();
    assert!(rejected.to_string().contains("copied_bytes_max"), "{rejected}");
    // Before inputs are looked for: the graph is there, or the file of rejects is somebody's.
    let none = LoadOptions::from_paths(["memory://inputs/bounds/none.csv"]);
    let (_, store) = in_memory();
    load_into(&store, LoadOptions::from_paths([url])).await.unwrap();
    assert_eq!(load_into(&store, none.clone()).await.unwrap_err().kind(), ErrorKind::Conflict);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.csv");
    fs::write(&file, "mine\n").unwrap();
    let rejected = load(LoadOptions { bad_rows: BadRowPolicy::Skip(file), ..none }).await.unwrap_err();
    assert!(rejected.to_string().contains("it would be overwritten"), "{rejected}");
}
