//! A manifest is read as it was written, or rejected.

use super::*;
use crate::{
    EdgeType, KeyType, PreparedQuery, Property, PropertyType, QueryEdition, QueryParameter, ScalarType, VertexLabel,
    constants::REMOVED_BYTES_MAX, prepared::QUERIES_BYTES_MAX,
};

fn team() -> PreparedQuery {
    let parameter = |name: &str, kind, default: Option<&str>| QueryParameter {
        name: name.into(),
        kind,
        default: default.map(str::to_owned),
    };
    let edition = QueryEdition {
        number: 2,
        text: "g.V(id).in('reportsTo').limit(most)".into(),
        parameters: vec![
            parameter("id", PropertyType::List(ScalarType::String), None),
            parameter("most", PropertyType::Scalar(ScalarType::Int64), Some("10")),
        ],
        description: "who reports to someone".into(),
        saved_unix_ms: 1_700_000_000_000,
    };
    PreparedQuery { last: 3, editions: vec![edition] }
}

fn sample() -> Manifest {
    let property = |name: &str, kind| Property::new(name, kind);
    let both = Some(VersionRange { since: 1, until: 2 });
    let mut degrees = [DegreeSummary::default(), DegreeSummary::default()];
    [0, 1, 2, 3, 900].into_iter().for_each(|degree| degrees[0].add(degree));
    Manifest {
        version: 3,
        created_unix_ms: 1_700_000_000_000,
        change: Change {
            kind: ChangeKind::Commit,
            writer: "01JDX".into(),
            message: "new people".into(),
            counts: ChangeCounts { vertices_added: 2, vertices_removed: 1, edges_written: 6, ..Default::default() },
        },
        reset: 1,
        source_positions: [("crm".to_owned(), "0/16B3748".to_owned())].into(),
        applied: vec![Applied {
            version: 2,
            counts: ChangeCounts { vertices_added: 1, ..Default::default() },
            requests: vec![RequestDigest::of("a"), RequestDigest::of("b")],
        }],
        leases: vec![WriterLease { writer: "01JDW".into(), kind: ChangeKind::Compaction, since: 2 }],
        history: vec![VersionRange::of(1)],
        tags: [("as loaded".to_owned(), 1)].into(),
        queries: PreparedQueries([("team".to_owned(), team())].into()),
        schema: Schema {
            vertex_labels: vec![VertexLabel {
                name: "Person".into(),
                key_type: KeyType::Int64,
                properties: vec![
                    property("email", PropertyType::List(ScalarType::String)),
                    property("age", PropertyType::Scalar(ScalarType::Int64)),
                ],
            }],
            edge_types: vec![EdgeType {
                label: "knows".into(),
                source: LabelId(0),
                target: LabelId(0),
                properties: vec![property("since", PropertyType::Scalar(ScalarType::Timestamp))],
            }],
        },
        unique_keys: true,
        indexes: vec![PropertyIndex {
            id: IndexId(1),
            label: LabelId(0),
            property: "age".into(),
            writer: Some("01JDW".into()),
        }],
        next_index: 2,
        vertex_counts: vec![VertexCount { ordinals: 5, gone: 1 }],
        edge_counts: vec![906],
        degrees: vec![degrees],
        segments: vec![SegmentRef {
            name: "data/a.hls".into(),
            end: SegmentEnd { length: 90, filters_position: 50, index_position: 60, root_position: 70 },
            sections: vec![
                section(SectionKind::Keys(LabelId(0)), Some(VersionRange::of(3)), None),
                section(SectionKind::Values(IndexId(1)), Some(VersionRange::of(3)), None),
                section(SectionKind::RemovedValues(IndexId(0)), None, None),
                section(SectionKind::Tombstones(LabelId(0)), None, Some(First::Text("m".into()))),
                section(SectionKind::Removed(EdgeTypeId(0), Direction::Out), both, None),
                section(SectionKind::Adjacency(EdgeTypeId(0), Direction::In), both, None),
                section(SectionKind::Adjacency(EdgeTypeId(0), Direction::In), both, Some(First::Number(7))),
                section(SectionKind::Adjacency(EdgeTypeId(0), Direction::In), both, Some(First::Number(7))),
            ],
            checksum: 7,
        }],
        tables: vec![TableRef {
            name: "data/b.parquet".into(),
            position: 90,
            owner: TableOwner::Edges(EdgeTypeId(0), Direction::In),
            versions: VersionRange { since: 1, until: 2 },
            first_row: 0,
            rows: 906,
            length: 1000,
            tail_position: 800,
            tail_checksum: 8,
            checksum: 9,
        }],
    }
}

fn section(kind: SectionKind, versions: Option<VersionRange>, continues: Option<First>) -> SectionRef {
    SectionRef { kind, versions, continues }
}

#[test]
fn pieces_of_a_section_follow_each_other() {
    let kind = SectionKind::Keys(LabelId(0));
    let text = |first: &str| First::Text(first.into());
    let number = |first: &str| First::Number(first.len() as u64);
    let both = Some(VersionRange { since: 1, until: 2 });
    for pieces in [
        vec![Some(text("m"))],
        vec![None, None],
        vec![None, Some(text("m")), Some(text("b"))],
        vec![None, Some(text("m")), Some(text("m"))],
        vec![None, Some(text("m")), Some(number("mm"))],
    ] {
        let mut manifest = sample();
        manifest.segments[0].sections = pieces.iter().map(|first| section(kind, both, first.clone())).collect();
        assert!(Manifest::decode(&manifest.encode()).is_err(), "{pieces:?}");
    }
    let mut manifest = sample();
    let whole = [None, Some(text("b")), Some(text("m"))];
    manifest.segments[0].sections = whole.map(|first| section(kind, both, first)).to_vec();
    assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
}

#[test]
fn a_manifest_is_read_as_written() {
    let manifest = sample();
    assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
    assert_eq!(manifest.degrees[0][0].histogram, [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!((manifest.degrees[0][0].vertices(), manifest.degrees[0][0].max), (4, 900));
}

#[test]
fn every_flipped_bit_and_cut_is_found() {
    let mut bytes = sample().encode();
    for cut in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..cut]).is_err());
    }
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            bytes[byte] ^= 1 << bit;
            assert!(Manifest::decode(&bytes).is_err(), "byte {byte} bit {bit}");
            bytes[byte] ^= 1 << bit;
        }
    }
}

#[test]
fn another_version_of_the_format_is_rejected_by_name() {
    // Field 8, the segments, is text here: nothing but the version may be read.
    for version in [2, 9] {
        let payload = [8, version, 66, 3, b'a', b'b', b'c'];
        let mut bytes = MANIFEST_MAGIC.to_vec();
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(crc32c::crc32c(&payload).to_le_bytes());
        bytes.extend(payload);
        bytes.extend(MANIFEST_MAGIC);
        let error = Manifest::decode(&bytes).unwrap_err();
        assert!(matches!(error, FormatError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(&format!("format version {version}")), "{error}");
    }
}

#[test]
fn parts_of_versions_that_are_not_there_yet_are_damage() {
    for versions in [VersionRange { since: 2, until: 4 }, VersionRange { since: 3, until: 2 }] {
        let mut manifest = sample();
        manifest.segments[0].sections[0].versions = Some(versions);
        let error = Manifest::decode(&manifest.encode()).unwrap_err();
        assert!(error.to_string().contains(&format!("versions {} to {}", versions.since, versions.until)), "{error}");
        let mut manifest = sample();
        manifest.tables[0].versions = versions;
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }
}

#[test]
fn a_property_index_is_of_a_property_that_can_have_one() {
    type Change = fn(&mut Manifest);
    let changes: [(Change, &str); 6] = [
        (|it| it.indexes[0].property = "email".into(), "lists have no index"),
        (|it| it.indexes[0].property = "name".into(), "have no property \"name\""),
        (|it| it.indexes[0].label = LabelId(7), "needs a vertex label"),
        (|it| it.next_index = 1, "not below the next"),
        (|it| it.indexes.push(it.indexes[0].clone()), "do not ascend"),
        (|it| it.indexes.clear(), "section Values(IndexId(1)) belongs to nothing"),
    ];
    for (change, why) in changes {
        let mut manifest = sample();
        change(&mut manifest);
        let error = Manifest::decode(&manifest.encode()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn an_object_is_as_long_as_what_it_holds() {
    let mut manifest = sample();
    manifest.tables[0].name = manifest.segments[0].name.clone();
    assert_eq!(manifest.objects().into_iter().collect::<Vec<_>>(), [("data/a.hls", 1090)]);
}

#[test]
fn versions_that_can_be_opened_are_counted_on() {
    let third = sample();
    let change = Change { kind: ChangeKind::Tag, ..Change::default() };
    let fourth = third.next(change.clone(), 0);
    assert_eq!((fourth.version, fourth.created_unix_ms, &fourth.change), (4, third.created_unix_ms, &change));
    assert_eq!(fourth.history, [VersionRange::of(1), VersionRange::of(3)]);
    let fifth = fourth.next(change, u64::MAX);
    assert_eq!(fifth.history, [VersionRange::of(1), VersionRange { since: 3, until: 4 }]);
    assert_eq!((0..7).filter(|version| fifth.has_version(*version)).collect::<Vec<_>>(), [1, 3, 4, 5]);
    assert_eq!(Manifest::decode(&fifth.encode()).unwrap(), fifth);
    let rejected = |manifest: Manifest| Manifest::decode(&manifest.encode()).unwrap_err().to_string();
    let range = |since, until| VersionRange { since, until };
    for history in [vec![range(1, 1), range(1, 2)], vec![range(1, 5)], vec![range(0, 1)], vec![range(2, 1)]] {
        let why = rejected(Manifest { history, ..fifth.clone() });
        assert!(why.contains("version 5 follows versions"), "{why}");
    }
    let why = rejected(Manifest { tags: [("gone".to_owned(), 2)].into(), ..fifth });
    assert!(why.contains("tag gone is of version 2, which was removed"), "{why}");
}

#[test]
fn prepared_queries_that_cannot_be_are_rejected() {
    let rejected = |change: &dyn Fn(&mut PreparedQuery)| {
        let mut manifest = sample();
        change(manifest.queries.0.get_mut("team").unwrap());
        Manifest::decode(&manifest.encode()).unwrap_err().to_string()
    };
    assert!(rejected(&|query| query.last = 1).contains("do not ascend from 1 up to 1"));
    assert!(rejected(&|query| query.editions.clear()).contains("do not ascend"));
    assert!(rejected(&|query| query.editions[0].number = 0).contains("do not ascend"));
    assert!(rejected(&|query| query.editions[0].description = "x".repeat(QUERIES_BYTES_MAX)).contains("at most"));
    let mut manifest = sample();
    manifest.queries.0.insert("a@1".into(), team());
    assert!(Manifest::decode(&manifest.encode()).unwrap_err().to_string().contains("cannot be the name of a query"));
}

/// A writer that takes a version tombstone of its own version for another's removes what the version names.
#[test]
fn a_damaged_version_tombstone_is_rejected() {
    let writer = "01M3250VEDKQDVVEPC34NCX9XZ";
    let tombstone = Slot::encode_removed(writer);
    assert!(tombstone.len() as u64 <= REMOVED_BYTES_MAX);
    assert_eq!(Slot::decode(&tombstone).unwrap(), Slot::Removed { writer: writer.to_owned() });
    for bit in 0..tombstone.len() * 8 {
        let mut damaged = tombstone.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        Slot::decode(&damaged).unwrap_err();
    }
    for length in 0..tombstone.len() {
        Slot::decode(&tombstone[..length]).unwrap_err();
    }
}

/// A compaction that a restore of an older version overtakes has sections of edge types that are not there any more.
#[test]
fn only_parts_of_the_version_belong_to_its_schema() {
    let mut manifest = sample();
    let section = manifest.segments.iter_mut().flat_map(|segment| &mut segment.sections).next().unwrap();
    section.kind = SectionKind::Adjacency(EdgeTypeId(99), Direction::Out);
    let with_versions = Manifest::decode(&manifest.encode()).unwrap_err();
    assert!(with_versions.to_string().contains("belongs to nothing in the schema"), "{with_versions}");
    let section = manifest.segments.iter_mut().flat_map(|segment| &mut segment.sections).next().unwrap();
    section.versions = None;
    assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
}
