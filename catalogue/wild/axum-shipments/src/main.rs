//! Where is my shipment? The depot's scanner system speaks a text protocol over TCP, one line each way.

mod depot;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

#[derive(Clone)]
struct App {
    depot: SocketAddr,
    blocking: bool,
}

#[derive(Serialize)]
struct Shipment {
    id: u64,
    place: String,
}

fn last_scan_blocking(depot: SocketAddr, id: u64) -> std::io::Result<String> {
    let mut line = String::new();
    let mut conn = std::net::TcpStream::connect(depot)?;
    writeln!(conn, "SCAN {id}")?;
    BufReader::new(conn).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

async fn last_scan(depot: SocketAddr, id: u64) -> std::io::Result<String> {
    let mut line = String::new();
    let mut conn = tokio::net::TcpStream::connect(depot).await?;
    conn.write_all(format!("SCAN {id}\n").as_bytes()).await?;
    tokio::io::BufReader::new(conn).read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

async fn shipment(State(app): State<App>, Path(id): Path<u64>) -> Result<Json<Shipment>, (StatusCode, String)> {
    tokio::time::sleep(Duration::from_millis(100)).await; // the customer's rights, from the account service
    let scan = if app.blocking {
        last_scan_blocking(app.depot, id)
    } else {
        last_scan(app.depot, id).await
    };
    match scan {
        Ok(place) => Ok(Json(Shipment { id, place })),
        Err(e) => Err((StatusCode::BAD_GATEWAY, e.to_string())),
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: axum-shipments PORT");
    let variant = std::env::var("VARIANT").unwrap_or_else(|_| "flawed".into());
    let depot = depot::start(Duration::from_millis(if variant == "healthy" { 100 } else { 50 }))?;
    let app = App { depot, blocking: variant == "flawed" };
    let routes = Router::new()
        .route("/shipments/{id}", get(shipment))
        .route("/health", get(|| async { "ok" }))
        .with_state(app);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, routes).await
}
