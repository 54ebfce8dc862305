//! Moves of goods between the bins of an aisle: aisle-moves PORT ERP-URL

mod erp;
mod stocktaking;
mod warehouse;

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use erp::Erp;
use warehouse::{Order, Refused, Warehouse};

#[derive(Clone)]
struct App {
    warehouse: Arc<Warehouse>,
    erp: Erp,
}

#[derive(Deserialize)]
struct Move {
    from: usize,
    to: usize,
    pieces: u64,
}

#[derive(Serialize)]
struct Moved {
    aisle: String,
    left_in_source: u64,
    now_in_target: u64,
}

async fn move_pieces(
    State(app): State<App>,
    Path(aisle): Path<String>,
    Query(wanted): Query<Move>,
) -> Result<Json<Moved>, StatusCode> {
    // In a task of its own: a move that has begun is finished, even if the scanner hangs up.
    tokio::spawn(async move {
        app.erp.book(&aisle, wanted.from, wanted.to).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        let bins = app.warehouse.aisle(&aisle).ok_or(StatusCode::NOT_FOUND)?;
        let (left, now) = bins.carry(wanted.from, wanted.to, wanted.pieces).await.map_err(|refused| match refused {
            Refused::NoSuchBin => StatusCode::NOT_FOUND,
            Refused::SameBin => StatusCode::BAD_REQUEST,
            Refused::TooFew => StatusCode::CONFLICT,
        })?;
        Ok(Json(Moved { aisle, left_in_source: left, now_in_target: now }))
    })
    .await
    .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().ok_or("no port")?.parse()?;
    let erp = Erp::new(args.next().ok_or("no ERP")?);
    let is_flawed = std::env::var("VARIANT").map_or(true, |variant| variant == "flawed");
    let order = if is_flawed { Order::AsTheyCome } else { Order::LowerFirst };
    let warehouse = Arc::new(Warehouse::new(&["a", "b", "c"], 6, order));
    tokio::spawn(stocktaking::run(Arc::clone(&warehouse), erp.clone()));
    let app = Router::new().route("/aisles/{aisle}/move", get(move_pieces)).with_state(App { warehouse, erp });
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
