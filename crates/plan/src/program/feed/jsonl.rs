//! Feeds of one JSON object a line.

use crate::program::json::Path;
use crate::program::values::Value;

use super::{FeedFile, Table, Use};

impl FeedFile {
    /// The lines with something on them, and their numbers.
    fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.content()
            .split(|byte| *byte == b'\n')
            .zip(1..)
            .map(|(line, number)| (number, line.trim_ascii()))
            .filter(|(_, line)| !line.is_empty())
    }

    pub(super) fn look_at_jsonl(&mut self) -> Result<(), String> {
        let mut columns = Vec::new();
        let mut records = 0;
        for (number, line) in self.lines() {
            let record: Result<serde_json::Map<String, serde_json::Value>, _> =
                serde_json::from_slice(line);
            match record {
                Ok(record) if records == 0 => {
                    columns = record.into_iter().map(|(key, _)| key).collect();
                }
                Ok(_) => {}
                Err(error) => {
                    return Err(format!(
                        "{}:{number}: no JSON object: {}",
                        self.name,
                        without_place(&error)
                    ))
                }
            }
            records += 1;
        }
        self.columns = columns;
        self.count(records)
    }

    pub(super) fn fill_from_jsonl(
        &self,
        columns: &[(String, Use)],
        table: &mut Table,
        faults: &mut [Option<String>],
    ) {
        let mut paths = Vec::new();
        for ((column, _), fault) in columns.iter().zip(faults.iter_mut()) {
            match Path::parse(column) {
                Ok(path) => paths.push(path),
                Err(what) => *fault = Some(what),
            }
        }
        if paths.len() < columns.len() {
            return;
        }
        for (record, (number, line)) in self.lines().enumerate() {
            for (index, path) in paths.iter().enumerate() {
                let (column, wanted) = &columns[index];
                let cell = path.find(line);
                if faults[index].is_none() {
                    faults[index] = match cell {
                        None if record == 0 => Some(self.no_column(column)),
                        None => Some(format!(
                            "{}:{number}: no `{column}` in this record",
                            self.name
                        )),
                        Some(cell) => Value::Json(cell)
                            .with_text(|text| self.misfit(&|| number, column, text, *wanted)),
                    };
                }
                table.push(cell.unwrap_or_default());
            }
        }
    }
}

/// Message of serde_json without its line and column: the line is always 1 here.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}
