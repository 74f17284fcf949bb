//! What a graph costs.

use crate::hoplake::{Run, Shell};

fn cost(args: &str) -> Run {
    Shell::empty().run(&format!("cost {args}").split(' ').collect::<Vec<_>>())
}

/// The line of a table that begins with these words.
fn line<'a>(run: &'a Run, words: &str) -> Vec<&'a str> {
    let line = run.out.lines().find(|line| line.trim_start().starts_with(words)).unwrap();
    line.trim_start().trim_start_matches(words).split_whitespace().collect()
}

#[test]
fn it_reproduces_the_studys_two_cases() {
    let run = cost("--size 5TiB --accesses-per-second 1000 --prices study").ok();
    assert_eq!(line(&run, "object storage"), ["1", "×", "c7gn.xlarge", "0.25", "0.17", "1.44", "1.86", "3,665/s"]);
    assert_eq!(
        line(&run, "instances with"),
        ["local", "disks", "1", "×", "m6id.24xlarge", "5.70", "0.00", "0.00", "5.70"]
    );
    let run = cost("--size 5TiB --accesses-per-second 100000 --prices study").ok();
    assert_eq!(line(&run, "object storage"), ["20", "×", "c7gn.xlarge", "5.00", "0.17", "144.00", "149.17", "3,665/s"]);
    assert_eq!(line(&run, "instances with")[2..], ["2", "×", "m6id.24xlarge", "11.40", "0.00", "0.00", "11.40"]);
}

#[test]
fn caching_and_joining_are_a_plan_of_their_own() {
    let args = "--size 5TB --accesses-per-second 1000 --hit-ratio 0.9 --accesses-per-request 4";
    let run = cost(&format!("{args} --json")).ok();
    let [report] = &run.json()[..] else { panic!("{}", run.out) };
    let plans: Vec<_> = report["plans"].as_array().unwrap().iter().map(|plan| plan["plan"].as_str().unwrap()).collect();
    assert_eq!(plans, ["object_storage", "object_storage_cached", "local_disks"]);
    let number = |plan: usize, name: &str| report["plans"][plan][name].as_f64().unwrap();
    assert_eq!((number(0, "requests_per_second"), number(1, "requests_per_second").round()), (1_000.0, 25.0));
    assert!((number(0, "requests_usd_per_hour") / number(1, "requests_usd_per_hour") - 40.0).abs() < 1e-9);
    assert_eq!(report["plans"][2]["instance"], "i3en.2xlarge");
    assert!(number(1, "usd_per_hour") < number(2, "usd_per_hour"));
    assert!(number(2, "usd_per_hour") < number(0, "usd_per_hour"));
    assert_eq!(report["plans"][1]["local_disks_cheaper_from_accesses_per_second"], serde_json::Value::Null);
    let run = cost(args).ok();
    assert!(line(&run, "… with caching and joining").ends_with(&["no", "rate"]), "{}", run.out);
    assert!(run.out.contains("prices: s3-standard, as of 2"), "{}", run.out);
}

#[test]
fn profiles_and_measured_rates_change_the_answer() {
    let usd = |args: &str| {
        let run = cost(&format!("--size 1TB --accesses-per-second 10000 --json {args}")).ok();
        let report = &run.json()[0];
        (report["plans"][0]["usd_per_hour"].as_f64().unwrap(), report["plans"][0]["instance_count"].as_u64().unwrap())
    };
    let (standard, instances) = usd("--profile s3-standard");
    assert_eq!(instances, 2);
    assert!(usd("--profile s3-express").0 < standard);
    assert_eq!(usd("--accesses-per-instance 1000").1, 10);
    assert_eq!(usd("--prices study").1, 2);
    let none = cost("--size 100TB --accesses-per-second 1").ok();
    assert!(
        line(&none, "instances with local disks").starts_with(&["none", "in", "the", "price", "table"]),
        "{}",
        none.out
    );
}

#[test]
fn a_plot_shows_each_plan_and_where_they_meet() {
    let shell = Shell::empty();
    let args = ["cost", "--size", "5TiB", "--accesses-per-second", "1000", "--prices", "study", "--hit-ratio", "0.9"];
    shell.run(&[&args[..], &["--plot", "cost.svg"]].concat()).ok();
    let svg = shell.read("cost.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for words in
        ["A graph of 5.5 TB", "instances with local disks", "90 % served by a cache", "disks cheaper from 3,665/s"]
    {
        assert!(svg.contains(words), "{words}");
    }
    assert_eq!(svg.matches("<circle").count(), 2, "one for each way to use the store");
}

#[test]
fn prices_come_from_files_too() {
    let shell = Shell::empty();
    let table = "as_of = \"today\"\nsource = \"my offer\"\ndisk_accesses_per_second_per_vcpu = 100\n
        [[instance]]\nname = \"mine\"\nvcpus = 4\nusd_per_hour = 1\nobject_accesses_per_second = 10\ndisk_gb = 1000\n";
    shell.write("mine.toml", table);
    let run = |args: &str| {
        shell.run(&format!("cost --size 1GB --accesses-per-second 25 {args}").split(' ').collect::<Vec<_>>())
    };
    let report = run("--prices mine.toml").ok();
    assert_eq!(line(&report, "object storage")[..3], ["3", "×", "mine"]);
    assert!(report.out.contains("as of today: my offer"), "{}", report.out);
    shell.write("broken.toml", &table.replace("usd_per_hour", "usd"));
    run("--prices broken.toml").fails(
        2,
        "broken.toml is not a price table: line 8: unknown field `usd`",
        "instances.toml",
    );
    run("--prices none.toml").fails(2, "none.toml", "instances.toml");
    run("--profiles mine.toml").fails(2, "mine.toml is not a file of stores", "profiles.toml");
    run("--profile tape").fails(2, "no profile \"tape\"", "s3-standard");
    for (args, words) in
        [("--hit-ratio 1.5", "from 0 to 1"), ("--accesses-per-request 0", "from 1 up"), ("--copies 0", "1..")]
    {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""));
        assert!(run.err.contains(words), "{}", run.err);
    }
}
