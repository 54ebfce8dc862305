//! Weighbridge of a grain store: each lorry's weight goes to the tickets' journal before the barrier opens.

mod journal;

use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use journal::{Journal, Sync};

const CROPS: [&str; 5] = ["wheat", "barley", "rye", "oats", "rapeseed"];

struct Store {
    journal: Journal,
    moisture_lab: Option<Duration>,
}

#[derive(Serialize)]
struct Ticket {
    number: u64,
    lorry: u32,
    crop: &'static str,
    gross_kg: u32,
    tare_kg: u32,
    net_kg: u32,
}

fn weigh(lorry: u32) -> (u32, u32) {
    let tare = 9_000 + lorry.wrapping_mul(37) % 4_000;
    let load = 14_000 + lorry.wrapping_mul(7_919) % 13_000;
    (tare + load, tare)
}

fn axles(gross_kg: u32) -> [u32; 5] {
    let shares = [17, 22, 22, 20, 19];
    shares.map(|share| gross_kg * share / 100)
}

async fn ticket(
    State(store): State<Arc<Store>>,
    Path(lorry): Path<u32>,
) -> Result<Json<Ticket>, StatusCode> {
    let (gross_kg, tare_kg) = weigh(lorry);
    let crop = CROPS[lorry as usize % CROPS.len()];
    if let Some(wait) = store.moisture_lab {
        tokio::time::sleep(wait).await;
    }
    let mut lines: Vec<String> = axles(gross_kg)
        .iter()
        .enumerate()
        .map(|(axle, kg)| format!("{lorry};axle {};{kg}\n", axle + 1))
        .collect();
    lines.push(format!("{lorry};{crop};{gross_kg};{tare_kg};{}\n", gross_kg - tare_kg));
    let number = store
        .journal
        .append(lines)
        .await
        .ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(Ticket {
        number,
        lorry,
        crop,
        gross_kg,
        tare_kg,
        net_kg: gross_kg - tare_kg,
    }))
}

async fn health() -> &'static str {
    "ok"
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let variant = env::var("VARIANT").unwrap_or_else(|_| "flawed".into());
    let port: u16 = env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8090);
    let folder = env::var("TMPDIR").unwrap_or_else(|_| "/tmp".into());
    let sync = if variant == "flawed" { Sync::Line } else { Sync::Batch };
    let store = Store {
        journal: Journal::open(format!("{folder}/tickets.journal"), sync)?,
        moisture_lab: (variant == "healthy").then_some(Duration::from_millis(200)),
    };
    let routes = Router::new()
        .route("/lorries/:lorry/ticket", get(ticket))
        .route("/health", get(health))
        .with_state(Arc::new(store));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, routes).await
}
