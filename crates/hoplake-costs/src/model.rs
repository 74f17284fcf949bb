//! Dollars an hour for a graph and its accesses.

use hoplake_storage::PriceList;

use crate::{Instance, InstanceTable};

/// Hours in a month, on average.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// A graph and how it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// What the graph takes, in bytes.
    pub size_bytes: u64,
    /// Look-ups of one vertex's neighbours, a second.
    pub accesses_per_second: f64,
    /// The share of accesses, from 0 to 1, that a cache serves without a request to the store.
    pub hit_ratio: f64,
    /// How many of the others share a request.
    pub accesses_per_request: f64,
    /// What a request brings, in bytes. Counts where reading is paid by the byte.
    pub bytes_per_request: f64,
    /// The number of instances whose disks hold a copy of the graph. A lost instance loses its disks.
    pub copies: u64,
}

impl Workload {
    /// A graph of this size without caching and joining, one copy on disks: what the study assumes.
    pub fn new(size_bytes: u64, accesses_per_second: f64) -> Self {
        let hit_ratio = 0.0;
        let accesses_per_request = 1.0;
        let bytes_per_request = 65_536.0;
        Self { size_bytes, accesses_per_second, hit_ratio, accesses_per_request, bytes_per_request, copies: 1 }
    }

    /// The same graph at another rate.
    pub fn at(self, accesses_per_second: f64) -> Self {
        Self { accesses_per_second, ..self }
    }

    /// Requests to the store, a second.
    pub fn requests_per_second(&self) -> f64 {
        self.accesses_per_second * self.requests_per_access()
    }

    pub(crate) fn requests_per_access(&self) -> f64 {
        (1.0 - self.hit_ratio) / self.accesses_per_request
    }
}

/// A way to serve a workload, and its dollars an hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer<'a> {
    /// Which instances.
    pub instance: &'a Instance,
    /// How many of them.
    pub count: u64,
    /// What they cost.
    pub instances_usd: f64,
    /// The cost of storing the graph, in addition.
    pub storage_usd: f64,
    /// What requests and the bytes they bring cost.
    pub requests_usd: f64,
}

impl Offer<'_> {
    /// All of it together.
    pub fn usd_per_hour(&self) -> f64 {
        self.instances_usd + self.storage_usd + self.requests_usd
    }
}

/// Prices of a store and of instances.
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    prices: PriceList,
    table: InstanceTable,
}

impl CostModel {
    /// A model of these prices.
    pub fn new(prices: PriceList, table: InstanceTable) -> Self {
        Self { prices, table }
    }

    /// What the store charges.
    pub fn prices(&self) -> &PriceList {
        &self.prices
    }

    /// What instances cost.
    pub fn table(&self) -> &InstanceTable {
        &self.table
    }

    /// The cheapest way to serve the workload from the object store; `None` if the table has no instance
    /// for that. Without accesses no instance runs.
    pub fn object_storage(&self, workload: &Workload) -> Option<Offer<'_>> {
        let storage_usd = workload.size_bytes as f64 / 1e9 * self.prices.storage_usd_per_gb_month / HOURS_PER_MONTH;
        let requests_usd = workload.accesses_per_second * self.usd_per_access(workload) * 3_600.0;
        let offers = self.table.instances.iter().filter_map(|instance| {
            let count = times(workload.accesses_per_second, instance.object_accesses_per_second?);
            Some(Offer { instance, count, instances_usd: usd(count, instance), storage_usd, requests_usd })
        });
        cheapest(offers)
    }

    /// The cheapest instances that each hold the graph on their disks; `None` if no instance of the table can.
    /// They run even without accesses, or the graph would be lost.
    pub fn local_disks(&self, workload: &Workload) -> Option<Offer<'_>> {
        let holds = |instance: &&Instance| instance.disk_gb.is_some_and(|gb| gb * 1e9 >= workload.size_bytes as f64);
        let offers = self.table.instances.iter().filter(holds).map(|instance| {
            let rate = self.table.disk_accesses_per_second(instance);
            // Copies serve accesses as well: the larger of both numbers suffices.
            let count = times(workload.accesses_per_second, rate).max(workload.copies.max(1));
            Offer { instance, count, instances_usd: usd(count, instance), storage_usd: 0.0, requests_usd: 0.0 }
        });
        cheapest(offers)
    }

    /// Dollars for the requests and bytes of one access.
    pub(crate) fn usd_per_access(&self, workload: &Workload) -> f64 {
        let request = self.prices.get_usd_per_1000 / 1e3;
        let bytes = workload.bytes_per_request / 1e9 * self.prices.read_usd_per_gb;
        workload.requests_per_access() * (request + bytes)
    }
}

/// How many instances of this rate serve these accesses a second.
fn times(accesses_per_second: f64, rate: f64) -> u64 {
    // No half instance can be rented.
    (accesses_per_second / rate).ceil() as u64
}

fn usd(count: u64, instance: &Instance) -> f64 {
    count as f64 * instance.usd_per_hour
}

fn cheapest<'a>(offers: impl Iterator<Item = Offer<'a>>) -> Option<Offer<'a>> {
    offers.min_by(|one, other| one.usd_per_hour().total_cmp(&other.usd_per_hour()))
}

#[cfg(test)]
mod tests {
    use hoplake_storage::StoreProfile;

    use super::*;

    /// What the study calls 5 TB.
    const STUDY_BYTES: u64 = 5 << 40;

    fn study() -> CostModel {
        CostModel::new(StoreProfile::s3_standard().prices.clone(), InstanceTable::study())
    }

    fn cents(usd: f64) -> String {
        format!("{usd:.2}")
    }

    fn parts(offer: &Offer<'_>) -> [String; 4] {
        [offer.instances_usd, offer.storage_usd, offer.requests_usd, offer.usd_per_hour()].map(cents)
    }

    #[test]
    fn the_studys_knowledge_graph() {
        let model = study();
        let graph = Workload::new(STUDY_BYTES, 1_000.0);
        assert_eq!(parts(&model.object_storage(&graph).unwrap()), ["0.25", "0.17", "1.44", "1.86"]);
        let disks = model.local_disks(&graph).unwrap();
        assert_eq!((disks.count, parts(&disks)), (1, ["5.70", "0.00", "0.00", "5.70"].map(str::to_owned)));
    }

    #[test]
    fn the_studys_fraud_detection() {
        let model = study();
        let graph = Workload::new(STUDY_BYTES, 100_000.0);
        assert_eq!(parts(&model.object_storage(&graph).unwrap()), ["5.00", "0.17", "144.00", "149.17"]);
        let disks = model.local_disks(&graph).unwrap();
        assert_eq!((disks.count, cents(disks.usd_per_hour())), (2, "11.40".into()));
    }

    #[test]
    fn caching_and_joining_divide_the_requests() {
        let model = study();
        let graph = Workload { hit_ratio: 0.9, accesses_per_request: 4.0, ..Workload::new(STUDY_BYTES, 100_000.0) };
        assert_eq!(graph.requests_per_second().round(), 2_500.0);
        assert_eq!(parts(&model.object_storage(&graph).unwrap()), ["5.00", "0.17", "3.60", "8.77"]);
    }

    #[test]
    fn express_charges_by_the_byte_too() {
        let model = CostModel::new(StoreProfile::s3_express().prices.clone(), InstanceTable::study());
        let graph = Workload { bytes_per_request: 1e6, ..Workload::new(1_000_000_000_000, 1_000.0) };
        // 3.6 M requests at 0.03 $ a million, 3,600 GB at 0.0006 $, 1,000 GB at 0.11 $ a month.
        assert_eq!(parts(&model.object_storage(&graph).unwrap()), ["0.25", "0.15", "2.27", "2.67"]);
    }

    #[test]
    fn the_cheapest_instances_that_hold_the_graph_are_taken() {
        let model = CostModel::new(StoreProfile::s3_standard().prices.clone(), InstanceTable::shipped());
        let taken = |gb: u64, accesses: f64, copies| {
            let graph = Workload { copies, ..Workload::new(gb * 1_000_000_000, accesses) };
            model.local_disks(&graph).map(|offer| (offer.instance.name.as_str(), offer.count))
        };
        assert_eq!(taken(100, 1.0, 1), Some(("m6id.large", 1)));
        assert_eq!(taken(1_000, 1.0, 1), Some(("i3en.large", 1)));
        assert_eq!(taken(5_000, 1_000.0, 1), Some(("i3en.2xlarge", 1)));
        assert_eq!(taken(5_000, 1_000.0, 3), Some(("i3en.2xlarge", 3)));
        // A rate that needs processors rather than disks: 50,000 / (32 · 520.8) = 3.0001, so four of those.
        assert_eq!(taken(5_000, 50_000.0, 1), Some(("m6id.24xlarge", 1)));
        assert_eq!(taken(60_001, 1.0, 1), None);
    }

    #[test]
    fn a_measured_rate_replaces_the_tables() {
        let table = InstanceTable::study().with_object_accesses_per_second(20_000.0);
        let model = CostModel::new(StoreProfile::s3_standard().prices.clone(), table);
        assert_eq!(model.object_storage(&Workload::new(1, 100_000.0)).unwrap().count, 5);
        let idle = model.object_storage(&Workload::new(STUDY_BYTES, 0.0)).unwrap();
        assert_eq!(parts(&idle), ["0.00", "0.17", "0.00", "0.17"]);
        assert_eq!(model.local_disks(&Workload::new(STUDY_BYTES, 0.0)).unwrap().count, 1);
    }
}
