//! One test a page, with what its commands need.

use std::{fs, os::unix::fs::symlink};

use hoplake_testkit::{MariaDbServer, S3Server};

use super::{read, root, session::Session};

/// People who know each other, and what they are interested in.
const PEOPLE: &str = "\
~id,~label,firstName:String,lastName:String,gender:String,birthday:Date,name:String
933,Person,Ann,Ash,female,1985-05-12,
102,Person,Ben,Birch,male,1991-02-03,
1129,Person,Cid,Cedar,male,1979-11-30,
1,Person,Dee,Date,female,1988-08-08,
7,Tag,,,,,Graphs
8,Tag,,,,,Buckets
";
const FRIENDS: &str = "\
~from,~to,~label,creationDate:Date
933,1129,knows,2012-03-04
933,1,knows,2009-01-01
1129,102,knows,2013-05-06
102,7,hasInterest,
1,8,hasInterest,
";
const ROADS: &str = "~from,~to,~label,km:Double\n933,934,road,12.5\n934,935,road,7.25\n";
const TOWNS: &str = "~id,~label,name:String\n933,Town,Ulm\n934,Town,Aalen\n935,Town,Lorch\n";

const MARCH: &str = r#"{"op": "upsert_vertex", "label": "Person", "key": 5, "properties": {"name": "Eve", "born": {"date": "2001-02-03"}}}
{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 32}}
{"op": "upsert_edge", "label": "knows", "source": ["Person", 5], "target": ["Person", 1]}
"#;
const REJECTED: &str = r#"{"op": "upsert_vertex", "label": "Person", "key": 6, "properties": {"name": "Flo"}}
{"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 99]}
"#;

/// Settings of a feed that sets rows aside.
const NOTES: &str = r#"
graph = "notes"
source = { name = "hr", url = "mysql://feed@127.0.0.1:3306/hr", password_env = "HR_PASSWORD" }
table = [{ name = "note", vertex = { label = "Note" }, types = { body = "int64" }, on_error = "dead-letter" }]
"#;

/// A session with buckets on a real S3 server.
fn with_buckets(names: &[&str]) -> Session {
    let server = S3Server::start().unwrap();
    names.iter().for_each(|name| server.create_bucket(name).unwrap());
    let session = Session::new().with_env(server.env()).keeping(server);
    session.shell.write("social_network/people.csv", PEOPLE);
    session.shell.write("social_network/friends.csv", FRIENDS);
    session
}

/// A database as the page about feeds has it.
fn with_database(session: Session, address: &str) -> Session {
    let page = read("docs/feeding.md");
    let tables = page.split("```sql\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("", "CREATE DATABASE hr").unwrap();
    server.sql("hr", tables).unwrap();
    let client = format!("mariadb --no-defaults --host=127.0.0.1 --user=test --port={} hr", server.port());
    let session = session.replacing(address, format!("127.0.0.1:{}", server.port())).replacing("mariadb hr", client);
    // For those that end it.
    let process = server.process_id().unwrap().to_string();
    session.with_env([("HR_PASSWORD".into(), "secret".into()), ("DATABASE".into(), process)]).keeping(server)
}

/// A session whose paths below `/var/lib` are in its folder.
fn with_var_lib(session: Session) -> Session {
    let here = session.shell.path().join("var");
    fs::create_dir(&here).unwrap();
    let here = here.to_str().unwrap().to_owned();
    session.replacing("/var/lib", here)
}

/// A session in a folder like the root of the sources, on free ports.
fn with_ports(session: Session) -> Session {
    let session = session.with_ports([7480, 7481, 7490, 7491, 7600, 7601, 7602, 7610, 7611, 7612]);
    let address = |port| session.here(&format!("127.0.0.1:{port}"));
    let defaults = [("HOPLAKE_GRPC".to_owned(), address(7480)), ("HOPLAKE_HTTP".to_owned(), address(7481))];
    session.with_env(defaults)
}

#[test]
fn readme() {
    let session = with_var_lib(with_ports(with_database(with_buckets(&["my-bucket"]), "db:3306")));
    session.run("README.md", &read("README.md"));
}

#[test]
fn analytics() {
    let session = with_buckets(&["bucket"]);
    session.shell.write("roads/towns.csv", TOWNS);
    session.shell.write("roads/roads.csv", ROADS);
    session.run("docs/analytics.md", &read("docs/analytics.md"));
}

#[test]
fn changes() {
    let session = with_buckets(&["bucket"]);
    session.shell.write("social/people.csv", "~id,~label,name:String,age:Int\n1,Person,Ann,31\n2,Person,Ben,42\n");
    session.shell.write("social/friends.csv", "~from,~to,~label\n1,2,knows\n");
    session.shell.write("march.jsonl", MARCH);
    session.shell.write("refused.jsonl", REJECTED);
    session.run("docs/changes.md", &read("docs/changes.md"));
}

#[test]
fn errors() {
    with_buckets(&[]).run("docs/errors.md", &read("docs/errors.md"));
}

#[test]
fn exporting() {
    with_buckets(&["bucket"]).run("docs/exporting.md", &read("docs/exporting.md"));
}

#[test]
fn feeding() {
    let session = with_database(Session::new().with_ports([9464]), "127.0.0.1:3306");
    let database = session.here("127.0.0.1:3306");
    let session = session.replacing("db:3306", database);
    session.shell.write("notes.toml", &session.here(NOTES));
    session.run("docs/feeding.md", &read("docs/feeding.md"));
}

#[test]
fn gremlin() {
    on_quickstart("docs/gremlin.md");
}

#[test]
fn loading() {
    with_buckets(&["bucket"]).run("docs/loading.md", &read("docs/loading.md"));
}

#[test]
fn local() {
    with_var_lib(with_buckets(&["bucket"])).run("docs/local.md", &read("docs/local.md"));
}

#[test]
fn querying() {
    on_quickstart("docs/querying.md");
}

#[test]
fn serving() {
    let session = with_ports(Session::new());
    symlink(root().join("samples"), session.shell.path().join("samples")).unwrap();
    session.run("docs/serving.md", &read("docs/serving.md"));
}

/// Pages whose graph is that of quickstart, and which show everything that is printed.
fn on_quickstart(page: &str) {
    let session = Session::new().all_is_shown();
    session.shell.run(&["quickstart"]).ok();
    fs::rename(session.shell.path().join("hoplake-quickstart/graph"), session.shell.path().join("graph")).unwrap();
    session.run(page, &read(page));
}
