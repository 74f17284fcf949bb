//! The comparison as a table or as one JSON object.

use hoplake_costs::{Offer, Workload};
use serde_json::{Value, json};

use super::{Comparison, size};
use crate::output::{numbers, print_line, tables::table};

/// A way to serve the graph, and what it costs if the table of instances has any for it.
struct Row<'a> {
    id: &'static str,
    name: &'static str,
    workload: Workload,
    offer: Option<Offer<'a>>,
    /// From how many accesses a second disks are cheaper, for rows without disks.
    break_even: Option<Option<f64>>,
}

fn rows(comparison: &Comparison) -> Vec<Row<'_>> {
    let Comparison { model, plain, improved } = comparison;
    let stored = |id, name, workload: Workload| {
        let offer = model.object_storage(&workload);
        let break_even = Some(model.break_even(&workload));
        Row { id, name, workload, offer, break_even }
    };
    let mut rows = vec![stored("object_storage", "object storage", *plain)];
    rows.extend(improved.map(|workload| stored("object_storage_cached", "… with caching and joining", workload)));
    let id = "local_disks";
    let name = "instances with local disks";
    let offer = model.local_disks(plain);
    rows.push(Row { id, name, workload: *plain, offer, break_even: None });
    rows
}

/// Prints a table for people.
pub fn text(comparison: &Comparison) -> anyhow::Result<()> {
    let Comparison { model, plain, .. } = comparison;
    let header = ["$/h", "instances", "", "storage", "requests", "total", "disks cheaper from"];
    let mut table = table(&header, &[2, 3, 4, 5, 6]);
    for row in rows(comparison) {
        let from = row.break_even.map_or(String::new(), |rate| match rate {
            Some(rate) => format!("{}/s", numbers::count(rate.ceil() as u64)),
            None => "no rate".into(),
        });
        let cells = match &row.offer {
            Some(offer) => {
                let instances = format!("{} × {}", numbers::count(offer.count), offer.instance.name);
                let usd = [offer.instances_usd, offer.storage_usd, offer.requests_usd, offer.usd_per_hour()];
                [instances].into_iter().chain(usd.map(|usd| format!("{usd:.2}"))).collect()
            }
            None => vec!["none in the price table".to_owned(); 1],
        };
        let gap = vec![String::new(); 5 - cells.len()];
        table.add_row([row.name.to_owned()].into_iter().chain(cells).chain(gap).chain([from]));
    }
    let prices = model.prices();
    let instances = model.table();
    print_line(format_args!(
        "{} and {} accesses a second\n\n{table}\n\nprices: {}, as of {}; instances, as of {}: {}",
        size(comparison),
        numbers::count(plain.accesses_per_second.round() as u64),
        prices.name,
        prices.as_of,
        instances.as_of,
        instances.source
    ))
}

/// Prints one JSON object.
pub fn json(comparison: &Comparison) -> anyhow::Result<()> {
    let Comparison { model, plain, .. } = comparison;
    let plans = rows(comparison).into_iter().map(|row| plan_json(&row)).collect::<Vec<_>>();
    print_line(json!({
        "size_bytes": plain.size_bytes,
        "accesses_per_second": plain.accesses_per_second,
        "plans": plans,
        "prices": {"name": model.prices().name, "as_of": model.prices().as_of},
        "instances": {"as_of": model.table().as_of, "source": model.table().source},
    }))
}

fn plan_json(row: &Row<'_>) -> Value {
    let mut plan = json!({"plan": row.id});
    if let Some(break_even) = row.break_even {
        plan["hit_ratio"] = json!(row.workload.hit_ratio);
        plan["accesses_per_request"] = json!(row.workload.accesses_per_request);
        plan["requests_per_second"] = json!(row.workload.requests_per_second());
        plan["local_disks_cheaper_from_accesses_per_second"] = json!(break_even);
    }
    // Null if the price table has no instance for it.
    plan["instance"] = json!(row.offer.map(|offer| &offer.instance.name));
    plan["instance_count"] = json!(row.offer.map(|offer| offer.count));
    plan["instances_usd_per_hour"] = json!(row.offer.map(|offer| offer.instances_usd));
    plan["storage_usd_per_hour"] = json!(row.offer.map(|offer| offer.storage_usd));
    plan["requests_usd_per_hour"] = json!(row.offer.map(|offer| offer.requests_usd));
    plan["usd_per_hour"] = json!(row.offer.map(|offer| offer.usd_per_hour()));
    plan
}
