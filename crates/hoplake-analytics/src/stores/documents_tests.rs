//! The conformance suite over a real server, and servers that lie, hang and go away.

use std::time::{Duration, Instant};

use hoplake_testkit::{DocumentServer, TcpFault, TcpProxy};
use mongodb::{
    Client,
    bson::{Binary, Document, doc, spec::BinarySubtype},
};
use proptest::{prelude::*, test_runner::TestRunner};

use super::{
    tests::{
        CHUNK_BYTES, Named, State, VERTICES, cached, do_not_undo_each_other, has_what_was_written_last,
        have_no_other_vertices, ranges,
    },
    *,
};

/// A store of each form, in a collection of its own.
fn stores(server: &DocumentServer) -> Vec<Named> {
    let create = |collection: &str| {
        let settings =
            DocumentSettings { collection: collection.into(), ..DocumentSettings::new(server.url("graphs")) };
        DocumentStore::create(&settings, VERTICES).unwrap()
    };
    let below = Box::new(create("below"));
    vec![
        ("documents".into(), Box::new(create("fixed"))),
        ("documents, compressed".into(), Box::new(create("compressed").with_serialiser(Compressed(Generic)))),
        cached("documents", below, CachePolicy::Score, CHUNK_BYTES),
    ]
}

#[test]
fn documents_are_a_store_like_others() {
    let server = DocumentServer::start().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 6, ..ProptestConfig::default() });
    runner
        .run(&ranges(), |ranges| {
            has_what_was_written_last(stores(&server), &ranges);
            Ok(())
        })
        .unwrap();
    do_not_undo_each_other(stores(&server));
    have_no_other_vertices(stores(&server));
}

fn settings(url: String) -> DocumentSettings {
    DocumentSettings { timeout: Duration::from_secs(2), ..DocumentSettings::new(url) }
}

/// The error of something, which names the place, and says this.
fn fails<T>(result: Result<T, StoreError>, says: &[&str]) {
    let error = result.err().unwrap();
    for said in says {
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_collection_is_of_one_store_and_goes_with_it() {
    let server = DocumentServer::start().unwrap();
    let settings = settings(server.url("social"));
    let store = DocumentStore::<State>::create(&settings, VERTICES).unwrap();
    let place = format!("{}, database social, collection hoplake_states: ", server.address());
    let taken = || DocumentStore::<State>::create(&settings, VERTICES);
    store.put(0, vec![(1.5, 2)]).unwrap();
    fails(taken(), &[&place, "it has documents: remove the collection, or name another database"]);
    // The refusal has not removed it.
    assert_eq!(store.read(0..2).unwrap(), [(1.5, 2), (0.0, 0)]);
    drop(store);
    let again = taken().unwrap();
    assert_eq!(again.read(0..1).unwrap(), [(0.0, 0)]);
}

#[tokio::test]
async fn documents_that_another_has_written_are_refused() {
    let server = DocumentServer::start().unwrap();
    let settings = settings(server.url("social"));
    // Within a runtime, as a query has it.
    let store = DocumentStore::<State>::create(&settings, VERTICES).unwrap();
    let client = Client::with_uri_str(server.url("social")).await.unwrap();
    let documents = client.database("social").collection::<Document>("hoplake_states");
    let binary = |length| Binary { subtype: BinarySubtype::Generic, bytes: vec![7; length] };
    let place = format!("{}, database social, collection hoplake_states: ", server.address());
    let hint = "something else has written to the collection; remove it, and run the computation again";
    for (document, says) in [
        (doc! { "_id": 0_i64, "states": binary(100) }, "chunk 0: 100 bytes are not 16384 states of 12 bytes each"),
        (doc! { "_id": 0_i64, "states": "text" }, "chunk 0: "),
        (doc! { "_id": 0_i64 }, "chunk 0: "),
        // To a database these are the same number.
        (doc! { "_id": 0.0, "states": binary(16_384 * 12) }, "chunk 0: the server has sent another document"),
    ] {
        documents.delete_one(doc! { "_id": 0_i64 }).await.unwrap();
        documents.insert_one(document).await.unwrap();
        fails(store.read(5..6), &[&place, says, hint]);
        fails(store.put(5, vec![(1.0, 1)]), &[&place, says, hint]);
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_in_time() {
    let began = Instant::now();
    let create = |url: &str| DocumentStore::<State>::create(&settings(url.into()), VERTICES);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let hint = "check that the server runs, and that it can be reached from here";
    // One that listens and never answers, and one that does not listen.
    let url = |address| format!("mongodb://someone:secret@{address}/social");
    let error = create(&url(silent)).err().unwrap().to_string();
    assert!(error.starts_with(&format!("{silent}, database social")) && error.contains(hint), "{error}");
    assert!(!error.contains("secret"));
    drop(listener);
    fails(create(&url(silent)), &[hint]);
    fails(
        create("mongodb://127.0.0.1"),
        &["document database: its address has no database: write mongodb://HOST:PORT/"],
    );
    fails(create("mongodb+srv://127.0.0.1/social"), &["name the hosts"]);
    fails(create("http://127.0.0.1/social"), &["write mongodb://HOST:PORT/DATABASE"]);
    assert!(!format!("{:?}", settings(url(silent))).contains("secret"));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_or_hangs_is_an_error_in_time() {
    let server = DocumentServer::start().unwrap();
    let proxy = TcpProxy::start(&format!("http://{}", server.address()), 7).await.unwrap();
    let address = proxy.endpoint().replace("http://", "");
    let place = format!("{address}, database social, collection hoplake_states: ");
    let store = DocumentStore::<State>::create(&settings(format!("mongodb://{address}/social")), VERTICES).unwrap();
    let states = vec![(1.5, 2); CHUNK as usize];
    store.put(0, states.clone()).unwrap();
    for fault in [TcpFault::Reset, TcpFault::CutShort, TcpFault::LoseAnswer, TcpFault::Hang] {
        proxy.set_faults([(fault, 1.0)]);
        let errors = [store.read(0..CHUNK).err(), store.put(0, states.clone()).err()];
        let errors = errors.map(|error| error.unwrap().to_string());
        assert!(errors.iter().all(|error| error.starts_with(&place)), "{errors:?}");
        assert!(errors[0].contains("run the computation again"), "{errors:?}");
        // The proxy may hang for less than that, but not each time.
        let is_in_time = errors.iter().any(|error| error.contains("there was no answer within 2s"));
        assert!(is_in_time || fault != TcpFault::Hang, "{errors:?}");
        proxy.set_faults([]);
        // It can be reached again, and has what it had.
        let deadline = Instant::now() + Duration::from_secs(60);
        while store.read(0..CHUNK).ok() != Some(states.clone()) {
            assert!(Instant::now() < deadline, "{fault:?}");
        }
    }
}

#[test]
fn a_cache_above_a_server_that_went_away_fails_when_it_ends() {
    let server = DocumentServer::start().unwrap();
    let store = DocumentStore::<State>::create(&settings(server.url("social")), VERTICES).unwrap();
    let cache = CachedStore::new(store, VERTICES, CachePolicy::Lru, CHUNK_BYTES).unwrap();
    cache.put(0, vec![(1.5, 2); CHUNK as usize]).unwrap();
    let place = format!("{}, database social", server.address());
    drop(server);
    fails(cache.flush(), &[&place]);
    assert_eq!(cache.read(0..1).unwrap(), [(1.5, 2)]);
}
