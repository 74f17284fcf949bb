//! TLS to a real PostgreSQL that takes nothing else, with certificates that are made here.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
    sync::Arc,
};

use hoplake_feed::{Feed, FeedErrorKind, RunOptions, Settings, check};
use hoplake_testkit::PostgresServer;

use crate::{following::caught_up, model::Model};

fn openssl(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(arguments.split(' '));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// An authority, another one, and a certificate of the first for the name `localhost`.
fn certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for name in ["ca", "other"] {
        openssl(folder, &format!("req -x509 {key} -days 2 -keyout {name}.key -out {name}.pem -subj /CN={name}"));
    }
    openssl(
        folder,
        &format!("req {key} -keyout server.key -out server.csr -subj /CN=s -addext subjectAltName=DNS:localhost"),
    );
    openssl(
        folder,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out server.pem",
    );
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
        let (graph, port) = (folder.path().join("graph"), server.port());
        let url = format!("postgres://feed:secret@{host}:{port}/test{query}");
        let entry = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
        Settings::parse(&format!("graph = {graph:?}\n[source]\nname = 'hr'\nurl = '{url}'\n{entry}")).unwrap()
    };
    let (ca, other) = (at("ca.pem"), at("other.pem"));
    let whole = settings("localhost", &format!("?sslmode=verify-full&sslrootcert={ca}"));
    drop(caught_up(&whole).await);
    // Rows larger than a record of TLS, in both directions of time.
    server
        .sql("test", "INSERT INTO note VALUES (2, repeat('b', 100000)); UPDATE note SET body = 'c' WHERE id = 1")
        .unwrap();
    let found = Model::of_graph(caught_up(&whole).await.graph()).await.vertices;
    assert_eq!((&*found["Note:1"]["body"], found["Note:2"]["body"].len()), ("c", 100_000));
    for (host, query, refused) in [
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
        match refused {
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
