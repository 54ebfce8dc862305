mod bench;
mod climate;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use rand::Rng;
use serde::Serialize;

use bench::Bench;
use climate::Climate;

const BENCHES: usize = 12;
const POTS_PER_BENCH: u32 = 400;

struct House {
    benches: Vec<Mutex<Bench>>,
    climate: Climate,
    variant: String,
}

#[derive(Serialize)]
struct Move {
    from: usize,
    to: usize,
    pots: u32,
    humidity: u8,
    label: String,
}

#[derive(Serialize)]
struct BenchView {
    number: usize,
    pots: u32,
    moves: u64,
}

impl House {
    fn open(variant: String, climate: Climate) -> Self {
        let benches = (0..BENCHES).map(|_| Mutex::new(Bench::new(POTS_PER_BENCH))).collect();
        House { benches, climate, variant }
    }

    fn rotate(&self, from: usize, to: usize, humidity: u8) -> Move {
        let (first, second) = match self.variant.as_str() {
            "flawed" => (from, to),
            _ => (from.min(to), from.max(to)),
        };
        let mut one = self.benches[first].lock().unwrap();
        one.check_tags();
        let mut other = self.benches[second].lock().unwrap();
        let (source, target) = if first == from { (&mut one, &mut other) } else { (&mut other, &mut one) };
        let pots = source.take(humidity as u32 % 4 + 1);
        target.put(pots);
        Move { from, to, pots, humidity, label: target.label() }
    }
}

async fn rotate(State(house): State<Arc<House>>) -> Result<Json<Move>, StatusCode> {
    let (from, to) = {
        let mut random = rand::thread_rng();
        let from = random.gen_range(0..BENCHES);
        (from, (from + random.gen_range(1..BENCHES)) % BENCHES)
    };
    let humidity = house.climate.humidity(to).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(Json(house.rotate(from, to, humidity)))
}

async fn show(State(house): State<Arc<House>>, Path(number): Path<usize>) -> Result<Json<BenchView>, StatusCode> {
    let bench = house.benches.get(number).ok_or(StatusCode::NOT_FOUND)?.lock().unwrap();
    Ok(Json(BenchView { number, pots: bench.pots(), moves: bench.moves() }))
}

async fn up() -> &'static str {
    "ok"
}

#[tokio::main]
async fn main() {
    let port: u16 = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080);
    let variant = std::env::var("VARIANT").unwrap_or_default();
    climate::serve_station(port + 1, Duration::from_millis(if variant == "healthy" { 200 } else { 80 }));
    let house = Arc::new(House::open(variant, Climate::new(port + 1)));
    let routes = Router::new()
        .route("/rotations/next", get(rotate))
        .route("/benches/:number", get(show))
        .route("/up", get(up))
        .with_state(house);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("port is free");
    println!("orchid-benches listens on {port}");
    axum::serve(listener, routes).await.expect("server runs");
}
