//! Metrics of the service, as text for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::runtime::Handle;

const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Default)]
pub struct Metrics {
    pub pending: AtomicI64,
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
    failed: AtomicU64,
}

impl Metrics {
    pub fn observe(&self, took: Duration, ok: bool) {
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS) {
            if took.as_secs_f64() <= bound {
                bucket.fetch_add(1, Relaxed);
            }
        }
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add(took.as_micros() as u64, Relaxed);
        if !ok {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    pub fn text(&self) -> String {
        let endpoint = "method=\"GET\",endpoint=\"/winches/:id/rating\"";
        let mut out = String::new();
        let (count, failed) = (self.count.load(Relaxed), self.failed.load(Relaxed));
        out += "# TYPE axum_http_requests_total counter\n";
        let _ = writeln!(out, "axum_http_requests_total{{{endpoint},status=\"200\"}} {}", count - failed);
        let _ = writeln!(out, "axum_http_requests_total{{{endpoint},status=\"502\"}} {failed}");
        out += "# TYPE axum_http_requests_pending gauge\n";
        let _ = writeln!(out, "axum_http_requests_pending{{{endpoint}}} {}", self.pending.load(Relaxed));
        out += "# TYPE axum_http_requests_duration_seconds histogram\n";
        let name = "axum_http_requests_duration_seconds";
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS) {
            let _ = writeln!(out, "{name}_bucket{{{endpoint},le=\"{bound}\"}} {}", bucket.load(Relaxed));
        }
        let _ = writeln!(out, "{name}_bucket{{{endpoint},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{endpoint}}} {}", self.micros.load(Relaxed) as f64 / 1e6);
        let _ = writeln!(out, "{name}_count{{{endpoint}}} {count}");
        let runtime = Handle::current().metrics();
        out += "# TYPE tokio_workers_count gauge\n";
        let _ = writeln!(out, "tokio_workers_count {}", runtime.num_workers());
        out += "# TYPE tokio_live_tasks_count gauge\n";
        let _ = writeln!(out, "tokio_live_tasks_count {}", runtime.num_alive_tasks());
        out += "# TYPE tokio_global_queue_depth gauge\n";
        let _ = writeln!(out, "tokio_global_queue_depth {}", runtime.global_queue_depth());
        out
    }
}
