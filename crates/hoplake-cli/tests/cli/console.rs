//! The console, from a pipe and on a terminal.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::hoplake::{Run, Shell};

fn piped(shell: &Shell, arguments: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hoplake"))
        .arg("console")
        .args(arguments)
        .current_dir(shell.path().join("hoplake-quickstart"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Run::of(&child.wait_with_output().unwrap())
}

fn quickstart() -> Shell {
    let shell = Shell::empty();
    shell.run(&["quickstart"]).ok();
    shell
}

#[test]
fn queries_come_from_a_pipe() {
    let shell = quickstart();
    let run = piped(
        &shell,
        &["graph", "--bind", "code=\"AUS\""],
        "g.V().has('airport', 'code', code).values('city')\n\
         g.V().has('airport', 'code', 'AUS').\n  out('route').\n  has('country', within('MX',\n 'GB')).count()\n\
         :bind n=2\n:bind\n\
         g.V().has('airport', 'code', within('AUS', 'LHR')).order().by('code').project('code', 'city').by('code').by('city')\n\
         g.V().has('airport', 'code', code).out('route').order().by('code').values('code').limit(n)\n\
         :limit 1\ng.V().values('code')\n\
         :explain g.V().count();\n",
    );
    assert_eq!(run.err, "");
    let lines: Vec<&str> = run.out.lines().map(str::trim).collect();
    assert_eq!(lines[..4], ["Austin", "6", "code = \"AUS\"", "n = 2"]);
    assert_eq!((lines[4], lines[6], lines[7]), ("code   city", "AUS    Austin", "LHR    London"), "{lines:?}");
    assert_eq!(lines[8..10], ["ABQ", "AMA"]);
    assert!(lines[11..].join("\n").starts_with("plan\n"), "{lines:?}");
}

#[test]
fn mistakes_do_not_end_it_and_are_its_status() {
    let shell = quickstart();
    let input =
        "g.V().out(\n)\ng.V().program()\ng.addV('a')\n:nonsense\ng.V().limit(0).count()\n:quit\ng.V().nothing()\n";
    let run = piped(&shell, &["graph"], input);
    assert_eq!(run.out.lines().last(), Some("0"));
    for expected in
        ["`program` is not supported", "the query changes the graph", ":nonsense is not a command", "3 queries failed"]
    {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
    assert_eq!(run.status, 2);
}

#[test]
fn changes_are_a_version_when_they_are_committed() {
    let shell = quickstart();
    let input = "g.addV('airport').property(T.id, 99999).property('code', 'XXX')\n:refresh\n:rollback\n\
                 g.V('airport:99999').count()\n:commit\n\
                 g.addV('airport').property(T.id, 99998).property('code', 'YYY')\n:commit\n\
                 g.V('airport:99998').values('code')\n\
                 g.V('airport:99998').drop()\n";
    let run = piped(&shell, &["graph", "--commit"], input);
    let out: Vec<&str> = run.out.lines().collect();
    assert_eq!(out[1..], ["0", "v[99998]", "YYY"]);
    for expected in
        ["there are changes that are not committed", "nothing was changed", "version 2", "1 change were not committed"]
    {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
}

/// With an editor: completion, lines that belong together, history, and what each query took.
#[test]
fn a_person_types_on_a_terminal() {
    let shell = quickstart();
    let typed = |input: &str| {
        // It runs a command on a terminal of its own, and types what comes from standard input.
        let mut child = Command::new("script")
            .args(["-qefc", &format!("{} console graph", env!("CARGO_BIN_EXE_hoplake")), "/dev/null"])
            .current_dir(shell.path().join("hoplake-quickstart"))
            .env("XDG_STATE_HOME", shell.path().join("state"))
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let printed = typed("g.V().has('airp\t', 'code',\r'AUS').values('cit\t')\r:quit\r");
    assert!(printed.contains("version 1; :help shows the commands"), "{printed}");
    assert!(printed.contains("Austin") && printed.contains("1 result in"), "{printed}");
    let history = std::fs::read_to_string(shell.path().join("state/hoplake/console-history")).unwrap();
    assert!(history.contains("values('city')"), "{history}");
    // The arrow finds it again.
    let again = typed("\u{1b}[A\u{1b}[A\r:quit\r");
    assert!(again.contains("Austin"), "{again}");
}
