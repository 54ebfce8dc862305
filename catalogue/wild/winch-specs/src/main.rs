//! Certified loads of winches, for riggers.

mod metrics;
mod registry;

use std::env;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;

struct Plan {
    blocking_threads: usize,
    registry_ms: u64,
}

struct Desk {
    registry: registry::Client,
    metrics: metrics::Metrics,
}

fn plan(variant: &str) -> Plan {
    match variant {
        "flawed" => Plan { blocking_threads: 6, registry_ms: 40 },
        "mended" => Plan { blocking_threads: 192, registry_ms: 40 },
        _ => Plan { blocking_threads: 192, registry_ms: 250 },
    }
}

async fn rating(State(desk): State<Arc<Desk>>, Path(winch): Path<String>) -> Response {
    let began = Instant::now();
    desk.metrics.pending.fetch_add(1, Relaxed);
    let shared = Arc::clone(&desk);
    let record = tokio::task::spawn_blocking(move || shared.registry.record(&winch)).await;
    desk.metrics.pending.fetch_sub(1, Relaxed);
    let answer = match record {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        _ => (StatusCode::BAD_GATEWAY, "registry unavailable").into_response(),
    };
    desk.metrics.observe(began.elapsed(), answer.status().is_success());
    answer
}

async fn scrape(State(desk): State<Arc<Desk>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], desk.metrics.text()).into_response()
}

async fn serve(port: u16, registry_ms: u64) -> std::io::Result<()> {
    tokio::spawn(registry::stand_in(port + 1, Duration::from_millis(registry_ms)));
    let desk = Arc::new(Desk {
        registry: registry::Client::new(port + 1),
        metrics: metrics::Metrics::default(),
    });
    let routes = Router::new()
        .route("/winches/:id/rating", get(rating))
        .route("/metrics", get(scrape))
        .route("/live", get(|| async { "ok" }))
        .with_state(desk);
    let listener = tokio::net::TcpListener::bind(("0.0.0.0", port)).await?;
    axum::serve(listener, routes).await
}

fn main() -> std::io::Result<()> {
    let port = env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080);
    let plan = plan(&env::var("VARIANT").unwrap_or_default());
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(plan.blocking_threads)
        .enable_all()
        .build()?
        .block_on(serve(port, plan.registry_ms))
}
