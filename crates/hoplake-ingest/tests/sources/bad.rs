//! Rows that cannot be read, under both policies.

use super::*;

const PERSON: &str =
    "creationDate|id|LocationCityId|language\n1|1|73|a\nx|2|73|a\n1||73|a\n1|4|oops|a\n1|5\n1|6|73|b\n";

#[test]
fn each_bad_row_is_reported_once_over_both_phases() {
    let folder = folder(&[
        ("initial_snapshot/dynamic/Person/part-0.csv", PERSON),
        ("initial_snapshot/static/Place/part-0.csv", "id|name\n73|Rome\n"),
    ]);
    let (rows, rejects) = rejecting(&opened(folder.path()));
    assert_eq!(
        rejects,
        [
            ["3,creationDate,x,is not a timestamp such as 2010-02-14T15:32:10.447Z", "x|2|73|a"],
            ["4,id,,is empty where a key is needed", "1||73|a"],
            ["5,LocationCityId,oops,is not an int64", "1|4|oops|a"],
            ["6,,,has 2 columns where 4 are expected", "1|5"],
        ]
    );
    let keys =
        |table: &str| rows[table].iter().map(|row| row.split('|').next().unwrap().to_owned()).collect::<Vec<_>>();
    // The bad edge of line 5 does not take its vertex along.
    assert_eq!(keys("Person"), ["2: 1", "5: 4", "7: 6"]);
    assert_eq!(rows["Person-isLocatedIn->Place"], ["2: 1|73", "7: 6|73"]);
}

#[test]
fn the_first_bad_row_stops_the_scan() {
    let folder = folder(&[("initial_snapshot/dynamic/Person/part-0.csv", PERSON)]);
    let dataset = opened(folder.path());
    let mut chunks = dataset.inputs[0].scan(Phase::Vertices, Arc::new(BadRows::stop())).unwrap();
    let message = chunks.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("part-0.csv, line 3, column creationDate: \"x\" is not a timestamp"), "{message}");
    assert!(chunks.next().is_none());
}

#[test]
fn rows_of_edge_lists_and_labelled_files() {
    let mut many = "1 2 0.5\n".repeat(40);
    many.push_str("3 4 heavy\n5\n");
    let folder = folder(&[("g.e", &many)]);
    let (rows, rejects) = skipping(&opened(folder.path()));
    assert_eq!(rejects, ["41,weight,heavy,is not a float64", "42,,,has 1 columns where 3 are expected"]);
    assert_eq!((rows["vertex"].len(), rows["vertex-edge->vertex"].len()), (82, 40));
}

#[test]
fn a_bad_key_of_an_implied_vertex_is_reported_once() {
    let folder = folder(&[("g.e", "1 2 0.5\nx 3 0.5\n4 y 0.5\n")]);
    let options = SourceOptions { key_type: Some(hoplake_format::KeyType::Int64), ..SourceOptions::default() };
    let (rows, rejects) = skipping(&open(&[folder.path().to_owned()], &options).unwrap());
    assert_eq!(rejects, ["2,source,x,is not an int64", "3,target,y,is not an int64"]);
    assert_eq!(
        (&rows["vertex"], &rows["vertex-edge->vertex"]),
        (&vec!["1: 1".into(), "1: 2".into()], &vec!["1: 1|2|0.5".to_owned()])
    );
}

#[test]
fn an_edge_needs_a_label() {
    let folder = folder(&[
        ("nodes.csv", "~id,~label\n1,a\n"),
        ("edges.csv", "~id,~from,~to,~label,n:int\ne,1,1,x,1\nf,1,1,,1\ng,,1,x,1\nh,1,1,x,many\n"),
    ]);
    let (rows, rejects) = skipping(&opened(folder.path()));
    assert_eq!(
        rejects,
        ["3,~label,,is not a label", "4,~from,,is empty where a key is needed", "5,n:int,many,is not an int64"]
    );
    assert_eq!(rows["-x->"], ["2: 1|1|e|1"]);
}

#[test]
fn scans_repeat_and_chunks_stay_small() {
    let many: String = (0..100_000).map(|row| format!("{row}\t{}\n", row + 1)).collect();
    let folder = folder(&[("g.txt", &many)]);
    let dataset = opened(folder.path());
    let once = rows(&dataset);
    assert_eq!(once, rows(&dataset));
    assert_eq!(once["vertex-edge->vertex"].len(), 100_000);
    assert_eq!(once["vertex-edge->vertex"][99_999], "100000: 99999|100000");
    let mut bytes = 0;
    let mut largest = 0;
    for chunk in dataset.inputs[0].scan(Phase::Edges, Arc::new(BadRows::stop())).unwrap() {
        let chunk = chunk.unwrap();
        bytes += chunk.bytes_read;
        largest = largest.max(chunk.batch.num_rows());
    }
    assert_eq!((bytes, largest), (many.len() as u64, 32_768));
}
