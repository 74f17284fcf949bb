//! Gremlin CSV and neo4j-admin CSV.

use super::*;

#[test]
fn neptune_labels_use_their_own_columns() {
    let folder = folder(&[
        (
            "nodes.csv",
            "\u{feff}~id,~label,name:String,age:Int(single),tags:String[],born:Date\n1,person;x,\"A, B\",30,a;b,\n2,city,Y,,,2020-01-01\n3,,,,,\n",
        ),
        ("edges.csv", "~id,~from,~to,~label,dist:double\ne1,1,2,livesIn,1.5\ne2,2,1,back,\n"),
        ("README.txt", "Nothing, here.\n"),
    ]);
    let dataset = opened(folder.path());
    assert_eq!(
        vertex_types(&dataset),
        [
            "person[int64]: name string, age int64, tags list<string>",
            "city[int64]: name string, born timestamp",
            "vertex[int64]: "
        ]
    );
    assert_eq!(edge_types(&dataset), ["livesIn: id string, dist float64", "back: id string"]);
    assert!(dataset.vertex_tables.iter().all(|table| table.id_space.is_empty() && !table.implied));
    let rows = rows(&dataset);
    assert_eq!(rows["person"], ["2: 1|A, B|30|[a, b]"]);
    assert_eq!(rows["city"], ["3: 2|Y|2020-01-01T00:00:00Z"]);
    assert_eq!(rows["vertex"], ["4: 3"]);
    assert_eq!(rows["-livesIn->"], ["2: 1|2|e1|1.5"]);
    assert_eq!(rows["-back->"], ["3: 2|1|e2"]);
}

#[test]
fn one_text_id_makes_all_keys_text() {
    let folder = folder(&[("nodes.csv", "~id,~label\n1,a\n2,a\n"), ("edges.csv", "~id,~from,~to,~label\n7,1,02,e\n")]);
    let dataset = opened(folder.path());
    assert_eq!(vertex_types(&dataset), ["a[string]: "]);
    assert_eq!(edge_types(&dataset), ["e: id int64"]);
    assert_eq!(rows(&dataset)["-e->"], ["2: 1|02|7"]);
}

#[test]
fn edges_alone_imply_their_vertices() {
    let folder = folder(&[("edges.csv", "~id,~from,~to,~label\nx,1,2,a\ny,2,3,b\n")]);
    let dataset = opened(folder.path());
    assert_eq!(vertex_types(&dataset), ["vertex[int64]: "]);
    assert!(dataset.vertex_tables[0].implied);
    assert_eq!(rows(&dataset)["vertex"], ["2: 1", "3: 2", "2: 2", "3: 3"]);
}

#[test]
fn neo4j_spaces_types_and_file_names() {
    let folder = folder(&[
        (
            "movies.csv",
            "movieId:ID(Movie);title;year:int;seen:boolean[];skip:IGNORE\ntt1;\"The; Matrix\";1999;true|false;x\n",
        ),
        ("people.csv", ":ID(Person)\tname:string\t:LABEL\tborn:date\n1\tKeanu\tActor;Person\t1964-09-02\n2\tWho\t\t\n"),
        (
            "roles.csv",
            ":START_ID(Person),:END_ID(Movie),:TYPE,at:datetime{timezone:UTC}\n1,tt1,ACTED_IN,1999-03-31T10:00:00\n",
        ),
    ]);
    let dataset = opened(folder.path());
    assert_eq!(
        vertex_types(&dataset),
        [
            "movies[string]: movieId string, title string, year int64, seen list<bool>",
            "Actor[int64]: name string, born date",
            "people[int64]: name string",
        ]
    );
    let edge = &dataset.edge_tables[0];
    assert_eq!((edge.source.id_space.as_str(), edge.target.id_space.as_str()), ("Person", "Movie"));
    let rows = rows(&dataset);
    assert_eq!(rows["movies"], ["2: tt1|tt1|The; Matrix|1999|[true, false]"]);
    assert_eq!(rows["Actor"], ["2: 1|Keanu|1964-09-02"]);
    assert_eq!(rows["people"], ["3: 2|Who"]);
    assert_eq!(rows["-ACTED_IN->"], ["2: 1|tt1|1999-03-31T10:00:00Z"]);
}

#[test]
fn a_stray_csv_is_not_left_out_in_silence() {
    let folder = folder(&[("nodes.csv", "~id,~label\n1,a\n"), ("other.csv", "a,b\n1,2\n")]);
    let message = rejected(&[folder.path().to_owned()]);
    assert!(message.contains("other.csv") && message.contains("nodes.csv"), "{message}");
}
