//! The tickets' journal. A ticket counts once it is on the platter: trading standards ask for that.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use tokio::sync::{mpsc, oneshot};

const BATCH: usize = 256;

#[derive(Clone, Copy, PartialEq)]
pub enum Sync {
    Line,
    Batch,
}

struct Entry {
    lines: Vec<String>,
    done: oneshot::Sender<u64>,
}

pub struct Journal {
    entries: mpsc::UnboundedSender<Entry>,
}

impl Journal {
    pub fn open(path: impl AsRef<Path>, sync: Sync) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (entries, inbox) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("journal".into())
            .spawn(move || run(file, inbox, sync))?;
        Ok(Self { entries })
    }

    /// Returns the number of the ticket, or nothing if it could not be kept.
    pub async fn append(&self, lines: Vec<String>) -> Option<u64> {
        let (done, kept) = oneshot::channel();
        self.entries.send(Entry { lines, done }).ok()?;
        kept.await.ok()
    }
}

fn write(file: &mut File, entries: &[Entry], sync: Sync) -> io::Result<()> {
    for line in entries.iter().flat_map(|entry| &entry.lines) {
        file.write_all(line.as_bytes())?;
        if sync == Sync::Line {
            file.sync_all()?;
        }
    }
    if sync == Sync::Batch {
        file.sync_all()?;
    }
    Ok(())
}

fn run(mut file: File, mut inbox: mpsc::UnboundedReceiver<Entry>, sync: Sync) {
    let limit = if sync == Sync::Batch { BATCH } else { 1 };
    let mut number = 0;
    let mut taken = Vec::with_capacity(limit);
    while inbox.blocking_recv_many(&mut taken, limit) > 0 {
        if let Err(error) = write(&mut file, &taken, sync) {
            eprintln!("journal: {error}");
            taken.clear();
            continue;
        }
        for entry in taken.drain(..) {
            number += 1;
            let _ = entry.done.send(number);
        }
    }
}
