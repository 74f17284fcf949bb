//! Jobs compute what the facade does, within their bounds, and end when they should.

use std::{sync::Arc, time::Duration};

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Float64Type};
use hoplake::{
    Graph,
    compute::{Algorithm, ComputeOptions, Computed, Placement, Selection},
};
use hoplake_server::{JobSettings, LimitSettings, Settings, v1, v1::jobs_client::JobsClient};
use serde_json::{Value, json};
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt;

use crate::{
    answers::raw,
    running::{Running, all, graph, hop, named, settings},
    sample::{self, PEOPLE},
};

const JOBS: &str = "/v1/graphs/social/jobs";

/// PageRank that never ends by itself.
fn endless() -> Value {
    json!({"algorithm": "pagerank", "iterations": u64::MAX, "tolerance": 0})
}

impl Running {
    async fn jobs(&self) -> JobsClient<Channel> {
        JobsClient::new(self.channel().await)
    }

    /// Starts a job, and returns its id.
    async fn start_job(&self, path: &str, body: &Value) -> String {
        let (status, job) = self.try_ask("POST", path, body).await;
        assert_eq!(status, 202, "{body}: {job}");
        job["id"].as_str().unwrap().to_owned()
    }

    async fn job(&self, id: &str) -> Value {
        self.ask("GET", &format!("/v1/jobs/{id}"), &Value::Null).await
    }

    /// Waits until a job has a state; gives up after a minute.
    async fn until_job(&self, id: &str, state: &str) -> Value {
        let having = async {
            loop {
                let job = self.job(id).await;
                if job["state"] == state {
                    return job;
                }
                assert!(["waiting", "running"].contains(&job["state"].as_str().unwrap()), "{job} is never {state}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), having).await.unwrap_or_else(|_| panic!("{id} is never {state}"))
    }

    async fn cancel_job(&self, id: &str) -> Value {
        self.ask("DELETE", &format!("/v1/jobs/{id}"), &Value::Null).await
    }

    /// The result of a job, once it is done.
    async fn result(&self, body: &Value, query: &str) -> Value {
        let id = self.start_job(JOBS, body).await;
        self.until_job(&id, "done").await;
        self.ask("GET", &format!("/v1/jobs/{id}/result{query}"), &Value::Null).await
    }
}

/// Algorithms, as a request and as the facade has them.
fn cases() -> Vec<(Value, Algorithm, Selection, Placement)> {
    let along = |hop: &str| Selection { hop: hop.parse().unwrap(), ..Selection::default() };
    let named = |name: &str| Algorithm::named(name).unwrap();
    let from = |name: &str| Algorithm::from_start(name, "Person:1".parse().unwrap()).unwrap();
    let settings = |ranks: Algorithm| -> Result<Algorithm, hoplake::Error> {
        ranks.with("damping", 0.8)?.with("iterations", 7)?.with("tolerance", 0.0)
    };
    let sources = vec!["Person:1".parse().unwrap(), "Person:2".parse().unwrap()];
    vec![
        (
            json!({"algorithm": "pagerank", "edges": "out:knows", "damping": 0.8, "iterations": 7, "tolerance": 0}),
            settings(named("pagerank")).unwrap(),
            along("out:knows"),
            Placement::Memory,
        ),
        (
            json!({"algorithm": "pagerank", "edges": "out:knows", "from": ["Person:1", {"label": "Person", "key": 2}]}),
            Algorithm::from_starts("pagerank", sources).unwrap(),
            along("out:knows"),
            Placement::Memory,
        ),
        (
            json!({"algorithm": "components", "edges": "both:knows", "labels": ["Town"], "lists": "streamed"}),
            named("components"),
            Selection { labels: vec!["Town".into()], ..along("both:knows") },
            Placement::Streamed,
        ),
        (
            json!({"algorithm": "levels", "from": ["Person:1"]}),
            from("levels"),
            Selection::default(),
            Placement::Automatic,
        ),
        (
            json!({"algorithm": "paths", "edges": {"direction": "out", "labels": ["knows"]}, "from": ["Person:1"], "weight": "since"}),
            from("paths").with("weight", "since").unwrap(),
            along("out:knows"),
            Placement::Automatic,
        ),
        (
            json!({"algorithm": "closeness", "edges": "both:knows", "sample": 20, "seed": 3}),
            named("closeness").with("sample", 20).unwrap().with("seed", 3).unwrap(),
            along("both:knows"),
            Placement::Automatic,
        ),
        (
            json!({
                "algorithm": "components", "lists": "streamed",
                "edges": {"direction": "out", "labels": ["knows"], "condition": "since >= 2010"},
            }),
            named("components"),
            along("out:knows[since >= 2010]"),
            Placement::Streamed,
        ),
        (
            json!({"algorithm": "cores", "edges": "both:knows[since < 2015]"}),
            named("cores"),
            along("both:knows[since < 2015]"),
            Placement::Automatic,
        ),
        (json!({"algorithm": "degrees"}), named("degrees"), Selection::default(), Placement::Automatic),
        (
            json!({"algorithm": "leiden", "edges": "both:knows", "resolution": 1.5, "seed": 7, "weight": "since"}),
            named("leiden").with("resolution", 1.5).unwrap().with("seed", 7).unwrap().with("weight", "since").unwrap(),
            along("both:knows"),
            Placement::Automatic,
        ),
    ]
}

async fn computed(graph: &Graph, algorithm: &Algorithm, selection: Selection, placement: Placement) -> Computed {
    let options = ComputeOptions { selection, placement, ..ComputeOptions::default() };
    graph.query().compute(algorithm, &options, |_| ()).await.unwrap()
}

/// A column as JSON has it.
fn numbers(column: &dyn Array) -> Vec<Value> {
    let floats = arrow_cast::cast(column, &arrow_schema::DataType::Float64).unwrap();
    let floats = floats.as_primitive::<Float64Type>();
    let is_float = *column.data_type() == arrow_schema::DataType::Float64;
    let number = |value: f64| if is_float { json!(value) } else { json!(value as i64) };
    floats.iter().map(|value| value.map_or(Value::Null, number)).collect()
}

fn column_of<'a>(answer: &'a Value, name: &str) -> Vec<&'a Value> {
    answer["rows"].as_array().unwrap().iter().map(|row| &row[name]).collect()
}

#[tokio::test]
async fn values_equal_those_of_the_facade() {
    let folder = sample::in_memory("social").await;
    let graph = sample::embedded(&folder, "social").await;
    let server = Running::start(settings(&folder)).await;
    for (body, algorithm, selection, placement) in cases() {
        let expected = computed(&graph, &algorithm, selection, placement).await;
        let every: Vec<_> = expected.vertices().collect();
        let answer = server.result(&body, "").await;
        let ids: Vec<_> = every.iter().map(|vertex| json!(vertex.to_string())).collect();
        assert_eq!(column_of(&answer, "id"), ids.iter().collect::<Vec<_>>(), "{body}");
        let values = numbers(&expected.column(&every));
        assert_eq!(column_of(&answer, "value"), values.iter().collect::<Vec<_>>(), "{body}");
        assert!(values.iter().any(|value| *value != values[0]), "{body} tells vertices apart");
        assert_eq!((&answer["value"], &answer["vertices"]), (&json!(expected.name()), &json!(every.len())));

        let expected = Arc::new(expected);
        let top = graph.query().top(&expected, 30).await.unwrap();
        let keys = graph.query().keys_of(&top).await.unwrap();
        let answer = server.result(&body, "?top=30&select=name").await;
        let values = numbers(&expected.column(&top));
        assert_eq!(column_of(&answer, "value"), values.iter().collect::<Vec<_>>(), "{body}");
        for (row, key) in answer["rows"].as_array().unwrap().iter().zip(keys.iter()) {
            assert_eq!(row["key"].to_string().trim_matches('"'), key.to_string(), "{body}");
            assert!(row["properties"]["name"].is_string() && row["depth"].is_null(), "{row}");
        }
    }
    let id = server.start_job(JOBS, &json!({"algorithm": "triangles", "edges": "both:knows"})).await;
    let job = server.until_job(&id, "done").await;
    let options = ComputeOptions {
        selection: Selection { hop: "both:knows".parse().unwrap(), ..Selection::default() },
        ..ComputeOptions::default()
    };
    let triangles = graph.query().count_triangles(&options).await.unwrap();
    assert!(triangles > 0);
    assert_eq!((&job["triangles"], &job["has_result"]), (&json!(triangles), &json!(false)));
    assert_eq!(job["figures"], json!({"triangles": triangles as f64}));
    let (status, problem) = server.try_ask("GET", &format!("/v1/jobs/{id}/result"), &Value::Null).await;
    assert!(
        status == 409 && problem["detail"].as_str().unwrap().contains("has figures for the whole graph and no rows"),
        "{problem}"
    );
}

#[tokio::test]
async fn both_protocols_and_all_formats_have_the_same() {
    let folder = sample::in_memory("social").await;
    let graph_of = sample::embedded(&folder, "social").await;
    let server = Running::start(settings(&folder)).await;
    let mut client = server.jobs().await;
    let request = v1::StartJobRequest {
        graph: graph("social"),
        algorithm: v1::Algorithm::Levels.into(),
        edges: Some(hop("out")),
        from: vec![named("Person:1")],
        lists: v1::ListsPlacement::Streamed.into(),
        ..Default::default()
    };
    let job = client.start_job(request).await.unwrap().into_inner();
    let done = server.until_job(&job.id, "done").await;
    // Both see one job.
    let seen = client.get_job(v1::GetJobRequest { id: job.id.clone() }).await.unwrap().into_inner();
    assert_eq!((seen.state(), seen.algorithm(), seen.has_result), (v1::JobState::Done, v1::Algorithm::Levels, true));
    assert_eq!((json!(seen.superstep), json!(seen.streamed)), (done["superstep"].clone(), done["streamed"].clone()));
    assert!(seen.superstep.unwrap() > 1 && seen.cost.unwrap().bytes > 0 && seen.memory_bytes > 0, "{seen:?}");
    assert!(seen.started_unix_ms >= Some(seen.submitted_unix_ms) && seen.ended_unix_ms >= seen.started_unix_ms);
    let list = client.list_jobs(v1::ListJobsRequest {}).await.unwrap().into_inner();
    assert_eq!(list.jobs, [seen]);
    assert_eq!(server.ask("GET", "/v1/jobs", &Value::Null).await, json!([done]));

    let algorithm = Algorithm::from_start("levels", "Person:1".parse().unwrap()).unwrap();
    let expected = Arc::new(computed(&graph_of, &algorithm, Selection::default(), Placement::Streamed).await);
    for top in [None, Some(40)] {
        let vertices: Vec<_> = match top {
            None => expected.vertices().collect(),
            Some(top) => graph_of.query().top(&expected, top as usize).await.unwrap(),
        };
        let values = numbers(&expected.column(&vertices));
        let asked = v1::JobResultRequest { id: job.id.clone(), top, select: vec!["name".into()], ..Default::default() };
        let messages = all(client.job_result(asked.clone()).await).await;
        let rows = messages.iter().filter_map(|message| Some((message.rows.as_ref()?, message.values.as_ref()?)));
        let mut ids = Vec::new();
        let mut found = Vec::new();
        for (rows, column) in rows {
            ids.extend(rows.ids.clone());
            let Some(v1::column::Values::Int64s(levels)) = &column.values else { panic!("{column:?}") };
            let value =
                |(row, level): (u32, &i64)| if column.nulls.contains(&row) { Value::Null } else { json!(level) };
            found.extend((0u32..).zip(&levels.values).map(value));
            assert_eq!((rows.columns.len(), rows.ids.len()), (1, levels.values.len()));
        }
        assert_eq!((ids, found), (vertices.iter().map(|vertex| raw(*vertex)).collect::<Vec<_>>(), values.clone()));
        let last = messages.last().unwrap();
        assert_eq!((last.vertices, last.version), (PEOPLE + 10, 1));
        assert!(last.cost.is_some());
        // Arrow in messages of gRPC.
        let arrow = v1::JobResultRequest { format: v1::RowFormat::Arrow.into(), ..asked };
        let mut read = Vec::new();
        for rows in all(client.job_result(arrow).await).await.iter().filter_map(|message| message.rows.as_ref()) {
            let batches = arrow_ipc::reader::StreamReader::try_new(&rows.arrow[..], None).unwrap();
            read.extend(batches.flat_map(|batch| numbers(batch.unwrap().column_by_name("value").unwrap())));
        }
        assert_eq!(read, values);
        // The forms of HTTP.
        let path = format!("/v1/jobs/{}/result?{}", job.id, top.map(|top| format!("top={top}")).unwrap_or_default());
        let form = |accept: &'static str| server.request("GET", &path).header("accept", accept).send();
        let lines = form("application/x-ndjson").await.unwrap().text().await.unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (summary, rows) = lines.split_last().unwrap();
        assert_eq!(summary["value"], "level");
        assert_eq!(rows.iter().map(|row| row["value"].clone()).collect::<Vec<_>>(), values);
        let arrow = form("application/vnd.apache.arrow.stream").await.unwrap().bytes().await.unwrap();
        let batches = arrow_ipc::reader::StreamReader::try_new(&arrow[..], None).unwrap();
        let batches: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
        let read: Vec<_> = batches.iter().flat_map(|batch| numbers(batch.column_by_name("value").unwrap())).collect();
        assert_eq!(read, values);
    }
    // A part of all.
    let part = server.ask("GET", &format!("/v1/jobs/{}/result?skip=250&limit=9", job.id), &Value::Null).await;
    let every = server.ask("GET", &format!("/v1/jobs/{}/result", job.id), &Value::Null).await;
    assert_eq!(part["rows"].as_array().unwrap()[..], every["rows"].as_array().unwrap()[250..259]);
}

#[tokio::test]
async fn what_cannot_be_computed_is_rejected_at_once() {
    let folder = sample::in_memory("social").await;
    let limits = LimitSettings { batch_max: 3, results_max: 100, ..LimitSettings::default() };
    let server = Running::start(Settings { limits, ..settings(&folder) }).await;
    let many: Vec<_> = (1..=4).map(|person| format!("Person:{person}")).collect();
    let deep = "[".repeat(10_000);
    let cases = [
        (json!({}), 400, "missing field `algorithm`"),
        (json!({"algorithm": "sort"}), 400, "algorithm"),
        (json!({"algorithm": "pagerank", "edge": "out"}), 400, "unknown field `edge`"),
        (json!({"algorithm": "pagerank", "iterations": -1}), 400, "iterations: write a whole number, 0 or more"),
        (json!({"algorithm": "pagerank", "iterations": 0}), 400, "iterations is 0"),
        (json!({"algorithm": "pagerank", "iterations": "7"}), 400, "iterations: write a whole number"),
        (json!({"algorithm": "pagerank", "tolerance": "NaN"}), 400, "tolerance: write"),
        (json!({"algorithm": "pagerank", "tolerance": -0.5}), 400, "tolerance is -0.5"),
        (json!({"algorithm": "pagerank", "damping": 1.5}), 400, "damping is 1.5"),
        (json!({"algorithm": "pagerank", "edges": "up:knows"}), 400, "is not a valid hop"),
        (json!({"algorithm": "pagerank", "edges": "out:knows[nothing>2000]"}), 404, "nothing"),
        (json!({"algorithm": "pagerank", "edges": "both:knows[vertex.name is null]"}), 400, "needs a direction"),
        (json!({"algorithm": "pagerank", "edges": "out:likes"}), 404, "no edge label"),
        (json!({"algorithm": "pagerank", "labels": ["Planet"]}), 404, "no vertex label"),
        (json!({"algorithm": "pagerank", "labels": [["Planet"]]}), 400, "labels[0]"),
        (json!({"algorithm": "pagerank", "version": 9}), 404, "version 9"),
        (json!({"algorithm": "pagerank", "from": many}), 400, "may name 3"),
        (json!({"algorithm": "pagerank", "from": ["Person:999"]}), 404, "no vertex Person:999"),
        (json!({"algorithm": "pagerank", "from": [{"id": "7:1"}]}), 404, "no vertex with id 7:1"),
        (json!({"algorithm": "components", "weight": "since"}), 400, "weight has no effect on components"),
        (json!({"algorithm": "pagerank", "limits": {"vertices_max": 9}}), 400, "limits.vertices_max has no effect"),
        (json!({"algorithm": "levels"}), 400, "levels needs one vertex in from, and has 0"),
        (json!({"algorithm": "closeness", "seed": 3}), 400, "seed has no effect on closeness without sample"),
        (json!({"algorithm": "closeness", "sample": 0}), 400, "sample is 0"),
        (json!({"algorithm": "closeness", "lists": "streamed"}), 400, "cannot be streamed"),
        (json!({"algorithm": "triangles", "lists": "streamed"}), 400, "cannot be streamed"),
        (json!({"algorithm": "degrees", "limits": {"memory_bytes_max": 5_000}}), 422, "and this job may take 5000"),
        (json!({"algorithm": "pagerank", "limits": {"memory_bytes_max": 5_000}}), 422, "takes at least"),
    ];
    for (body, status, sentence) in cases {
        let (found, problem) = server.try_ask("POST", JOBS, &body).await;
        let says = problem["detail"].as_str().is_some_and(|detail| detail.contains(sentence));
        assert!(found == status && says, "{body}: {problem}");
    }
    for text in [format!("{{\"algorithm\": {deep}"), format!("{{\"from\": {deep}"), "{\"tolerance\": 1e999}".into()] {
        let answer = server.request("POST", JOBS).body(text).send().await.unwrap();
        assert_eq!(answer.status(), 400);
    }
    assert_eq!(server.ask("GET", "/v1/jobs", &Value::Null).await, json!([]), "none of them is a job");

    let mut client = server.jobs().await;
    let pagerank = || v1::StartJobRequest {
        graph: graph("social"),
        algorithm: v1::Algorithm::Pagerank.into(),
        ..Default::default()
    };
    let wrong = [
        (v1::StartJobRequest { tolerance: Some(f64::NAN), ..pagerank() }, "tolerance is NaN"),
        (v1::StartJobRequest { damping: Some(f64::NAN), ..pagerank() }, "damping is NaN"),
        (v1::StartJobRequest { tolerance: Some(f64::INFINITY), ..pagerank() }, "tolerance is inf"),
        (v1::StartJobRequest { algorithm: 0, ..pagerank() }, "0 is not an algorithm"),
        (v1::StartJobRequest { algorithm: 77, ..pagerank() }, "77 is not an algorithm"),
        (v1::StartJobRequest { lists: 9, ..pagerank() }, "9 is not a place of lists"),
        (v1::StartJobRequest { graph: None, ..pagerank() }, "field graph is missing"),
    ];
    for (request, sentence) in wrong {
        let status = client.start_job(request).await.unwrap_err();
        assert!(status.code() == Code::InvalidArgument && status.message().contains(sentence), "{status}");
    }

    // Of ids of others, of none, and of a result.
    let id = server.start_job(JOBS, &json!({"algorithm": "degrees"})).await;
    server.until_job(&id, "done").await;
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let result = |query: &str| format!("/v1/jobs/{id}/result?{query}");
    for (method, path, status, sentence) in [
        ("GET", format!("/v1/jobs/{unknown}"), 404, "start it again"),
        ("DELETE", format!("/v1/jobs/{unknown}"), 404, "lives in one server"),
        ("GET", format!("/v1/jobs/{unknown}/result"), 404, "no job"),
        ("GET", result("tpo=3"), 400, "unknown field `tpo`"),
        ("GET", result("top=-3"), 400, "the query of the URL"),
        ("GET", result("top=3&skip=1"), 400, "leave one of them out"),
        ("GET", result("select=nothing&top=3"), 404, "nothing"),
        ("GET", result(""), 422, "266 rows, more than the 100"),
        ("GET", result("top=101"), 422, "101 rows, more than the 100"),
    ] {
        let (found, problem) = server.try_ask(method, &path, &Value::Null).await;
        let says = problem["detail"].as_str().is_some_and(|detail| detail.contains(sentence));
        assert!(found == status && says, "{path}: {problem}");
    }
    assert_eq!(server.ask("GET", &result("limit=100"), &Value::Null).await["rows"].as_array().unwrap().len(), 100);
    assert_eq!(server.ask("GET", &result("top=0"), &Value::Null).await["rows"], json!([]));
    assert_eq!(server.ask("GET", &result("skip=18446744073709551615"), &Value::Null).await["rows"], json!([]));
    let status = client.get_job(v1::GetJobRequest { id: unknown.into() }).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn jobs_wait_for_their_turn_and_can_be_cancelled() {
    let (held, opener) = sample::held().await;
    let jobs = JobSettings { running_max: 1, waiting_max: 1, ..JobSettings::default() };
    let server = Running::start_with(Settings { jobs, ..settings("memory://held") }, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold();
    let path = "/v1/graphs/g/jobs";
    let body = json!({"algorithm": "degrees"});
    let answer = server.request("POST", path).json(&body).send().await.unwrap();
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let first: Value = answer.json().await.unwrap();
    let first = first["id"].as_str().unwrap();
    assert_eq!(location, format!("/v1/jobs/{first}"));
    server.until_job(first, "running").await;
    held.until_waiting(1).await;
    let second = server.start_job(path, &body).await;
    assert_eq!(server.job(&second).await["state"], "waiting");
    server.until_metric("hoplake_jobs_running", 1.0).await;
    server.until_metric("hoplake_jobs_waiting", 1.0).await;
    let answer = server.request("POST", path).json(&body).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let problem: Value = answer.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("1 jobs run and 1 wait"), "{problem}");
    // Neither has a result.
    for (id, why) in [(first, "still runs"), (&second, "waits for its turn")] {
        let (status, problem) = server.try_ask("GET", &format!("/v1/jobs/{id}/result"), &Value::Null).await;
        assert_eq!((status, &problem["reason"]), (409, &json!("NO_RESULT")));
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
    let mut client = server.jobs().await;
    let status =
        client.job_result(v1::JobResultRequest { id: second.clone(), ..Default::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.get_details_error_info().unwrap().reason, "NO_RESULT");
    // The first is cancelled while it reads, which ends its reads and lets the second begin; the second before it is done.
    assert_eq!(server.cancel_job(first).await["state"], "cancelled");
    server.until_job(&second, "running").await;
    let third = server.start_job(path, &body).await;
    let fourth = client.cancel_job(v1::CancelJobRequest { id: third.clone() }).await.unwrap().into_inner();
    assert_eq!(fourth.state(), v1::JobState::Cancelled);
    // A second time changes nothing.
    assert_eq!(server.cancel_job(&third).await, server.job(&third).await);
    assert_eq!(server.job(&third).await["started_unix_ms"], Value::Null);
    held.release();
    let done = server.until_job(&second, "done").await;
    assert!(done["has_result"] == true && done["memory_bytes"].as_u64().unwrap() >= PEOPLE * 8, "{done}");
    let (status, problem) = server.try_ask("GET", &format!("/v1/jobs/{third}/result"), &Value::Null).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("was cancelled"), "{problem}");
    for (state, jobs) in [("cancelled", 2.0), ("done", 1.0)] {
        assert_eq!(server.metric(&format!("hoplake_jobs_ended_total{{state=\"{state}\"}}")).await, jobs);
        assert_eq!(server.metric(&format!("hoplake_job_seconds_count{{state=\"{state}\"}}")).await, jobs);
    }
}

/// A kernel sees that its job was cancelled; until then, it has the only thread.
#[tokio::test]
async fn a_kernel_ends_with_its_job() {
    let folder = sample::in_memory("social").await;
    let jobs = JobSettings { threads: 1, ..JobSettings::default() };
    let server = Running::start(Settings { jobs, ..settings(&folder) }).await;
    let first = server.start_job(JOBS, &endless()).await;
    server.until_job(&first, "running").await;
    // Long enough for the kernel to have begun, most of the time: its lists are in memory.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.cancel_job(&first).await["state"], "cancelled");
    let next = server.start_job(JOBS, &json!({"algorithm": "degrees"})).await;
    server.until_job(&next, "done").await;
    // At its own limit of time, too; and the memory of both comes back.
    let late = json!({"algorithm": "pagerank", "iterations": u64::MAX, "tolerance": 0, "limits": {"time_ms": 100}});
    let late = server.start_job(JOBS, &late).await;
    let late = server.until_job(&late, "failed").await;
    assert_eq!(late["failure"]["reason"], "TIME", "{late}");
    assert!(late["failure"]["hint"].as_str().unwrap().contains("more time"), "{late}");
    assert!(late["failure"]["detail"].as_str().unwrap().contains("at its limit of time"), "{late}");
    let (status, problem) =
        server.try_ask("GET", &format!("/v1/jobs/{}/result", late["id"].as_str().unwrap()), &Value::Null).await;
    assert!(status == 504 && problem["detail"].as_str().unwrap().contains("failed: the job was ended"), "{problem}");
    // Supersteps show how far a job has come.
    let streamed = json!({"algorithm": "pagerank", "iterations": u64::MAX, "tolerance": 0, "lists": "streamed"});
    let streamed = server.start_job(JOBS, &streamed).await;
    let seen = async {
        loop {
            let job = server.job(&streamed).await;
            if job["superstep"].as_u64().is_some_and(|superstep| superstep > 3) {
                return job;
            }
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
    assert!(seen["residual"].is_f64() && seen["cost"]["requests"].as_u64().unwrap() > 3, "{seen}");
    assert!(seen["memory_bytes"].as_u64().unwrap() > 0 && seen["changed"].is_u64(), "{seen}");
    server.cancel_job(&streamed).await;
    server.cancel_job(&next).await;
    server.until_metric("hoplake_jobs_running", 0.0).await;
    // What the list of jobs takes stays: four of them.
    server.until_metric("hoplake_memory_bytes", f64::from(4 << 14)).await;
}

#[tokio::test]
async fn results_leave_when_their_time_or_their_room_is_over() {
    let folder = sample::in_memory("social").await;
    // Room for one result: 266 vertices, 8 bytes each.
    let jobs = JobSettings { kept_bytes_max: 3_000, kept_max: 2, ..JobSettings::default() };
    let server = Running::start(Settings { jobs, ..settings(&folder) }).await;
    let body = json!({"algorithm": "degrees"});
    let first = server.start_job(JOBS, &body).await;
    assert_eq!(server.until_job(&first, "done").await["has_result"], true);
    let second = server.start_job(JOBS, &body).await;
    assert_eq!(server.until_job(&second, "done").await["has_result"], true);
    assert_eq!(server.job(&first).await["has_result"], false);
    let (status, problem) = server.try_ask("GET", &format!("/v1/jobs/{first}/result"), &Value::Null).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("was dropped"), "{problem}");
    let third = server.start_job(JOBS, &body).await;
    server.until_job(&third, "done").await;
    let (status, _) = server.try_ask("GET", &format!("/v1/jobs/{first}"), &Value::Null).await;
    assert_eq!(status, 404);
    assert_eq!(server.ask("GET", "/v1/jobs", &Value::Null).await.as_array().unwrap().len(), 2);
    // A result that has no room at all is rejected before anything is read.
    let jobs = JobSettings { kept_bytes_max: 2_000, kept_ms: 30, ..JobSettings::default() };
    let server = Running::start(Settings { jobs, ..settings(&folder) }).await;
    let (status, problem) = server.try_ask("POST", JOBS, &body).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("for its result"), "{problem}");
    let towns = json!({"algorithm": "triangles", "edges": "both:knows"});
    let (status, _) = server.try_ask("POST", JOBS, &towns).await;
    assert_eq!(status, 202);
    let gone = async {
        while server.ask("GET", "/v1/jobs", &Value::Null).await != json!([]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("an old job is forgotten");
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}

#[tokio::test]
async fn a_result_that_is_dropped_is_still_read_to_its_end() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    let id = server.start_job("/v1/graphs/g/jobs", &json!({"algorithm": "degrees"})).await;
    server.until_job(&id, "done").await;
    held.hold();
    let reading = tokio::spawn(server.request("GET", &format!("/v1/jobs/{id}/result?select=name")).send());
    held.until_waiting(1).await;
    assert_eq!(server.cancel_job(&id).await["has_result"], false);
    held.release();
    let answer = reading.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json::<Value>().await.unwrap()["rows"].as_array().unwrap().len() as u64, PEOPLE + 10);
    // What is left is the job itself.
    server.until_metric("hoplake_memory_bytes", f64::from(1 << 14)).await;
}

#[tokio::test]
async fn jobs_end_with_the_server() {
    let folder = sample::in_memory("social").await;
    let mut server = Running::start(Settings { notice_ms: 400, ..settings(&folder) }).await;
    let first = server.start_job(JOBS, &endless()).await;
    server.until_job(&first, "running").await;
    let second = server.start_job(JOBS, &endless()).await;
    server.stop();
    // Within the notice, connections are still taken.
    for id in [&first, &second] {
        server.until_job(id, "cancelled").await;
    }
    let (status, problem) = server.try_ask("POST", JOBS, &endless()).await;
    assert_eq!((status, &problem["reason"]), (503, &json!("SHUTTING_DOWN")));
    tokio::time::timeout(Duration::from_secs(60), server.ended()).await.expect("no job keeps the server");
}

#[tokio::test]
async fn jobs_end_with_a_server_that_is_dropped() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let id = server.start_job(JOBS, &endless()).await;
    server.until_job(&id, "running").await;
    server.abort();
    server.until_job(&id, "cancelled").await;
}

#[tokio::test]
async fn without_the_token_nothing_is_known_of_jobs() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { token: Some("s3cret".into()), ..settings(&folder) }).await;
    let started = server.request("POST", JOBS).bearer_auth("s3cret").json(&json!({"algorithm": "degrees"}));
    let job: Value = started.send().await.unwrap().json().await.unwrap();
    let id = job["id"].as_str().unwrap();
    for (method, path) in [
        ("POST", JOBS.to_owned()),
        ("GET", "/v1/jobs".into()),
        ("GET", format!("/v1/jobs/{id}")),
        ("GET", format!("/v1/jobs/{id}/result")),
        ("GET", format!("/v1/jobs/{id}/result?wrong=1")),
        ("DELETE", format!("/v1/jobs/{id}")),
        ("DELETE", "/v1/jobs/unknown".into()),
    ] {
        let (status, problem) = server.try_ask(method, &path, &json!({"algorithm": "degrees"})).await;
        assert_eq!((status, &problem["reason"]), (401, &json!("UNAUTHENTICATED")), "{method} {path}");
    }
    let status = server.jobs().await.list_jobs(v1::ListJobsRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
}
