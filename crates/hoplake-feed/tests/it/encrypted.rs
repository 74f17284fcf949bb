//! TLS to a real PostgreSQL that takes nothing else, and to a real Kafka, with certificates that are made here.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
    sync::Arc,
};

use hoplake::{PropertyType, ScalarType};
use hoplake_feed::{
    BeforeImages, Catalog, Column, Feed, FeedErrorKind, RunOptions, Settings, Table, TableName, check,
    source::CatalogFile,
};
use hoplake_testkit::{KafkaKeys, KafkaServer, PostgresServer};

use crate::{following::caught_up, model::Model};

fn openssl(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(arguments.split(' '));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// An authority, another one, and certificates of the first: for the name `localhost`, and for a client.
fn certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for name in ["ca", "other"] {
        openssl(folder, &format!("req -x509 {key} -days 2 -keyout {name}.key -out {name}.pem -subj /CN={name}"));
    }
    for name in ["server", "client"] {
        let names = "-addext subjectAltName=DNS:localhost";
        openssl(folder, &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name} {names}"));
        let signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy";
        openssl(folder, &format!("x509 -req -in {name}.csr {signing} -out {name}.pem"));
    }
    fs::set_permissions(folder.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let hba = "hostssl all all 127.0.0.1/32 scram-sha-256\n".to_owned();
    fs::write(folder.join("hba.conf"), format!("hostssl all postgres 127.0.0.1/32 trust\n{hba}")).unwrap();
    // As root, the server runs as another user, who reads its own key alone.
    if fs::metadata(folder).unwrap().uid() == 0 {
        for entry in fs::read_dir(folder).unwrap() {
            chown(entry.unwrap().path(), Some(65_534), Some(65_534)).unwrap();
        }
        chown(folder, Some(65_534), Some(65_534)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_followed_through_tls_and_other_servers_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    fs::create_dir(&keys).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    certificates(&keys);
    let at = |name: &str| keys.join(name).display().to_string();
    let options = [
        "fsync=off".to_owned(),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", at("server.pem")),
        format!("ssl_key_file={}", at("server.key")),
        format!("hba_file={}", at("hba.conf")),
    ];
    let server = PostgresServer::start(&options.each_ref().map(String::as_str)).unwrap();
    server
        .sql("test", "CREATE TABLE note (id int PRIMARY KEY, body text); CREATE PUBLICATION hoplake_hr FOR TABLE note; INSERT INTO note VALUES (1, 'a')")
        .unwrap();
    let settings = |host: &str, query: &str| {
        let graph = folder.path().join("graph");
        let port = server.port();
        let url = format!("postgres://feed:secret@{host}:{port}/test{query}");
        let entry = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
        Settings::parse(&format!("graph = {graph:?}\n[source]\nname = 'hr'\nurl = '{url}'\n{entry}")).unwrap()
    };
    let ca = at("ca.pem");
    let other = at("other.pem");
    let whole = settings("localhost", &format!("?sslmode=verify-full&sslrootcert={ca}"));
    drop(caught_up(&whole).await);
    // Rows larger than a record of TLS, in both directions of time.
    server
        .sql("test", "INSERT INTO note VALUES (2, repeat('b', 100000)); UPDATE note SET body = 'c' WHERE id = 1")
        .unwrap();
    let found = Model::of_graph(caught_up(&whole).await.graph()).await.vertices;
    assert_eq!((&*found["Note:1"]["body"], found["Note:2"]["body"].len()), ("c", 100_000));
    for (host, query, rejected) in [
        ("127.0.0.1", format!("?sslmode=verify-ca&sslrootcert={ca}"), None),
        ("127.0.0.1", "?sslmode=require".to_owned(), None),
        // The certificate is for another name, or of another authority.
        ("127.0.0.1", format!("?sslmode=verify-full&sslrootcert={ca}"), Some("could not begin TLS")),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={other}"), Some("could not begin TLS")),
        ("127.0.0.1", format!("?sslmode=verify-ca&sslrootcert={other}"), Some("could not begin TLS")),
        ("127.0.0.1", format!("?sslmode=require&sslrootcert={other}"), Some("could not begin TLS")),
        ("localhost", "?sslmode=verify-full".to_owned(), Some("TLS")),
        ("127.0.0.1", "?sslmode=disable".to_owned(), Some("no pg_hba.conf entry")),
        ("127.0.0.1", String::new(), Some("no pg_hba.conf entry")),
        ("127.0.0.1", "?sslmode=prefer".to_owned(), Some("does not say whether TLS is wanted")),
        ("127.0.0.1", format!("?sslrootcert={ca}"), Some("does not go with certificates")),
        ("127.0.0.1", "?sslmode=verify-full&sslrootcert=/none.pem".to_owned(), Some("could not read /none.pem")),
        ("127.0.0.1", "?sslmode=require&sslcert=/c.pem".to_owned(), Some("belong together")),
    ] {
        let checked = check(&settings(host, &query)).await;
        match rejected {
            None => assert!(checked.is_ok(), "{host}{query}: {:?}", checked.err()),
            Some(why) => {
                let error = checked.err().unwrap_or_else(|| panic!("{host}{query} is trusted"));
                assert!(error.kind() == FeedErrorKind::Invalid && error.to_string().contains(why), "{query}: {error}");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }
    // A server without TLS is not spoken to in the clear.
    let plain = PostgresServer::start(&["fsync=off"]).unwrap();
    let mut settings = settings("127.0.0.1", "");
    settings.source.url = hoplake_feed::OneOrMore::One(format!("{}?sslmode=require", plain.url("test")));
    let error = Feed::open(settings, RunOptions::default(), Arc::new(())).await.err().unwrap();
    assert!(error.to_string().contains("has no TLS"), "{error}");
}

/// What Maxwell writes of a table, and a catalog of it.
fn log_of_notes() -> (Vec<String>, CatalogFile) {
    let bootstrap = |what: &str, data: &str| {
        format!(r#"{{"database":"hr","table":"note","type":"bootstrap-{what}","ts":1,"data":{{{data}}}}}"#)
    };
    let lines = vec![
        bootstrap("start", ""),
        bootstrap("insert", r#""id":1,"body":"a""#),
        bootstrap("complete", ""),
        r#"{"database":"hr","table":"note","type":"insert","ts":2,"xid":7,"commit":true,"position":"b.000001:7","data":{"id":2,"body":"b"}}"#.into(),
    ];
    let column = |name: &str, declared: &str, kind| Column {
        name: name.into(),
        declared: declared.into(),
        kind: Some(PropertyType::Scalar(kind)),
        suggested: None,
        is_nullable: true,
        compared_by: None,
    };
    let note = Table {
        name: TableName::new("hr", "note"),
        columns: vec![column("id", "int", ScalarType::Int64), column("body", "text", ScalarType::String)],
        primary_key: vec!["id".into()],
        foreign_keys: Vec::new(),
        before_images: BeforeImages::Complete,
    };
    let catalog = Catalog { tables: vec![note], logs_cascades: false };
    (lines, CatalogFile::new("mysql://h/hr", "hr", catalog).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kafka_is_followed_through_tls_by_those_who_log_in_or_have_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    certificates(folder.path());
    let of_server = [at("server.key"), at("server.pem")].map(|path| fs::read_to_string(path).unwrap()).concat();
    fs::write(at("both.pem"), of_server).unwrap();
    let both = folder.path().join("both.pem");
    let authorities = folder.path().join("ca.pem");
    let keys = KafkaKeys { key_and_certificate: &both, authorities: &authorities };
    let kafka = KafkaServer::start_with_tls(keys).unwrap();
    let (lines, catalog) = log_of_notes();
    fs::write(at("catalog.json"), catalog.to_json()).unwrap();
    kafka.create_topic("notes", 1).await.unwrap();
    kafka.write("notes", &lines.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    let certificates = kafka.port_of_certificates().unwrap();
    let logins = kafka.port_of_logins().unwrap();
    let ca = at("ca.pem");
    let other = at("other.pem");
    let cert = at("client.pem");
    let key = at("client.key");
    let user = |mechanism: &str| format!("ca={ca}&sasl={mechanism}");
    let shown = format!("ca={ca}&cert={cert}&key={key}");
    let unreachable = "could not connect to Kafka";
    for (number, (address, query, rejected)) in [
        (format!("feed:secret@localhost:{logins}"), format!("tls=true&{}", user("plain")), None),
        (format!("feed:secret@localhost:{logins}"), format!("tls=true&{}", user("scram-sha-256")), None),
        (format!("feed:secret@localhost:{logins}"), format!("tls=true&{}", user("scram-sha-512")), None),
        (format!("localhost:{certificates}"), format!("tls=true&{shown}"), None),
        (format!("feed:other@localhost:{logins}"), format!("tls=true&{}", user("plain")), Some(unreachable)),
        (format!("feed:other@localhost:{logins}"), format!("tls=true&{}", user("scram-sha-512")), Some(unreachable)),
        (format!("localhost:{logins}"), format!("tls=true&ca={ca}"), Some(unreachable)),
        (format!("localhost:{certificates}"), format!("tls=true&ca={ca}"), Some(unreachable)),
        // The certificate is for another name, of another authority, or not asked for.
        (format!("127.0.0.1:{certificates}"), format!("tls=true&{shown}"), Some(unreachable)),
        (format!("localhost:{certificates}"), format!("tls=true&ca={other}&cert={cert}&key={key}"), Some(unreachable)),
        (format!("feed:secret@localhost:{logins}"), "sasl=plain".to_owned(), Some(unreachable)),
        (format!("localhost:{certificates}"), "tls=true&ca=/none.pem".to_owned(), Some("could not read /none.pem")),
    ]
    .into_iter()
    .enumerate()
    {
        let graph = at(&format!("graph{number}"));
        let settings = format!(
            "graph = '{graph}'\n[source]\nname = 'hr'\nurl = 'kafka://{address}/notes?{query}'\ncatalog = '{}'\n\
             log_format = 'maxwell'\nquiet_ms = 200\ntimeout_ms = 4000\n[[table]]\nname = 'note'\nvertex = {{ label = 'Note' }}\n",
            at("catalog.json")
        );
        let settings = Settings::parse(&settings).unwrap();
        match rejected {
            None => {
                let found = Model::of_graph(caught_up(&settings).await.graph()).await.vertices;
                assert_eq!(found.keys().collect::<Vec<_>>(), ["Note:1", "Note:2"], "{address}?{query}");
            }
            Some(why) => {
                let error = check(&settings).await.err().unwrap_or_else(|| panic!("{address}?{query} is trusted"));
                assert!(error.to_string().contains(why), "{address}?{query}: {error}");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }
}
