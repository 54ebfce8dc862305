//! Stand-in of the ERP system, a remote server: erp-standin PORT

use std::time::Duration;

use axum::routing::get;
use axum::Router;

async fn after(ms: u64) -> &'static str {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    "ok\n"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("no port")?.parse()?;
    let is_healthy = std::env::var("VARIANT").is_ok_and(|variant| variant == "healthy");
    let booking_ms = if is_healthy { 200 } else { 60 };
    let app = Router::new()
        .route("/bookings/{aisle}/{from}/{to}", get(move || after(booking_ms)))
        .route("/counts/{aisle}/{bin}/{pieces}", get(|| after(2)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
