//! Loads from where data is: a bucket, a web server, standard input.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use hoplake_testkit::S3Server;

use crate::hoplake::{EDGES, PEOPLE, Run, Shell};

#[test]
fn a_bucket_is_exported_to_and_loaded_from() {
    let server = S3Server::start().unwrap();
    let shell = Shell::with_graph();
    let run = |args: &[&str]| Run::of(&shell.command(args).envs(server.env()).output().unwrap());
    let to = server.url("out");
    run(&["export", "graph", "--to", &to, "--format", "gremlin"]).ok();
    run(&["export", "graph", "--to", &to, "--format", "gremlin"]).fails(4, "is not empty", "--overwrite");
    let mapping = format!("{to}/mapping.toml");
    let report = run(&["load", "by-mapping", "--mapping", &mapping, "--json"]).ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    let scan =
        |graph: &str| shell.run(&["scan", graph, "--select", "*", "--order-by", "~key", "--label", "Person"]).ok().out;
    assert_eq!(scan("graph"), scan("by-mapping"));
    let [vertices, edges] = ["vertices/*.csv", "edges"].map(|part| format!("{to}/{part}"));
    let report = run(&["load", "by-name", "--from", &vertices, "--from", &edges, "--json"]).ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    let none = server.url("none.csv");
    run(&["load", "new", "--from", &none]).fails(3, &format!("there is nothing at {none}"), "check that it exists");
    // The hint is about the store of the input, and the graph is in a folder.
    let without = shell.command(&["load", "new", "--from", &none]).env_remove("AWS_ACCESS_KEY_ID").output().unwrap();
    Run::of(&without).fails(5, "there are no credentials", "set AWS_ACCESS_KEY_ID");
}

#[test]
fn standard_input_is_loaded() {
    let shell = Shell::empty();
    shell.write("people.csv", PEOPLE);
    shell.write("edges.csv", EDGES);
    let load = |args: &[&str], file: &str| {
        let stdin = File::open(shell.path().join(file)).unwrap();
        Run::of(&shell.command(args).stdin(stdin).output().unwrap())
    };
    let report = load(&["load", "a", "--from", "-", "edges.csv", "--json"], "people.csv").ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    shell.write("map.toml", "[[vertices]]\nfile = \"-\"\nlabel = \"P\"\nkey = \"~id\"\nignore = [\"~label\"]\n");
    let report = load(&["load", "b", "--mapping", "map.toml", "--json"], "people.csv").ok().json().remove(0);
    assert_eq!(report["vertices"], 5);
    shell.write("bad.csv", &PEOPLE.replace("31", "old"));
    load(&["load", "c", "--from", "-"], "bad.csv").fails(2, "standard input, line 2, column age:Int", "--bad-rows");
    // A file that is called so is another one.
    shell.write("stdin.csv", EDGES);
    let report = load(&["load", "d", "--from", "-", "stdin.csv", "--json"], "people.csv").ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    let bound = ["load", "e", "--from", "-", "--copied-bytes-max", "20"];
    load(&bound, "people.csv").fails(2, "more bytes than copied_bytes_max", "");
    shell.write("standard input", EDGES);
    load(&["load", "e", "--from", "-", "standard input"], "people.csv").fails(2, "two inputs are called", "");
}

/// People at the web server, and edges in a folder.
const MAPPING: &str = r#"
[[vertices]]
file = "people.csv"
label = "Person"
key = "~id"
ignore_others = true

[[edges]]
file = "here.csv"
label = "knows"
source = "~from"
source_label = "Person"
target = "~to"
target_label = "Person"
ignore_others = true
"#;

/// A row whose age is not a number.
const BAD: &str = "~id,age:Int\n1,old\n2,3\n";

/// A web server that answers as paths say. Returns its address.
fn web_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            thread::spawn(move || {
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                let headers: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                let is_told = headers.iter().any(|line| line.to_ascii_lowercase().starts_with("referer:"));
                let head =
                    |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let path = request.split(' ').nth(1).unwrap();
                let text = match path.split('?').next().unwrap() {
                    // Would tell this page the query of the one before.
                    _ if is_told => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(),
                    "/moved.csv" => {
                        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n";
                        format!("{head}Location: /people.csv\r\n\r\n")
                    }
                    "/map.toml" => head(MAPPING.len()) + MAPPING,
                    "/bad.toml" => head(3) + "[[x",
                    "/bad.csv" => head(BAD.len()) + BAD,
                    "/people.csv" | "/people.parquet" => head(PEOPLE.len()) + PEOPLE,
                    "/edges.csv" => head(EDGES.len()) + EDGES,
                    // Ends before what it announced.
                    "/short.csv" | "/stall.csv" => head(PEOPLE.len() + 1) + PEOPLE,
                    "/broken.csv" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n~id,".to_owned(),
                    "/busy.csv" => {
                        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                    }
                    _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                };
                connection.write_all(text.as_bytes()).unwrap();
                if path == "/stall.csv" {
                    thread::sleep(Duration::from_secs(60));
                }
            });
        }
    });
    address
}

#[test]
fn a_web_server_is_loaded_from_and_not_trusted() {
    let shell = Shell::empty();
    let server = web_server();
    let at = |path: &str| format!("{server}/{path}");
    let args = ["load", "a", "--from", &at("people.csv?token=secret"), &at("edges.csv"), "--json"];
    let report = shell.run(&args).ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    for (path, status, error) in [
        ("short.csv?token=secret", 5, "could not read"),
        ("broken.csv", 5, "could not read"),
        ("stall.csv", 5, "does not answer in time"),
        ("busy.csv", 5, "its server answers 503"),
        ("none.csv", 3, "there is no"),
    ] {
        let run = shell.run(&["load", "b", "--from", &at(path), "--web-timeout", "500ms"]);
        run.fails(status, error, "");
        assert!(run.err.contains(path.split('?').next().unwrap()) && !run.err.contains("secret"), "{}", run.err);
    }
    shell.run(&["info", "b"]).fails(3, "there is no graph", "");
    let bound = PEOPLE.len().to_string();
    let both = ["load", "b", "--from", &at("people.csv"), &at("edges.csv"), "--copied-bytes-max", &bound];
    shell.run(&both).fails(2, "more bytes than copied_bytes_max", "");
    shell.run(&[&both[..4], &both[5..]].concat()).ok();
    let moved = ["load", "c", "--from", &at("moved.csv?token=secret"), &at("edges.csv"), "--json"];
    assert_eq!(shell.run(&moved).ok().json().remove(0)["edges"], 6);
}

/// An input with a query is called by its name without it, wherever that is shown or written, and is of the kind that its name says.
#[test]
fn a_query_is_not_part_of_a_name() {
    let shell = Shell::empty();
    let server = web_server();
    let at = |path: &str| format!("{server}/{path}");
    // The second would take the place of the first.
    let [one, other] = ["part=1&token=secret", "part=2&token=secret"].map(|query| at(&format!("people.csv?{query}")));
    for other in [other, at("people.csv")] {
        for [one, other] in [[&one, &other], [&other, &one]] {
            let run = shell.run(&["load", "a", "--from", one, other]);
            run.fails(2, &format!("two inputs are called {}", at("people.csv")), "");
            assert!(!run.err.contains("secret"), "{}", run.err);
        }
    }
    let people = "[[vertices]]\nfile = \"FILE\"\nlabel = \"P\"\nkey = \"~id\"\n\n[vertices.properties]\n\"age:Int\" = \"int64\"\n";
    shell.write("map.toml", &people.replace("FILE", &at("bad.csv?token=secret")));
    let run = shell.run(&["load", "b", "--mapping", "map.toml"]);
    run.fails(2, &format!("{}, line 2, column age:Int", at("bad.csv")), "");
    assert!(!run.err.contains("secret"), "{}", run.err);
    shell.run(&["load", "b", "--mapping", "map.toml", "--bad-rows", "skip"]).ok();
    let rejects = shell.read("rejects.csv");
    assert!(rejects.contains(&at("bad.csv,2,age:Int,old,")) && !rejects.contains("secret"), "{rejects}");
    // It is Parquet by its name, and not by what it has.
    shell.write("map.toml", &people.replace("FILE", &at("people.parquet?token=secret")));
    let run = shell.run(&["load", "c", "--mapping", "map.toml"]);
    run.fails(2, &at("people.parquet"), "");
    assert!(run.err.contains("Parquet") && !run.err.contains("secret"), "{}", run.err);
    let run = shell.run(&["load", "c", "--mapping", &at("bad.toml?token=secret")]);
    // Of several lines.
    assert!(
        run.err.starts_with(&format!("error: {}: TOML", at("bad.toml"))) && !run.err.contains("secret"),
        "{}",
        run.err
    );
    assert_eq!(run.status, 2);
}

/// What a mapping at a web server names is next to it, or in a folder that is given.
#[test]
fn a_mapping_of_a_web_server_names_files_here_and_there() {
    let shell = Shell::empty();
    shell.write("here/here.csv", EDGES);
    let mapping = format!("{}/map.toml?token=a/b", web_server());
    let report = shell.run(&["load", "a", "--mapping", &mapping, "--from", "here", "--json"]).ok().json().remove(0);
    assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()));
    shell.run(&["load", "b", "--mapping", &mapping]).fails(
        2,
        "map.toml: names the file here.csv, which is neither next to the mapping nor in the given folders",
        "",
    );
}
