use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BOUNDS_MS: [u64; 9] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500];

#[derive(Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_MS.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, took: Duration) {
        for (bound, bucket) in BOUNDS_MS.iter().zip(&self.buckets) {
            if took <= Duration::from_millis(*bound) {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    pub fn write(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let count = self.count.load(Ordering::Relaxed);
        for (bound, bucket) in BOUNDS_MS.iter().zip(&self.buckets) {
            let le = *bound as f64 / 1000.0;
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{le}\"}} {}", bucket.load(Ordering::Relaxed));
        }
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}
