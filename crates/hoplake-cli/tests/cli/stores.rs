//! Every verb that reads or writes a graph answers the same on a folder, an S3 server and Azurite.

use std::fs;

use hoplake_testkit::{AzuriteServer, S3Server};

use crate::hoplake::{EDGES, PEOPLE, Run, Shell};

/// A place for graphs, and the variables that reach it.
struct Place {
    shell: Shell,
    url: Box<dyn Fn(&str) -> String>,
    env: Vec<(String, String)>,
}

impl Place {
    fn new(url: impl Fn(&str) -> String + 'static, env: Vec<(String, String)>) -> Self {
        let shell = Shell::empty();
        shell.write("data/people.csv", PEOPLE);
        shell.write("data/edges.csv", EDGES);
        let eve = r#"{"op": "upsert_vertex", "label": "Person", "key": 5, "properties": {"name": "Eve", "age": 20}}"#;
        let knows = r#"{"op": "upsert_edge", "label": "knows", "source": ["Person", 5], "target": ["Person", 1]}"#;
        shell.write("eve.jsonl", &format!("{eve}\n{knows}\n"));
        shell.write("gone.jsonl", r#"{"op": "delete_vertex", "label": "Person", "key": 4}"#);
        Self { shell, url: Box::new(url), env }
    }

    /// Runs a line of words, in which `@name` is a graph of this place.
    fn run(&self, line: &str) -> Run {
        let words: Vec<String> = line
            .split('|')
            .map(|word| word.strip_prefix('@').map_or_else(|| word.to_owned(), |name| (self.url)(name)))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.shell.command(&words);
        command.envs(self.env.clone()).env_remove("HOPLAKE_DISK_CACHE");
        Run::of(&command.output().unwrap())
    }
}

/// Verbs whose answers are what is compared.
const ASKED: [&str; 20] = [
    "get|@graph|Person:1|Town:10|--format|json",
    "get|@graph|Person:1|--version|1|--format|json",
    "neighbors|@graph|Person:1|--hop|both|--select|since,name|--format|json",
    "khop|@graph|Person:5|--depth|2|--format|csv",
    "traverse|@graph|--start|Person[name = Eve]|--hop|out:knows|--hop|out:knows|--select|name|--format|csv",
    "traverse|@graph|--start|Person:1|--hop|out:knows|--hop|out:knows|--paths|--format|csv",
    "path|@graph|--from|Person:5|--to|Town:10|--format|json",
    "scan|@graph|--label|Person|--where|age > 30|--order-by|name|--format|csv",
    "scan|@graph|--label|Person|--where|name = Bob|--count",
    "index|list|@graph",
    "diff|@graph|1|3",
    "get|@graph|Person:4|--version|spring|--format|json",
    "run|@graph|pagerank|--edges|out:knows|--format|csv",
    "run|@graph|components|--format|csv",
    "scan|@loaded|--label|Person|--order-by|name|--format|csv",
    "neighbors|@loaded|Person:5|--hop|out:knows|--format|json",
    "get|@cloned|Person:5|--format|json",
    "verify|@graph",
    "verify|@cloned",
    "scan|mirror|--label|Person|--order-by|age|--format|csv",
];

fn answers(place: &Place) -> Vec<(&'static str, String)> {
    for written in [
        "load|@graph|--from|data|--index|Person.name",
        "apply|@graph|eve.jsonl|--message|Eve is new",
        "index|create|@graph|Person.age",
        "apply|@graph|gone.jsonl",
        "tag|@graph|spring|--version|2",
        "clone|@graph|@cloned",
        "mirror|@graph|mirror",
        "compact|@graph|--all",
        "index|drop|@graph|Person.age",
        "export|@graph|--to|@exported|--format|parquet",
        "load|@loaded|--mapping|@exported/mapping.toml",
    ] {
        place.run(written).ok();
    }
    let answers = ASKED.map(|line| (line, place.run(line).ok().out)).into();
    for written in ["restore|@graph|--version|2", "vacuum|@graph|--keep-versions|1"] {
        place.run(written).ok();
    }
    let restored = "scan|@graph|--label|Person|--order-by|name|--format|csv";
    [answers, vec![(restored, place.run(restored).ok().out)]].concat()
}

#[test]
fn verbs_answer_the_same_on_every_store() {
    let s3 = S3Server::start().unwrap();
    let azure = AzuriteServer::start().unwrap();
    let s3_url = s3.url("stores");
    let azure_url = azure.url("stores");
    let folder = answers(&Place::new(str::to_owned, Vec::new()));
    assert!(folder.iter().all(|(_, answer)| !answer.is_empty()), "{folder:#?}");
    for (name, url, env) in [("S3", s3_url, s3.env()), ("Azure", azure_url, azure.env())] {
        let place = Place::new(move |graph| format!("{url}/{graph}"), env);
        for ((line, expected), (_, answer)) in folder.iter().zip(answers(&place)) {
            assert_eq!(&answer, expected, "{name}: {line}");
        }
        assert!(fs::read_dir(place.shell.path()).unwrap().all(|it| it.unwrap().file_name() != "graph"), "{name}");
    }
}
