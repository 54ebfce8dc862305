mod police;

use std::env;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use serde::Serialize;
use tokio_postgres::NoTls;

const FIND_AS_TYPED: &str = "SELECT id, frame_no, maker, model, colour FROM bikes \
     WHERE upper(replace(frame_no, '-', '')) = $1";
const FIND: &str = "SELECT id, frame_no, maker, model, colour FROM bikes WHERE frame_no = $1";
const REPORTS: &str = "SELECT state, reported_on::text FROM reports WHERE bike_id = $1 ORDER BY reported_on DESC";

struct Register {
    pool: Pool,
    variant: String,
    police: police::Line,
}

#[derive(Serialize)]
struct Report {
    state: String,
    on: String,
}

#[derive(Serialize)]
struct Bike {
    frame: String,
    maker: String,
    model: String,
    colour: String,
    reports: Vec<Report>,
    wanted: Option<bool>,
}

type Failure = (StatusCode, String);

fn failed(error: impl std::fmt::Display) -> Failure {
    eprintln!("{error}");
    (StatusCode::SERVICE_UNAVAILABLE, "register".to_string())
}

/// People type frame numbers in any case, with and without dashes and blanks.
fn bare(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// The way frame numbers are stored: three letters, a dash, the number.
fn stored(typed: &str) -> String {
    let bare = bare(typed);
    let (maker, number) = bare.split_at(bare.len().min(3));
    format!("{maker}-{number}")
}

async fn find(register: &Register, typed: &str) -> Result<Option<Bike>, Failure> {
    let client = register.pool.get().await.map_err(failed)?;
    let (sql, key) = match register.variant.as_str() {
        "flawed" => (FIND_AS_TYPED, bare(typed)),
        _ => (FIND, stored(typed)),
    };
    let statement = client.prepare_cached(sql).await.map_err(failed)?;
    let Some(row) = client.query_opt(&statement, &[&key]).await.map_err(failed)? else {
        return Ok(None);
    };
    let statement = client.prepare_cached(REPORTS).await.map_err(failed)?;
    let reports = client.query(&statement, &[&row.get::<_, i64>(0)]).await.map_err(failed)?;
    Ok(Some(Bike {
        frame: row.get(1),
        maker: row.get(2),
        model: row.get(3),
        colour: row.get(4),
        reports: reports.iter().map(|each| Report { state: each.get(0), on: each.get(1) }).collect(),
        wanted: None,
    }))
}

async fn bike(State(register): State<Arc<Register>>, Path(frame): Path<String>) -> Result<Json<Bike>, Failure> {
    let Some(mut bike) = find(&register, &frame).await? else {
        return Err((StatusCode::NOT_FOUND, "no such frame".to_string()));
    };
    if register.variant == "healthy" {
        bike.wanted = Some(register.police.is_wanted(&bike.frame).await.map_err(failed)?);
    }
    Ok(Json(bike))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = env::var("PORT").unwrap_or_else(|_| "8080".into()).parse()?;
    police::listen(port + 2).await?;

    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port + 1).user("register").dbname("postgres");
    let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let register = Arc::new(Register {
        pool: Pool::builder(manager).max_size(24).build()?,
        variant: env::var("VARIANT").unwrap_or_else(|_| "mended".into()),
        police: police::Line::new(port + 2),
    });

    let app = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/frames/:frame", get(bike))
        .with_state(register);
    let listener = tokio::net::TcpListener::bind(("0.0.0.0", port)).await?;
    axum::serve(listener, app).tcp_nodelay(true).await?;
    Ok(())
}
