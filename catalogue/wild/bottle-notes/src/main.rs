mod metrics;
mod notes;
mod remote;

use std::fmt::Write;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use rand::Rng;
use serde::Serialize;

use metrics::Histogram;
use notes::NoteCache;
use remote::Desk;

const WINES: u32 = 600;

struct Cellar {
    notes: NoteCache,
    archive: Desk,
    racks: Desk,
    requests: Histogram,
    archive_reads: Histogram,
    rack_reads: Histogram,
}

#[derive(Serialize)]
struct Advice {
    wine: u32,
    vintage: u32,
    bin: String,
    note: String,
}

impl Cellar {
    async fn note(&self, wine: u32) -> io::Result<String> {
        if let Some(note) = self.notes.get(wine) {
            return Ok(note);
        }
        let began = Instant::now();
        let note = self.archive.ask(&wine.to_string()).await?;
        self.archive_reads.observe(began.elapsed());
        self.notes.put(wine, note.clone());
        Ok(note)
    }

    async fn advice(&self, wine: u32) -> Result<Json<Advice>, StatusCode> {
        let began = Instant::now();
        let bin = self.racks.ask(&wine.to_string()).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        self.rack_reads.observe(began.elapsed());
        let note = self.note(wine).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        self.requests.observe(began.elapsed());
        Ok(Json(Advice { wine, vintage: 1990 + wine % 31, bin, note }))
    }
}

async fn recommend(State(cellar): State<Arc<Cellar>>) -> Result<Json<Advice>, StatusCode> {
    let wine = rand::thread_rng().gen_range(1..=WINES);
    cellar.advice(wine).await
}

async fn wine(State(cellar): State<Arc<Cellar>>, Path(wine): Path<u32>) -> Result<Json<Advice>, StatusCode> {
    if !(1..=WINES).contains(&wine) {
        return Err(StatusCode::NOT_FOUND);
    }
    cellar.advice(wine).await
}

async fn show_metrics(State(cellar): State<Arc<Cellar>>) -> impl IntoResponse {
    let mut out = String::from("# TYPE http_request_duration_seconds histogram\n");
    cellar.requests.write(&mut out, "http_request_duration_seconds", "method=\"GET\",route=\"/recommendation\"");
    out.push_str("# TYPE remote_call_duration_seconds histogram\n");
    cellar.archive_reads.write(&mut out, "remote_call_duration_seconds", "remote=\"archive\"");
    cellar.rack_reads.write(&mut out, "remote_call_duration_seconds", "remote=\"racks\"");
    let notes = &cellar.notes;
    let _ = write!(
        out,
        "# TYPE cache_hits_total counter\ncache_hits_total{{cache=\"notes\"}} {}\n\
         # TYPE cache_misses_total counter\ncache_misses_total{{cache=\"notes\"}} {}\n\
         # TYPE cache_entries gauge\ncache_entries{{cache=\"notes\"}} {}\n",
        notes.hits.load(Ordering::Relaxed),
        notes.misses.load(Ordering::Relaxed),
        notes.len(),
    );
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], out)
}

#[tokio::main]
async fn main() {
    let port: u16 = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080);
    let variant = std::env::var("VARIANT").unwrap_or_default();
    let rack_ms = if variant == "healthy" { 220 } else { 70 };
    remote::stand_in(port + 1, 4, Duration::from_millis(40), remote::note_of);
    remote::stand_in(port + 2, 10_000, Duration::from_millis(rack_ms), remote::bin_of);

    let ttl = match variant.as_str() {
        "flawed" => Duration::from_millis(300),
        _ => Duration::from_secs(300),
    };
    let cellar = Arc::new(Cellar {
        notes: NoteCache::new(ttl),
        archive: Desk::new(port + 1),
        racks: Desk::new(port + 2),
        requests: Histogram::default(),
        archive_reads: Histogram::default(),
        rack_reads: Histogram::default(),
    });
    for wine in 1..=WINES {
        cellar.notes.put(wine, remote::note_of(&wine.to_string()));
    }
    let routes = Router::new()
        .route("/recommendation", get(recommend))
        .route("/wines/:wine", get(wine))
        .route("/health", get(|| async { "ok" }))
        .route("/metrics", get(show_metrics))
        .with_state(cellar);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("port is free");
    println!("bottle-notes listens on {port}");
    axum::serve(listener, routes).await.expect("server runs");
}
