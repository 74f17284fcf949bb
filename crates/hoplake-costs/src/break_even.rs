//! The rate of accesses at which local disks become cheaper.
//!
//! Both costs are steps: instances are added one by one. Between two rates at which either side adds one,
//! the object store's cost is a line and that of the disks is constant, so that each such piece has its
//! answer in closed form; going through them in order finds the first. A bisection would need one change of
//! sign, and steps can make several.

use crate::{CostModel, Workload};

/// No one would rent beyond this rate by this table.
const ACCESSES_PER_SECOND_MAX: f64 = 1e7;

impl CostModel {
    /// The lowest rate of accesses a second from which local disks are cheaper than the object store for a
    /// graph used like this; 0 if they are from the first access on. `None` if they are not at any rate up to
    /// 10 million, or if the table cannot serve the graph in both ways.
    pub fn break_even(&self, workload: &Workload) -> Option<f64> {
        let mut from = 0.0;
        while from < ACCESSES_PER_SECOND_MAX {
            // Instances do not change within (from, to].
            let to = self.next_step(from)?;
            let within = workload.at((from + to) / 2.0);
            let store = self.object_storage(&within)?;
            let disks = self.local_disks(&within)?;
            let fixed = store.instances_usd + store.storage_usd;
            let slope = self.usd_per_access(workload) * 3_600.0;
            if fixed + slope * from >= disks.usd_per_hour() {
                return Some(from);
            }
            let meeting = (disks.usd_per_hour() - fixed) / slope;
            if meeting <= to {
                return Some(meeting);
            }
            from = to;
        }
        None
    }

    /// The next rate above `from` at which some instance of the table has to be doubled up.
    fn next_step(&self, from: f64) -> Option<f64> {
        let table = self.table();
        let rates = table.instances.iter().flat_map(|instance| {
            let disks = instance.disk_gb.map(|_| table.disk_accesses_per_second(instance));
            [instance.object_accesses_per_second, disks]
        });
        let step = |rate: f64| {
            let next = ((from / rate).floor() + 1.0) * rate;
            // The quotient of a multiple may be rounded down.
            if next > from { next } else { next + rate }
        };
        rates.flatten().map(step).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::StoreProfile;

    use super::*;
    use crate::InstanceTable;

    fn model(table: InstanceTable) -> CostModel {
        CostModel::new(StoreProfile::s3_standard().prices.clone(), table)
    }

    fn usd(model: &CostModel, workload: &Workload, rate: f64) -> (f64, f64) {
        let workload = workload.at(rate);
        (model.object_storage(&workload).unwrap().usd_per_hour(), model.local_disks(&workload).unwrap().usd_per_hour())
    }

    #[test]
    fn the_study_breaks_even_where_requests_cost_an_instance() {
        let model = model(InstanceTable::study());
        let graph = Workload::new(5 << 40, 0.0);
        let rate = model.break_even(&graph).unwrap();
        // 0.25 + 0.1732 + 0.00144 · A = 5.7
        assert!((rate - 3_664.4).abs() < 1.0, "{rate}");
        let ((store, disks), (above, _)) = (usd(&model, &graph, rate), usd(&model, &graph, rate + 1.0));
        assert!((store - disks).abs() < 1e-9 && above > disks, "{store} {disks} {above}");
    }

    #[test]
    fn it_is_the_lowest_rate_by_trying_all() {
        for table in [InstanceTable::study(), InstanceTable::shipped()] {
            let model = model(table);
            for (gb, hit_ratio, accesses_per_request) in [
                (10, 0.0, 1.0),
                (500, 0.0, 1.0),
                (5_000, 0.0, 1.0),
                (5_000, 0.5, 1.0),
                (500, 0.5, 2.0),
                (5_000, 0.9, 4.0),
            ] {
                let graph = Workload { hit_ratio, accesses_per_request, ..Workload::new(gb * 1_000_000_000, 0.0) };
                let dearer = |rate: &u32| {
                    let (store, disks) = usd(&model, &graph, f64::from(*rate));
                    store >= disks
                };
                let first = (1..100_000).find(dearer).map(f64::from);
                match (model.break_even(&graph), first) {
                    (Some(rate), Some(first)) => assert!(rate <= first && first <= rate + 1.0, "{gb}: {rate} {first}"),
                    (rate, None) => assert!(rate.is_none_or(|rate| rate > 99_999.0), "{gb}: {rate:?}"),
                    (None, Some(first)) => panic!("{gb}: {first}"),
                }
            }
        }
    }

    #[test]
    fn with_caching_and_joining_the_store_stays_cheaper() {
        let model = model(InstanceTable::shipped());
        let graph = Workload { hit_ratio: 0.9, accesses_per_request: 4.0, ..Workload::new(5_000_000_000_000, 0.0) };
        assert_eq!(model.break_even(&graph), None);
        assert_eq!(model.break_even(&Workload::new(100_000_000_000_000, 0.0)), None, "no disks hold 100 TB");
    }
}
