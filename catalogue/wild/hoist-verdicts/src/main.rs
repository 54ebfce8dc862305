//! Says whether a lift may run: its entry in the registry, the age of its last inspection, the load it is used for.

mod journal;
mod registry;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use journal::{Journal, Level};

struct Desk {
    journal: Journal,
    registry_port: u16,
}

#[derive(Deserialize)]
struct Ask {
    lift: String,
    persons: u32,
}

#[derive(Serialize)]
struct Verdict {
    lift: String,
    may_run: bool,
    load_kg: u32,
    due_in_months: i64,
    remarks: Vec<&'static str>,
}

async fn verdict(State(desk): State<Arc<Desk>>, Query(ask): Query<Ask>) -> Result<Json<Verdict>, (StatusCode, String)> {
    desk.journal.note(Level::Info, &ask.lift, &format!("asked for {} persons", ask.persons));
    let lift = registry::look_up(desk.registry_port, &ask.lift).await.map_err(|error| {
        desk.journal.note(Level::Error, &ask.lift, &error.to_string());
        (StatusCode::BAD_GATEWAY, error.to_string())
    })?;
    desk.journal.note(Level::Info, &ask.lift, &format!("registry: {} months since inspection", lift.months_since));

    let every = if lift.built < 1985 { 6 } else { 12 };
    let due_in_months = i64::from(every) - i64::from(lift.months_since);
    desk.journal.note(Level::Info, &ask.lift, &format!("built {}: inspected every {every} months", lift.built));
    desk.journal.note(Level::Info, &ask.lift, &format!("due in {due_in_months} months"));
    desk.journal.note(Level::Info, &ask.lift, &format!("plate {} kg, used for {} kg", lift.load_kg, ask.persons * 75));
    let mut remarks = Vec::new();
    if due_in_months < 0 {
        remarks.push("inspection is overdue");
    }
    if ask.persons * 75 > lift.load_kg {
        remarks.push("load is above the plate");
    }
    let answer = Verdict {
        may_run: remarks.is_empty(),
        lift: ask.lift,
        load_kg: lift.load_kg,
        due_in_months,
        remarks,
    };
    if answer.may_run {
        desk.journal.note(Level::Info, &answer.lift, "may run");
    } else {
        desk.journal.note(Level::Warning, &answer.lift, &format!("barred: {}", answer.remarks.join(", ")));
    }
    Ok(Json(answer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::var("PORT")?.parse()?;
    let variant = std::env::var("VARIANT").unwrap_or_default();
    let folder = PathBuf::from(std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".into()));

    let origin_from = match variant.as_str() {
        "flawed" => Level::Info,
        _ => Level::Error,
    };
    let latency = Duration::from_millis(if variant == "healthy" { 240 } else { 25 });
    tokio::spawn(registry::stand_in(port + 1, latency));

    let desk = Arc::new(Desk {
        journal: Journal::open(&folder.join("journal.jsonl"), origin_from)?,
        registry_port: port + 1,
    });
    let app = Router::new()
        .route("/verdict", get(verdict))
        .route("/health", get(|| async { "ok" }))
        .with_state(desk);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("hoist verdicts on {port}");
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(())
}
