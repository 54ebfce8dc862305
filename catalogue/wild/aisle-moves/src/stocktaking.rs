//! Perpetual stocktaking: one aisle after the other.

use std::sync::Arc;
use std::time::Duration;

use crate::erp::Erp;
use crate::warehouse::{Aisle, Warehouse};

const PAUSE: Duration = Duration::from_secs(2);

pub async fn run(warehouse: Arc<Warehouse>, erp: Erp) {
    let names: Vec<String> = warehouse.names().cloned().collect();
    loop {
        for name in &names {
            tokio::time::sleep(PAUSE).await;
            let Some(aisle) = warehouse.aisle(name) else { continue };
            match count(name, aisle, &erp).await {
                Ok(pieces) => println!("aisle {name}: {pieces} pieces"),
                Err(error) => eprintln!("aisle {name} not counted: {error}"),
            }
        }
    }
}

/// Count an aisle. Its bins stay locked until the last one is counted, else a piece on its way would count twice.
async fn count(name: &str, aisle: &Aisle, erp: &Erp) -> Result<u64, reqwest::Error> {
    let mut counted = Vec::new();
    for bin in aisle.walk() {
        let bin = bin.lock().await;
        erp.report(name, bin.number, bin.pieces).await?;
        counted.push(bin);
    }
    Ok(counted.iter().map(|bin| bin.pieces).sum())
}
