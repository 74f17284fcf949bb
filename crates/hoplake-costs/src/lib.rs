//! What a graph costs an hour: in an object store, and on instances whose local disks hold it.
//!
//! The model is that of A. Chandla (TU Eindhoven, 2024). With a size *S*, *A* graph accesses a second and
//! prices *p*:
//!
//! - object storage: S · p<sub>storage</sub> + ⌈A / a<sub>object</sub>⌉ · p<sub>instance</sub> +
//!   A · p<sub>request</sub>;
//! - local disks: ⌈A / a<sub>disk</sub>⌉ · p<sub>instance</sub>, of an instance that holds S.
//!
//! It is extended by what that study leaves out: accesses that a cache serves, accesses that share a
//! request, prices by the byte, and copies of what lies on disks. [`InstanceTable`] is the dated price table
//! of instances; stores' prices are those of [`hoplake_storage::StoreProfile`].
//!
//! ```
//! use hoplake_costs::{CostModel, InstanceTable, Workload};
//! use hoplake_storage::StoreProfile;
//!
//! let model = CostModel::new(StoreProfile::s3_standard().prices.clone(), InstanceTable::study());
//! // The study's 5 TB are 5 TiB: only they cost the 0.17 $/h that it gives for them.
//! let graph = Workload::new(5 << 40, 1_000.0);
//! let [store, disks] = [model.object_storage(&graph), model.local_disks(&graph)].map(|offer| offer.unwrap().usd_per_hour());
//! assert_eq!((format!("{store:.2}"), format!("{disks:.2}")), ("1.86".into(), "5.70".into()));
//! ```

mod break_even;
mod model;
mod table;

pub use model::{CostModel, HOURS_PER_MONTH, Offer, Workload};
pub use table::{Instance, InstanceTable, TableError};
