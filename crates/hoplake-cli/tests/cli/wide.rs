//! The peak of a load's process, as the system has it, where columns, labels, keys or tables take the memory and not rows.
//!
//! What a load counts are its own estimates; the system counts everything. So each input is loaded at several sizes, from one that is rejected
//! down to one that is loaded, and each process has to hold: the budget, and what a load of three rows takes.

use std::fmt::Write;

use crate::hoplake::{Run, Shell, measured};

const BUDGET: u64 = 64 << 20;

/// What a load may take beyond its budget and what a load of three rows takes: pages that the allocator keeps, and stacks of threads.
const SLACK: u64 = 32 << 20;

/// Runs `load` with a budget, and returns its peak with what it printed.
fn load(shell: &Shell, graph: &str, input: &[&str]) -> (u64, Run) {
    let budget = BUDGET.to_string();
    let args = [&["load", graph, "--memory", &budget, "--threads", "2"], input].concat();
    let (run, peak) = measured(shell.command(&args), "");
    (peak, run)
}

/// Loads an input at several sizes, the largest first: those that are too large are rejected with what to do, the last is loaded, and none
/// takes more than its budget.
fn holds(what: &str, sizes: &[usize], rejected: &str, write: impl Fn(&Shell, usize) -> Vec<&'static str>) {
    let shell = Shell::empty();
    shell.write("few.csv", "~id,~label,name\n1,P,a\n2,P,b\n3,P,c\n");
    let (least, run) = load(&shell, "few", &["--from", "few.csv"]);
    run.ok();
    let mut rejections = 0;
    for size in sizes {
        let input = write(&shell, *size);
        let (peak, run) = load(&shell, &format!("graph{size}"), &input);
        eprintln!("{what} {size}: peak {} MiB, least {} MiB, {}", peak >> 20, least >> 20, run.err);
        assert!(peak <= BUDGET + least + SLACK, "{what} {size}: {peak} bytes, and {least} of three rows: {}", run.err);
        match run.status {
            0 => {}
            _ => {
                assert!(run.status == 2 && run.err.contains(rejected), "{what} {size}: {}", run.err);
                rejections += 1;
            }
        }
    }
    assert_eq!(rejections, sizes.len() - 1, "{what}: all but the last are refused");
}

fn columns(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, column| {
        let _ = write!(text, ",column{column}");
        text
    })
}

#[test]
fn labels_with_many_columns_hold() {
    holds("labels of 200 columns", &[3_000, 100, 30], "memory budget", |shell, labels| {
        let mut text = format!("~id,~label{}\n", columns(200));
        for label in 0..labels {
            let _ = writeln!(text, "{label},L{label}{}", ",x".repeat(200));
        }
        shell.write("wide.csv", &text);
        vec!["--from", "wide.csv"]
    });
}

#[test]
fn a_row_of_many_columns_holds() {
    holds("columns", &[8_000, 1_000], "memory budget", |shell, count| {
        shell.write("wide.csv", &format!("~id,~label{}\n1,P{}\n", columns(count), ",x".repeat(count)));
        vec!["--from", "wide.csv"]
    });
}

#[test]
fn long_keys_hold() {
    holds("bytes of a key", &[4_000_000, 250_000], "memory budget", |shell, bytes| {
        let mut text = "~id,~label\n".to_owned();
        for key in 0..12_000_000 / bytes {
            let _ = writeln!(text, "{key}{},P", "x".repeat(bytes));
        }
        shell.write("keys.csv", &text);
        vec!["--from", "keys.csv"]
    });
}

#[test]
fn a_mapping_of_many_tables_holds() {
    holds("tables of a mapping", &[300_000, 8_000, 200], "memory budget", |shell, tables| {
        let mut text = String::new();
        for table in 0..tables {
            let _ = writeln!(text, "[[vertices]]\nfile = \"people.csv\"\nlabel = \"L{table}\"\nkey = \"id\"");
        }
        shell.write("people.csv", "id,name\n1,a\n2,b\n");
        shell.write("mapping.toml", &text);
        vec!["--mapping", "mapping.toml"]
    });
}
