//! Data feeds: files of records, read and checked whole before the start and shared read-only by all threads.
//!
//! Only the columns that a plan uses are kept, in one block of memory; a cell is found by one offset. `csv` and `jsonl`
//! read the two forms of a file. `feeds.rs` says where records are used; `feed_cursor.rs` of the engine picks the
//! record of an iteration.

mod csv;
mod jsonl;

use std::path::Path as FilePath;

use loadlens_http::request::{is_target, is_value_byte};

use super::values::Value;
use crate::bounded::{self, line_of};
use crate::FeedFormat;

/// The largest feed, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// The longest cell: as long as an extracted value may be.
const MAX_CELL_BYTES: usize = super::MAX_VALUE_BYTES;
/// Column names that a message lists.
const LISTED: usize = 20;

/// A feed as it stands on disk.
#[derive(Debug)]
pub struct FeedFile {
    name: String,
    bytes: Vec<u8>,
    format: FeedFormat,
    digest: String,
    columns: Vec<String>,
    records: u32,
}

/// Use of a column; it decides which values the column may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// In the value of a header.
    pub in_header: bool,
    /// Unescaped in a path.
    pub is_raw: bool,
}

/// The columns of a feed that a plan uses.
#[derive(Debug, Default)]
pub struct Table {
    bytes: Vec<u8>,
    /// Cell i lies between offset i and offset i + 1; record by record.
    offsets: Vec<u32>,
    columns: usize,
    is_json: bool,
}

impl Table {
    /// The cell of a record as text: of JSON the content of a string, anything else as it stands.
    pub fn text(&self, record: u32, column: u16) -> Vec<u8> {
        self.value(record, column).with_text(<[u8]>::to_vec)
    }

    /// The cell of a record.
    #[inline]
    pub(super) fn value(&self, record: u32, column: u16) -> Value<'_> {
        let cell = record as usize * self.columns + usize::from(column);
        let bytes = &self.bytes[self.offsets[cell] as usize..self.offsets[cell + 1] as usize];
        if self.is_json {
            Value::Json(bytes)
        } else {
            Value::Text(bytes)
        }
    }
}

impl FeedFile {
    /// Reads a feed and checks that every record is whole. A fault names the file and the line.
    pub fn open(path: &str, format: FeedFormat) -> Result<FeedFile, String> {
        let name = FilePath::new(path)
            .file_name()
            .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into());
        let feed = format!("feed {path}");
        let bytes = bounded::read_file(&feed, path, MAX_FILE_BYTES, "held in memory")?;
        FeedFile::read(name, bytes, format)
    }

    /// The same of bytes that are there already; `name` is what faults call them.
    pub fn read(name: String, bytes: Vec<u8>, format: FeedFormat) -> Result<FeedFile, String> {
        let digest = super::digest::sha256_hex(&bytes);
        if let Err(error) = std::str::from_utf8(&bytes) {
            let line = line_of(&bytes, error.valid_up_to());
            return Err(format!(
                "{name}:{line}: a feed is UTF-8 text, this line is not"
            ));
        }
        let mut file = FeedFile {
            name,
            bytes,
            format,
            digest,
            columns: Vec::new(),
            records: 0,
        };
        match format {
            FeedFormat::Jsonl => file.look_at_jsonl()?,
            FeedFormat::Csv | FeedFormat::Tsv => file.look_at_csv()?,
        }
        Ok(file)
    }

    /// SHA-256 of the bytes, hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Number of records, at least 1.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Names of the columns; of JSONL the members of the first record.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Reason why a column cannot be used this way; none: it can.
    pub fn fault(&self, column: &str, wanted: Use) -> Option<String> {
        self.table(&[(column.to_owned(), wanted)])
            .err()
            .and_then(|faults| faults.into_iter().next().map(|(_, what)| what))
    }

    /// The columns in this order, or what stands against which of them.
    pub fn table(&self, columns: &[(String, Use)]) -> Result<Table, Vec<(usize, String)>> {
        let mut table = Table {
            bytes: Vec::new(),
            offsets: Vec::with_capacity(self.records as usize * columns.len() + 1),
            columns: columns.len(),
            is_json: self.format == FeedFormat::Jsonl,
        };
        table.offsets.push(0);
        let mut faults: Vec<Option<String>> = vec![None; columns.len()];
        match self.format {
            FeedFormat::Jsonl => self.fill_from_jsonl(columns, &mut table, &mut faults),
            FeedFormat::Csv | FeedFormat::Tsv => {
                self.fill_from_csv(columns, &mut table, &mut faults);
            }
        }
        let misfits: Vec<(usize, String)> = faults
            .into_iter()
            .enumerate()
            .filter_map(|(index, fault)| fault.map(|what| (index, what)))
            .collect();
        if misfits.is_empty() {
            table.bytes.shrink_to_fit();
            Ok(table)
        } else {
            Err(misfits)
        }
    }

    fn content(&self) -> &[u8] {
        self.bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&self.bytes)
    }

    fn no_column(&self, column: &str) -> String {
        let shown = self.columns.iter().take(LISTED).map(String::as_str);
        let more = match self.columns.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{} has no column `{column}`; there is {}{more}",
            self.name,
            shown.collect::<Vec<_>>().join(", ")
        )
    }

    fn count(&mut self, records: usize) -> Result<(), String> {
        if records == 0 {
            return Err(format!("{} has no record", self.name));
        }
        self.records = u32::try_from(records)
            .map_err(|_| format!("{} has {records} records, at most {}", self.name, u32::MAX))?;
        Ok(())
    }

    fn misfit(
        &self,
        line: &dyn Fn() -> u64,
        column: &str,
        cell: &[u8],
        wanted: Use,
    ) -> Option<String> {
        let what = if cell.len() > MAX_CELL_BYTES {
            format!("has {} bytes, at most {MAX_CELL_BYTES}", cell.len())
        } else if wanted.in_header && !cell.iter().all(|byte| is_value_byte(*byte)) {
            "has a control byte, which no header value may have".to_owned()
        } else if wanted.is_raw && !is_target(cell) {
            "may not stand unescaped in a path: leave out `raw`, or write it with %XX".to_owned()
        } else {
            return None;
        };
        Some(format!("{}:{}: `{column}` {what}", self.name, line()))
    }
}

impl Table {
    fn push(&mut self, cell: &[u8]) {
        // A table is never larger than its file, so its offsets fit.
        self.bytes.extend_from_slice(cell);
        self.offsets.push(self.bytes.len() as u32);
    }
}

#[cfg(test)]
mod tests;
