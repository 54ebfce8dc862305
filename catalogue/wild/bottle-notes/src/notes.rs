use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Tasting notes that were read before.
pub struct NoteCache {
    ttl: Duration,
    entries: Mutex<HashMap<u32, (Instant, String)>>,
    pub hits: AtomicU64,
    pub misses: AtomicU64,
}

impl NoteCache {
    pub fn new(ttl: Duration) -> Self {
        NoteCache { ttl, entries: Mutex::default(), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    pub fn get(&self, wine: u32) -> Option<String> {
        let entries = self.entries.lock().unwrap();
        let found = entries.get(&wine).filter(|(put, _)| put.elapsed() < self.ttl).map(|(_, note)| note.clone());
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub fn put(&self, wine: u32, note: String) {
        self.entries.lock().unwrap().insert(wine, (Instant::now(), note));
    }

    pub fn len(&self) -> usize {
        self.entries.lock().unwrap().len()
    }
}
