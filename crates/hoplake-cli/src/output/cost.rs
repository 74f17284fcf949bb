//! The cost of a writer: its reads and writes, and their price.

use hoplake::{Cost, PriceList};
use serde_json::{Value, json};

use super::numbers;

/// `1 request read 8 B, 3 wrote 2.1 KiB, $0.000015`; without dollars where all is free.
pub fn text(cost: &Cost, prices: &PriceList) -> String {
    let requests = numbers::counted(cost.requests, "request", "requests");
    let read = numbers::bytes(cost.store_bytes);
    let wrote = numbers::bytes(cost.put_bytes);
    let usd = cost.usd(prices);
    let dollars = if usd > 0.0 { format!(", {}", numbers::dollars(usd)) } else { String::new() };
    format!("{requests} read {read}, {} wrote {wrote}{dollars}", numbers::count(cost.puts))
}

/// The same as a JSON object.
pub fn json(cost: &Cost, prices: &PriceList) -> Value {
    json!({
        "waves": cost.waves,
        "waits": cost.waits,
        "requests": cost.requests,
        "store_bytes": cost.store_bytes,
        "puts": cost.puts,
        "put_bytes": cost.put_bytes,
        "usd": cost.usd(prices),
    })
}

#[cfg(test)]
mod tests {
    use hoplake::StoreProfile;

    use super::*;

    #[test]
    fn reads_and_writes_are_priced_apart() {
        let cost = Cost { requests: 1, store_bytes: 8, puts: 3, put_bytes: 2_150, ..Cost::default() };
        // 1 GET at $0.0004 and 3 PUTs at $0.005 a thousand.
        let standard = StoreProfile::s3_standard();
        assert_eq!(text(&cost, &standard.prices), "1 request read 8 B, 3 wrote 2.1 KiB, $0.000015");
        assert!((json(&cost, &standard.prices)["usd"].as_f64().unwrap() - 15.4e-6).abs() < 1e-12);
        let free = StoreProfile::of_url("file:///graph");
        assert_eq!(text(&cost, &free.prices), "1 request read 8 B, 3 wrote 2.1 KiB");
    }
}
