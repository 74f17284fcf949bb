use proptest::prelude::*;

use super::*;

fn sorted<T: Record>(parts: &[Vec<T>], budget_bytes: usize) -> Vec<T> {
    let folder = tempfile::tempdir().unwrap();
    let mut sorters = Vec::new();
    for part in parts {
        let mut sorter = PackedSorter::new(budget_bytes, folder.path());
        part.chunks(37).for_each(|records| sorter.push(records).unwrap());
        sorters.push(sorter);
    }
    let pieces: Vec<Vec<T>> = PackedSorter::finish_all(sorters).unwrap().map(Result::unwrap).collect();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "files are left");
    assert!(pieces.iter().all(|piece| !piece.is_empty()));
    pieces.concat()
}

fn expected<T: Record>(parts: &[Vec<T>]) -> Vec<T> {
    let mut all = parts.concat();
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sorts_any_records_in_any_budget(
        mut parts in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..4000), 0..4),
        shift in 0u32..64,
        budget_bytes in prop_oneof![Just(0), 1000usize..20_000, Just(1 << 20)],
    ) {
        parts.iter_mut().flatten().for_each(|record| *record >>= shift);
        prop_assert_eq!(sorted(&parts, budget_bytes), expected(&parts));
    }

    #[test]
    fn sorts_wide_records(
        parts in proptest::collection::vec(proptest::collection::vec(any::<u128>(), 0..2000), 1..3),
        budget_bytes in 0usize..50_000,
    ) {
        prop_assert_eq!(sorted(&parts, budget_bytes), expected(&parts));
    }
}

#[test]
fn merges_in_several_passes() {
    let records: Vec<u64> = (0..20_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = PackedSorter::new(2000, folder.path());
    sorter.push(&records).unwrap();
    assert!(sorter.files.len() > 4 * sorter.plan.fan_in, "the case needs more than one pass");
    assert_eq!(sorter.finish().unwrap().map(Result::unwrap).collect::<Vec<_>>().concat(), expected(&[records]));
}

#[test]
fn records_in_order_are_one_piece() {
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = PackedSorter::new(1 << 20, folder.path());
    (0..50_000u64).for_each(|record| sorter.push(&[record]).unwrap());
    sorter.sort_piece();
    assert_eq!((sorter.pieces.len(), sorter.sorted_len()), (1, 50_000));
}

#[test]
fn extremes_and_repetition_survive() {
    let records = [vec![u64::MAX; 700], vec![0; 700], vec![u64::MAX, 0, 1, u64::MAX - 1]].concat();
    for budget_bytes in [0, 3000, 1 << 20] {
        assert_eq!(sorted(std::slice::from_ref(&records), budget_bytes), expected(std::slice::from_ref(&records)));
    }
}

#[test]
fn a_folder_that_is_gone_is_a_spill_error() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let mut sorter = PackedSorter::new(0, &gone);
    assert!(matches!(sorter.push(&[1u64; 1000]), Err(IngestError::Spill(_))));
}

#[test]
fn a_sorter_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = PackedSorter::new(0, folder.path());
    sorter.push(&[3u64; 1000]).unwrap();
    assert!(folder.path().read_dir().unwrap().count() > 0);
    drop(sorter);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}
