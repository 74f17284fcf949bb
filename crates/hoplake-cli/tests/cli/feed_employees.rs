//! The well-known sample of employees, in both databases: a mapping that is inferred as it is, a first copy, changes with cascades, and
//! a comparison of all rows.

use std::fs;

use hoplake_testkit::{MariaDbServer, PostgresServer, snb};
use serde_json::json;

use crate::hoplake::Shell;

const DATA: &str = "employees-10k";

/// Whatever the foreign keys do of themselves is part of it.
const CHANGES: &str = "
UPDATE salary SET amount = amount + 1000 WHERE to_date = '9999-01-01' AND emp_no < 11000;
DELETE FROM employee WHERE emp_no % 97 = 0;
UPDATE department SET dept_name = 'Humans' WHERE dept_no = 'd003';
DELETE FROM department WHERE dept_no = 'd009';
INSERT INTO employee VALUES (999001, '1990-01-01', 'Ada', 'Lovelace', 'F', '2020-01-01');
INSERT INTO dept_emp VALUES (999001, 'd005', '2020-01-01', '9999-01-01');
UPDATE title SET to_date = '2000-01-01' WHERE emp_no < 10100 AND to_date = '9999-01-01';
UPDATE title SET title = 'Sage' WHERE emp_no BETWEEN 10200 AND 10300;
";

/// What the tables have: employees, departments, titles, salaries, and who worked and led where.
const COUNTS: [u64; 6] = [10_000, 9, 14_782, 94_917, 11_051, 24];

fn follow(url: &str, sql: &dyn Fn(&str) -> String) {
    let shell = Shell::empty();
    let inferred = shell.run(&["feed", "infer", url, "--name", "hr", "--graph", "staff"]).ok().out;
    shell.write("feed.toml", &inferred);
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let count = |query: &str| shell.run(&["query", "staff", query]).ok().out.trim().parse::<u64>().unwrap();
    let counts = || {
        let of_vertices = ["Employee", "Department", "Title", "Salary"];
        let of_edges = ["dept_emp", "dept_manager"];
        let vertices = of_vertices.map(|label| count(&format!("g.V().hasLabel('{label}').count()")));
        let edges = of_edges.map(|label| count(&format!("g.E().hasLabel('{label}').count()")));
        [vertices[0], vertices[1], vertices[2], vertices[3], edges[0], edges[1]]
    };
    assert_eq!(counts(), COUNTS);
    let same = || {
        let compared = shell.run(&["feed", "reconcile", "feed.toml", "--json"]).ok().json().remove(0);
        assert_eq!(
            ["missing", "left_over", "different"].map(|it| compared[it].clone()),
            [json!(0), json!(0), json!(0)]
        );
        assert!(compared["rows"].as_u64().unwrap() >= counts().iter().sum());
    };
    same();
    sql(CHANGES);
    // What the graph does not have yet is read beside it.
    shell.run(&["feed", "reconcile", "feed.toml"]).ok();
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    assert!(counts()[0] < COUNTS[0] && counts()[1] == 8 && counts()[4] < COUNTS[4]);
    same();
}

#[test]
fn employees_of_mariadb_are_followed_as_inferred() {
    if !snb::available(DATA) {
        return;
    }
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql_file("", &snb::extract(DATA).join("mysql/dataset_large/employee.sql")).unwrap();
    follow(&server.url("employee"), &|statements| server.sql("employee", statements).unwrap());
}

#[test]
fn employees_of_postgresql_are_followed_as_inferred() {
    if !snb::available(DATA) {
        return;
    }
    let server = PostgresServer::start(&[]).unwrap();
    let folder = snb::extract(DATA).join("postgres/dataset_large");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let script: Vec<_> = lines(read("employee.sql"))
        .into_iter()
        .flat_map(|line| line.strip_prefix("\\i ").map_or(vec![line.clone()], |name| lines(read(name.trim()))))
        .filter(|line| !line.starts_with('\\'))
        .collect();
    server.sql("test", &script.join("\n")).unwrap();
    // Also the table in which triggers write what others change.
    server.sql("test", "CREATE PUBLICATION hoplake_hr FOR ALL TABLES").unwrap();
    follow(&server.url("test"), &|statements| server.sql("test", statements).unwrap());
}
