//! Numbers, sizes, times and dollars for people.

use std::time::Duration;

use bytesize::ByteSize;
use indicatif::HumanCount;

/// `1,234,567`.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `1 vertex`, `1,234 vertices`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `17.3 MiB`.
pub fn bytes(number: u64) -> String {
    ByteSize(number).display().iec().to_string()
}

/// `870 µs`, `25.4 ms`, `1.32 s`, `2m 5s`.
pub fn time(time: Duration) -> String {
    let us = time.as_micros();
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.2} s", us as f64 / 1e6),
        _ => humantime::format_duration(Duration::from_secs(time.as_secs())).to_string(),
    }
}

/// `$0`, `$0.0000048`, `$1.30`: two digits that count, however small.
pub fn dollars(usd: f64) -> String {
    if usd <= 0.0 {
        return "$0".into();
    }
    let digits = (1.0 - usd.log10().floor()).max(2.0) as usize;
    format!("${usd:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "vertex", "vertices"), "1 vertex");
        assert_eq!(bytes(17 << 20), "17.0 MiB");
        assert_eq!([time(Duration::from_micros(870)), time(Duration::from_millis(1_320))], ["870 µs", "1.32 s"]);
        assert_eq!(time(Duration::from_secs(125)), "2m 5s");
        assert_eq!([0.0, 0.0000048, 1.3].map(dollars), ["$0", "$0.0000048", "$1.30"]);
    }
}
