use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use prometheus::{Encoder, Histogram, HistogramOpts, IntGauge, Registry, TextEncoder};
use serde_json::{json, Value};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// The warehouse accepts this many questions at a time from one shop.
struct Warehouse {
    lines: Semaphore,
    answers_in: Duration,
}

impl Warehouse {
    /// Pieces on the shelf, or None if all lines are taken.
    async fn count(&self, sku: &str) -> Option<u64> {
        let _line = self.lines.try_acquire().ok()?;
        sleep(self.answers_in).await;
        Some(sku.bytes().map(u64::from).sum::<u64>() % 40)
    }
}

struct Shop {
    warehouse: Warehouse,
    registry: Registry,
    took: Histogram,
    present: IntGauge,
}

async fn stock(State(shop): State<Arc<Shop>>, Path(sku): Path<String>) -> Json<Value> {
    let begin = Instant::now();
    shop.present.inc();
    let answer = match shop.warehouse.count(&sku).await {
        Some(pieces) => json!({"sku": sku, "pieces": pieces, "deliverable": pieces > 0, "warehouse": "Malmö"}),
        None => json!({"error": {"code": 1042, "message": "warehouse busy"}}),
    };
    shop.present.dec();
    shop.took.observe(begin.elapsed().as_secs_f64());
    Json(answer)
}

async fn metrics(State(shop): State<Arc<Shop>>) -> Vec<u8> {
    let mut text = Vec::new();
    TextEncoder::new().encode(&shop.registry.gather(), &mut text).expect("metrics are plain text");
    text
}

#[tokio::main]
async fn main() {
    let variant = env::var("VARIANT").unwrap_or_default();
    let (lines, millis) = match variant.as_str() {
        "mended" => (500, 120),
        "healthy" => (500, 190),
        _ => (8, 120),
    };
    let registry = Registry::new();
    let buckets = vec![0.001, 0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0];
    let took = Histogram::with_opts(HistogramOpts::new("http_request_duration_seconds", "Time per request.").buckets(buckets)).unwrap();
    let present = IntGauge::new("http_requests_in_flight", "Requests being answered.").unwrap();
    registry.register(Box::new(took.clone())).unwrap();
    registry.register(Box::new(present.clone())).unwrap();

    let warehouse = Warehouse { lines: Semaphore::new(lines), answers_in: Duration::from_millis(millis) };
    let shop = Arc::new(Shop { warehouse, registry, took, present });
    let app = Router::new().route("/stock/{sku}", get(stock)).route("/metrics", get(metrics)).with_state(shop);

    let address = format!("127.0.0.1:{}", env::args().nth(1).unwrap_or("8080".into()));
    let listener = tokio::net::TcpListener::bind(&address).await.expect("port is free");
    axum::serve(listener, app).await.unwrap();
}
