//! Stand-in for the scanners in the yard, which are a service of their own.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, State},
    http::StatusCode,
    routing::get,
    Json, Router,
};
use serde_json::{json, Value};
use tokio::sync::Semaphore;

struct Yard {
    desks: Semaphore,
    queue: Arc<Semaphore>,
    scan: Duration,
}

async fn scan(State(yard): State<Arc<Yard>>, Path(board): Path<u32>) -> Result<Json<Value>, StatusCode> {
    let place = yard.queue.clone().acquire_owned().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let job = tokio::spawn(async move {
        let _place = place;
        let _desk = yard.desks.acquire().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        tokio::time::sleep(yard.scan).await;
        Ok(Json(json!({
            "knots": board % 11,
            "warp_mm": (board % 7) as f32 * 0.8,
            "moisture": 9.0 + (board % 13) as f32,
        })))
    });
    job.await.unwrap_or(Err(StatusCode::INTERNAL_SERVER_ERROR))
}

pub async fn start(port: u16, desks: usize, scan_time: Duration) -> std::io::Result<()> {
    let yard = Arc::new(Yard {
        desks: Semaphore::new(desks),
        queue: Arc::new(Semaphore::new(400)),
        scan: scan_time,
    });
    let routes = Router::new().route("/scan/:board", get(scan)).with_state(yard);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
}
