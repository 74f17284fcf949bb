//! Both layouts of the LDBC Social Network Benchmark.

use super::*;

#[test]
fn basic_in_folders_with_parts_and_compression() {
    let folder = folder(&[
        (
            "dynamic/person_0_0.csv",
            "id|firstName|birthday|creationDate|locationIP\n1|A \"B, C|1989-12-03|2010-02-14T15:32:10.447+0000|1.2.3.4\n",
        ),
        (
            "dynamic/person_1_0.csv",
            "id|firstName|birthday|creationDate|locationIP\r\n2||628646400000|1266161530447|\r\n",
        ),
        ("dynamic/person_knows_person_0_0.csv", "Person.id|Person.id|creationDate\n1|2|1266161530447\n"),
        ("dynamic/person_speaks_language_0_0.csv", "Person.id|language\n1|si\n1|en\n"),
        ("dynamic/person_email_emailaddress_0_0.csv", "Person.id|email\n2|x@y.z\n"),
        ("static/place_isPartOf_place_0_0.csv", "Place.id|Place.id\n"),
        ("static/place_0_0.csv", "id|name|type\n"),
        ("updateStream_0_0_person.csv", "1|2|3\n"),
        ("params.ini", "x=y"),
    ]);
    let zipped = zstd::encode_all(&b"\xef\xbb\xbfPerson.id|Tag.id\n1|7\n"[..], 1).unwrap();
    fs::write(folder.path().join("dynamic/person_hasInterest_tag_0_0.csv.zst"), zipped).unwrap();
    let dataset = opened(folder.path());
    assert_eq!(
        vertex_types(&dataset),
        [
            "Person[int64]: firstName string, birthday date, creationDate timestamp, locationIP string, \
             email list<string>, speaks list<string>",
            "Tag[int64]: ",
            "Place[int64]: name string, type string",
        ]
    );
    assert_eq!(edge_types(&dataset), ["hasInterest: ", "knows: creationDate timestamp", "isPartOf: "]);
    assert_eq!(dataset.vertex_tables.iter().map(|table| table.implied).collect::<Vec<_>>(), [false, true, false]);
    let rows = rows(&dataset);
    assert_eq!(value(&dataset, &rows, 0, "firstName"), "A \"B, C");
    assert_eq!(value(&dataset, &rows, 1, "firstName"), "");
    for row in [0, 1] {
        assert_eq!(value(&dataset, &rows, row, "birthday"), "1989-12-03");
        assert_eq!(value(&dataset, &rows, row, "creationDate"), "2010-02-14T15:32:10.447Z");
    }
    assert_eq!(rows["Person.speaks"], ["2: 1|si", "3: 1|en"]);
    assert_eq!(rows["Person.email"], ["2: 2|x@y.z"]);
    assert_eq!(rows["Person-knows->Person"], ["2: 1|2|2010-02-14T15:32:10.447Z"]);
    assert_eq!((&rows["Tag"], &rows["Person-hasInterest->Tag"]), (&vec!["2: 7".into()], &vec!["2: 1|7".to_owned()]));
}

fn value(dataset: &Dataset, rows: &Rows, row: usize, property: &str) -> String {
    let position = dataset.vertex_tables[0].properties.iter().position(|known| known.name == property).unwrap();
    rows["Person"][row].split_once(": ").unwrap().1.split('|').nth(position + 1).unwrap().to_owned()
}

#[test]
fn posts_without_a_file_come_from_their_creators() {
    let folder = folder(&[
        ("person_0_0.csv", "id|firstName\n1|A\n"),
        ("post_hasCreator_person_0_0.csv", "Post.id|Person.id\n10|1\n11|1\n"),
        ("forum_containerOf_post_0_0.csv", "Forum.id|Post.id\n5|10\n"),
    ]);
    let dataset = opened(folder.path());
    let rows = rows(&dataset);
    assert_eq!(rows["Post"], ["2: 10", "3: 11"]);
    assert_eq!(rows["Forum"], ["2: 5"]);
    assert_eq!(rows["Post-hasCreator->Person"], ["2: 10|1", "3: 11|1"]);
}

#[test]
fn foreign_keys_of_bi_become_edges() {
    let folder = folder(&[
        (
            "initial_snapshot/dynamic/Comment/part-0.csv",
            "creationDate|id|content|length|CreatorPersonId|LocationCountryId|ParentPostId|ParentCommentId\n1320841766239|7|thanks|6|1|73|10|\n1320841766239|8|no|2|1|73||7\n",
        ),
        (
            "initial_snapshot/dynamic/Post/part-0.csv",
            "creationDate|id|language|CreatorPersonId|ContainerForumId|LocationCountryId\n1320841766239|10|fa|1|5|73\n",
        ),
        (
            "initial_snapshot/dynamic/Person/part-0.csv",
            "creationDate|id|LocationCityId|language|email\n1320841766239|1|73|fa;en|\n",
        ),
        ("initial_snapshot/dynamic/Person/part-1.csv", ""),
        ("initial_snapshot/dynamic/Person/_SUCCESS", ""),
        (
            "initial_snapshot/dynamic/Forum/part-0.csv",
            "creationDate|id|title|ModeratorPersonId\n1320841766239|5|Wall|1\n",
        ),
        (
            "initial_snapshot/dynamic/Person_workAt_Company/part-0.csv",
            "creationDate|PersonId|CompanyId|workFrom\n1320841766239|1|3|2004\n",
        ),
        ("initial_snapshot/static/Organisation/part-0.csv", "id|name|LocationPlaceId\n3|Air|73\n"),
        ("initial_snapshot/static/Place/part-0.csv", "id|name|PartOfPlaceId\n73|India|\n"),
        ("deletes/dynamic/Person/batch_id=1/part-0.csv", "deletionDate|id\n1|1\n"),
    ]);
    let rows = rows(&opened(folder.path()));
    let at = "2011-11-09T12:29:26.239Z";
    assert_eq!(rows["Comment"], [format!("2: 7|{at}|thanks|6"), format!("3: 8|{at}|no|2")]);
    assert_eq!(rows["Comment-replyOf->Post"], ["2: 7|10"]);
    assert_eq!(rows["Comment-replyOf->Comment"], ["3: 8|7"]);
    assert_eq!(rows["Forum-containerOf->Post"], ["2: 5|10"]);
    assert_eq!(rows["Forum-hasModerator->Person"], ["2: 5|1"]);
    assert_eq!(rows["Person"], [format!("2: 1|{at}|[fa, en]|")]);
    assert_eq!(rows["Post"], [format!("2: 10|{at}|fa")]);
    assert_eq!(rows["Person-workAt->Organisation"], [format!("2: 1|3|{at}|2004")]);
    assert_eq!(rows["Organisation-isLocatedIn->Place"], ["2: 3|73"]);
    assert!(!rows.contains_key("Place-isPartOf->Place"));
}
