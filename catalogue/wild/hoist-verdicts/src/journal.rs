//! Journal of the inspectorate: one JSON line for each note, kept for the auditors.

use std::backtrace::Backtrace;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warning,
    Error,
}

#[derive(Serialize)]
struct Entry<'a> {
    at_ms: u128,
    level: Level,
    lift: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

pub struct Journal {
    file: Mutex<File>,
    origin_from: Level,
}

impl Journal {
    pub fn open(path: &Path, origin_from: Level) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file), origin_from })
    }

    pub fn note(&self, level: Level, lift: &str, text: &str) {
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
        let origin = (level >= self.origin_from).then(|| Backtrace::force_capture().to_string());
        let mut line = match serde_json::to_vec(&Entry { at_ms, level, lift, text, origin }) {
            Ok(line) => line,
            Err(error) => return eprintln!("journal: {error}"),
        };
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Err(error) = file.write_all(&line) {
            eprintln!("journal: {error}");
        }
    }
}
