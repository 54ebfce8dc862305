//! Grades for boards that leave the saw line: species, size class and price per cubic metre.

mod yard;

use std::{env, sync::Arc, time::Duration};

use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
    Json, Router,
};
use serde::{Deserialize, Serialize};

struct Settings {
    grader: Duration,
    desks: usize,
    scan: Duration,
}

impl Settings {
    fn of(variant: &str) -> Self {
        match variant {
            "mended" => Self {
                grader: Duration::from_millis(3000),
                desks: 8,
                scan: Duration::from_millis(40),
            },
            "healthy" => Self {
                grader: Duration::from_millis(3000),
                desks: 512,
                scan: Duration::from_millis(130),
            },
            _ => Self {
                grader: Duration::from_millis(180),
                desks: 8,
                scan: Duration::from_millis(40),
            },
        }
    }
}

struct App {
    http: reqwest::Client,
    grader_url: String,
    patience: Duration,
}

#[derive(Deserialize)]
struct Scan {
    knots: u32,
    warp_mm: f32,
    moisture: f32,
}

#[derive(Serialize)]
struct Grade {
    board: u32,
    grade: &'static str,
    moisture: f32,
    euros_per_m3: u32,
}

#[derive(Serialize)]
struct Problem {
    board: u32,
    detail: &'static str,
}

enum Failure {
    Late(u32),
    Unreadable(u32),
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, board, detail) = match self {
            Failure::Late(board) => (StatusCode::GATEWAY_TIMEOUT, board, "the scanner did not answer"),
            Failure::Unreadable(board) => (StatusCode::BAD_GATEWAY, board, "the scan could not be read"),
        };
        (status, Json(Problem { board, detail })).into_response()
    }
}

fn judge(board: u32, scan: &Scan) -> Grade {
    let (grade, base) = match (scan.knots, scan.warp_mm) {
        (0..=2, w) if w < 2.0 => ("A", 640),
        (0..=5, w) if w < 4.0 => ("B", 480),
        (0..=9, _) => ("C", 310),
        _ => ("D", 190),
    };
    let dry = if scan.moisture < 15.0 { 60 } else { 0 };
    Grade { board, grade, moisture: scan.moisture, euros_per_m3: base + dry }
}

async fn fetch_scan(app: &App, board: u32) -> Result<Scan, reqwest::Error> {
    let url = format!("{}/scan/{board}", app.grader_url);
    app.http.get(url).send().await?.error_for_status()?.json().await
}

async fn grade(State(app): State<Arc<App>>, Path(board): Path<u32>) -> Result<Json<Grade>, Failure> {
    match tokio::time::timeout(app.patience, fetch_scan(&app, board)).await {
        Ok(Ok(scan)) => Ok(Json(judge(board, &scan))),
        Ok(Err(_)) => Err(Failure::Unreadable(board)),
        Err(_) => Err(Failure::Late(board)),
    }
}

async fn species() -> Json<Vec<&'static str>> {
    Json(vec!["spruce", "larch", "douglas", "oak", "ash"])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = env::var("PORT")?.parse()?;
    let settings = Settings::of(&env::var("VARIANT").unwrap_or_default());
    yard::start(port + 1, settings.desks, settings.scan).await?;

    let app = Arc::new(App {
        http: reqwest::Client::builder().pool_max_idle_per_host(256).build()?,
        grader_url: format!("http://127.0.0.1:{}", port + 1),
        patience: settings.grader,
    });
    let routes = Router::new()
        .route("/boards/:board/grade", get(grade))
        .route("/species", get(species))
        .with_state(app);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, routes).await?;
    Ok(())
}
