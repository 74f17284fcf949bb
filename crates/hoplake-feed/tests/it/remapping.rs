//! A mapping that changes after the copy: the rows that were copied would be other ones by it, so the feed stops until somebody decides.

use std::path::Path;

use hoplake_feed::{RunOptions, Settings};
use hoplake_testkit::MariaDbServer;

use crate::following::{content, once, settings_of};

const TABLES: &str = "CREATE TABLE team (id INT PRIMARY KEY, code INT NOT NULL UNIQUE, name VARCHAR(20));
    CREATE TABLE person (id INT PRIMARY KEY, team INT, boss INT, age INT, nick VARCHAR(20), FOREIGN KEY (team) REFERENCES team (id));
    CREATE TABLE member (person INT, team INT, since INT, PRIMARY KEY (person, team, since));
    INSERT INTO team VALUES (1, 11, 'a'), (2, 12, 'b');
    INSERT INTO person VALUES (1, 1, 2, 30, '5'), (2, 2, NULL, 40, '6');
    INSERT INTO member VALUES (1, 1, 2020), (1, 1, 2021), (2, 1, 2022);";

const TEAM: &str = "[[table]]\nname = 'team'\nvertex = { label = 'Team' }\n";
const PERSON: &str = "[[table]]\nname = 'person'\nignore = ['age']\nvertex = { label = 'Person' }\n\
    edges = [{ label = 'in', columns = 'team', to = 'Team' }]\n";
const MEMBER: &str = "[[table]]\nname = 'member'\nedge = { label = 'member', source = { label = 'Person', columns = 'person' }, \
    target = { label = 'Team', columns = 'team' } }\n";

fn settings(server: &MariaDbServer, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url("test"), graph, mapping)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_mapping_stops_the_feed_until_all_rows_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", TABLES).unwrap();
    let all = format!("{TEAM}{PERSON}{MEMBER}");
    let with = |from: &str, to: &str| {
        let mapping = all.replacen(from, to, 1);
        assert_ne!(mapping, all, "{from}");
        mapping
    };
    let two = format!("{TEAM}{PERSON}");
    let filtered = with("name = 'team'\n", "name = 'team'\nwhere = 'id < 2'\n");
    let renamed = with("ignore = ['age']\n", "ignore = ['age']\nrename = { nick = 'called' }\n");
    // Before and after, and what the feed says. Without that it goes on.
    let cases = [
        (two.clone(), all.clone(), "table test.member is new in the mapping"),
        (all.clone(), two, "table test.member is no longer in the mapping"),
        (all.clone(), with("ignore = ['age']\n", ""), "column age was `ignored` and is nothing"),
        (all.clone(), with("['age']", "['age', 'nick']"), "column nick was nothing and is `ignored`"),
        (all.clone(), filtered.clone(), "where was nothing and is `id < 2`"),
        (filtered.clone(), all.clone(), "where was `id < 2` and is nothing"),
        (filtered.clone(), filtered.replace("id < 2", "id < 3"), "where was `id < 2` and is `id < 3`"),
        (all.clone(), all.replace("'Team'", "'Group'"), "has changed"),
        (all.clone(), with("label = 'in'", "label = 'works_in'"), "edges in by team"),
        (all.clone(), with("label = 'member',", "label = 'joined',"), "edge was"),
        (all.clone(), with("[{ label = 'in', columns = 'team', to = 'Team' }]", "[]"), "edges in by team"),
        (
            all.clone(),
            with("to = 'Team' }]", "to = 'Team' }, { label = 'boss', columns = 'boss', to = 'Person' }]"),
            "edges boss by boss was nothing",
        ),
        (all.clone(), renamed.clone(), "column nick was nothing and is `the property called`"),
        (renamed, all.clone(), "column nick was `the property called` and is nothing"),
        (
            all.clone(),
            with("ignore = ['age']\n", "ignore = ['age']\nkeep = ['team']\n"),
            "column team was nothing and is `kept`",
        ),
        (
            all.clone(),
            with("vertex = { label = 'Person' }", "types = { nick = 'int64' }\nvertex = { label = 'Person' }"),
            "column nick was nothing and is `of type int64`",
        ),
        (
            all.clone(),
            format!("{all}[[table]]\nname = 'team'\nwhere = 'id > 5'\nvertex = {{ label = 'Other' }}\n"),
            "had 1 entries in the mapping, and has 2",
        ),
        (all.clone(), with("columns = 'team' } }", "columns = 'team' }, key = [] }"), "with key"),
        (all.clone(), format!("{MEMBER}{PERSON}{TEAM}"), ""),
        (all.clone(), with("name = 'team'\n", "name = 'team'\non_error = 'dead-letter'\n"), ""),
    ];
    for (number, (before, after, why)) in cases.into_iter().enumerate() {
        let of = |name: &str, mapping: &str| settings(&server, &folder.path().join(format!("{number}{name}")), mapping);
        once(&of("", &before), RunOptions::default()).await.unwrap();
        let (changed, fresh) = (of("", &after), of("fresh", &after));
        let found = once(&changed, RunOptions::default()).await;
        if why.is_empty() {
            found.unwrap_or_else(|error| panic!("{number}: {error}"));
            continue;
        }
        let said = found.err().unwrap_or_else(|| panic!("{number}: the feed goes on without: {why}"));
        assert!(said.to_string().contains(why), "{number}: {said}");
        assert!(said.what_to_do().contains("--resnapshot"), "{number}: {}", said.what_to_do());
        server.sql("test", &format!("UPDATE team SET code = code + 100 WHERE id = {}", 1 + number % 2)).unwrap();
        let again = once(&changed, RunOptions::default()).await.err().expect("it stops at each start");
        assert_eq!(again.to_string(), said.to_string(), "{number}");
        once(&fresh, RunOptions::default()).await.unwrap();
        // A property keeps its type.
        if !why.contains("of type") {
            let options = RunOptions { resnapshot: true, ..RunOptions::default() };
            once(&changed, options).await.unwrap_or_else(|error| panic!("{number}: {why}: {error}"));
            let mut found = content(&changed).await;
            let expected = content(&fresh).await;
            // Nobody says that the property of a column that is no longer carried is not someone else's.
            for (name, properties) in &mut found.vertices {
                let expected = expected.vertices.get(name);
                properties.retain(|it, _| {
                    expected.is_some_and(|all| all.contains_key(it))
                        || !["nick", "called", "team", "boss"].contains(&it.as_str())
                });
            }
            assert!(found == expected, "{number}: {why}: graph | tables\n{}", found.difference(&expected));
            once(&changed, RunOptions::default()).await.unwrap_or_else(|error| panic!("{number}: {why}: {error}"));
        }
    }
    // Somebody may know that the graph is right.
    let of = |mapping: &str| settings(&server, &folder.path().join("accepted"), mapping);
    let feed = once(&of(&filtered), RunOptions::default()).await.unwrap();
    let position = feed.position().of_source.clone();
    drop(feed);
    let options = RunOptions { accepted: Some(position), ..RunOptions::default() };
    once(&of(&all), options).await.unwrap();
    once(&of(&all), RunOptions::default()).await.unwrap();
    assert!(!content(&of(&all)).await.vertices.contains_key("Team:2"));
}
