//! Client of the ERP system.

#[derive(Clone)]
pub struct Erp {
    url: String,
    client: reqwest::Client,
}

impl Erp {
    pub fn new(url: String) -> Self {
        Erp { url, client: reqwest::Client::new() }
    }

    /// Have a move booked.
    pub async fn book(&self, aisle: &str, from: usize, to: usize) -> Result<(), reqwest::Error> {
        self.get(format!("{}/bookings/{aisle}/{from}/{to}", self.url)).await
    }

    /// Report how many pieces are in a bin.
    pub async fn report(&self, aisle: &str, bin: usize, pieces: u64) -> Result<(), reqwest::Error> {
        self.get(format!("{}/counts/{aisle}/{bin}/{pieces}", self.url)).await
    }

    async fn get(&self, url: String) -> Result<(), reqwest::Error> {
        self.client.get(url).send().await?.error_for_status()?.bytes().await?;
        Ok(())
    }
}
