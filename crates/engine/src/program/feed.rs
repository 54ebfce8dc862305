//! Data feeds: files of records, read and checked whole before the start and shared read-only by all threads.
//!
//! Only the columns that a plan uses are kept, in one block of memory; a cell is found by one offset. What a record
//! is used for is in `feeds.rs`, by whom in `feeding.rs`.

use std::path::Path as FilePath;

use super::json::Path;
use super::values::Value;
use crate::bounded;
use crate::http1::request::{is_target, is_value_byte};
use crate::plan::FeedFormat;

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

/// What a column is used for decides what may stand in it.
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
        let bytes = bounded::read(path, MAX_FILE_BYTES)
            .map_err(|error| format!("feed {path} cannot be read: {error}"))?
            .ok_or_else(|| {
                format!("feed {path} has more than {MAX_FILE_BYTES} bytes, the most that is held in memory")
            })?;
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

    /// How many records, at least 1.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Names of the columns; of JSONL the members of the first record.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What stands against the use of a column; none: nothing.
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
                self.fill_from_csv(columns, &mut table, &mut faults)
            }
        }
        let found: Vec<(usize, String)> = faults
            .into_iter()
            .enumerate()
            .filter_map(|(index, fault)| fault.map(|what| (index, what)))
            .collect();
        if found.is_empty() {
            table.bytes.shrink_to_fit();
            Ok(table)
        } else {
            Err(found)
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

    // ------------------------------------------------------------------------------------------------- CSV

    fn csv(&self) -> csv::Reader<&[u8]> {
        csv::ReaderBuilder::new()
            .delimiter(if self.format == FeedFormat::Tsv {
                b'\t'
            } else {
                b','
            })
            .has_headers(false)
            .flexible(true)
            .from_reader(self.content())
    }

    fn look_at_csv(&mut self) -> Result<(), String> {
        let mut reader = self.csv();
        let mut record = csv::StringRecord::new();
        let mut columns = Vec::new();
        let mut records = 0;
        loop {
            let line = reader.position().line();
            match reader.read_record(&mut record) {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => return Err(format!("{}:{line}: {error}", self.name)),
            }
            if columns.is_empty() {
                let line = self.line_of(&record);
                columns = record.iter().map(str::to_owned).collect::<Vec<_>>();
                check_header(&self.name, line, &columns)?;
                continue;
            }
            if record.len() != columns.len() {
                let line = self.line_of(&record);
                return Err(format!(
                    "{}:{line}: {} where the header has {}; a value with a {} in it stands in double quotes",
                    self.name,
                    fields(record.len()),
                    columns.len(),
                    if self.format == FeedFormat::Tsv { "tab" } else { "comma" },
                ));
            }
            records += 1;
        }
        if columns.is_empty() {
            return Err(format!(
                "{} is empty: its first line names the columns",
                self.name
            ));
        }
        self.columns = columns;
        self.count(records)
    }

    /// The line that a record begins on: the reader passes empty lines before it.
    fn line_of(&self, record: &csv::StringRecord) -> u64 {
        let content = self.content();
        let from = record.position().map_or(0, |at| at.byte() as usize);
        let rest = &content[from.min(content.len())..];
        let empty = rest.iter().take_while(|byte| b"\r\n".contains(byte));
        line_of(content, from + empty.count()) as u64
    }

    fn fill_from_csv(
        &self,
        columns: &[(String, Use)],
        table: &mut Table,
        faults: &mut [Option<String>],
    ) {
        let mut places = Vec::new();
        for ((column, _), fault) in columns.iter().zip(faults.iter_mut()) {
            match self.columns.iter().position(|known| known == column) {
                Some(place) => places.push(place),
                None => *fault = Some(self.no_column(column)),
            }
        }
        if places.len() < columns.len() {
            return;
        }
        let mut reader = self.csv();
        let mut record = csv::StringRecord::new();
        let mut is_header = true;
        while let Ok(true) = reader.read_record(&mut record) {
            if std::mem::take(&mut is_header) {
                continue;
            }
            let line = || self.line_of(&record);
            for (index, place) in places.iter().enumerate() {
                let (column, wanted) = &columns[index];
                let cell = record.get(*place).unwrap_or_default().as_bytes();
                if faults[index].is_none() {
                    faults[index] = self.misfit(&line, column, cell, *wanted);
                }
                table.push(cell);
            }
        }
    }

    // ----------------------------------------------------------------------------------------------- JSONL

    /// The lines with something on them, and their numbers.
    fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.content()
            .split(|byte| *byte == b'\n')
            .zip(1..)
            .map(|(line, number)| (number, line.trim_ascii()))
            .filter(|(_, line)| !line.is_empty())
    }

    fn look_at_jsonl(&mut self) -> Result<(), String> {
        let mut columns = Vec::new();
        let mut records = 0;
        for (number, line) in self.lines() {
            let record: Result<serde_json::Map<String, serde_json::Value>, _> =
                serde_json::from_slice(line);
            match record {
                Ok(record) if records == 0 => {
                    columns = record.into_iter().map(|(key, _)| key).collect()
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

    fn fill_from_jsonl(
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

fn fields(count: usize) -> String {
    format!("{count} field{}", if count == 1 { "" } else { "s" })
}

fn check_header(name: &str, line: u64, columns: &[String]) -> Result<(), String> {
    for (index, column) in columns.iter().enumerate() {
        if column.trim() != column || column.is_empty() || column.contains(['{', '}', '\n', '\r']) {
            return Err(format!(
                "{name}:{line}: column {} is named `{}`: a name has no outer spaces, braces or line breaks",
                index + 1,
                column.escape_debug()
            ));
        }
        if columns[..index].contains(column) {
            return Err(format!(
                "{name}:{line}: two columns are named `{}`",
                column.escape_debug()
            ));
        }
    }
    Ok(())
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &bytes[..at]).count()
}

/// What serde_json says without its line and column: the line is always 1 here.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Temporary(std::path::PathBuf);

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
        }
    }

    fn written(name: &str, content: &[u8]) -> Temporary {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("loadlens-feed-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), content).unwrap();
        Temporary(dir.join(name))
    }

    fn open(name: &str, format: FeedFormat, content: &[u8]) -> Result<FeedFile, String> {
        let file = written(name, content);
        FeedFile::open(file.0.to_str().unwrap(), format)
    }

    fn used(columns: &[&str]) -> Vec<(String, Use)> {
        columns
            .iter()
            .map(|c| ((*c).to_owned(), Use::default()))
            .collect()
    }

    fn texts(table: &Table, record: u32) -> Vec<String> {
        (0..table.columns as u16)
            .map(|column| {
                table
                    .value(record, column)
                    .with_text(|text| String::from_utf8(text.to_vec()).unwrap())
            })
            .collect()
    }

    #[test]
    fn csv_is_read_as_rfc_4180_writes_it() {
        let content =
            "\u{feff}id,full name,note\r\n1,\"Doe, Ann\",\"say \"\"hi\"\"\nnow\"\r\n\r\n2,Bo,\r\n";
        let file = open("users.csv", FeedFormat::Csv, content.as_bytes()).unwrap();

        let table = file.table(&used(&["note", "full name"])).unwrap();

        assert_eq!(file.columns(), ["id", "full name", "note"]);
        assert_eq!(file.records(), 2);
        assert_eq!(texts(&table, 0), ["say \"hi\"\nnow", "Doe, Ann"]);
        assert_eq!(texts(&table, 1), ["", "Bo"]);
    }

    #[test]
    fn jsonl_gives_nested_values_with_their_type() {
        let content = b"{\"id\": 7, \"a\": {\"b\": [1, true]}, \"s\": \"x\\u00e9\"}\n\n {\"s\": \"\", \"a\": {\"b\": [2.50, null]}, \"id\": -1}";
        let file = open("items.jsonl", FeedFormat::Jsonl, content).unwrap();

        let table = file.table(&used(&["id", "a.b[1]", "s", "a"])).unwrap();

        assert_eq!(file.records(), 2);
        assert_eq!(
            texts(&table, 0),
            ["7", "true", "x\u{e9}", "{\"b\": [1, true]}"]
        );
        assert_eq!(
            texts(&table, 1),
            ["-1", "null", "", "{\"b\": [2.50, null]}"]
        );
        assert!(matches!(table.value(0, 2), Value::Json(br#""x\u00e9""#)));
    }

    #[test]
    fn a_bad_file_is_a_fault_with_its_line() {
        for (name, format, content, part) in [
            (
                "a.csv",
                FeedFormat::Csv,
                &b""[..],
                "a.csv is empty: its first line names the columns",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id,name\n",
                "a.csv has no record",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id,name\n1,a\n\n2\n",
                "a.csv:4: 1 field where the header has 2",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id,name\n\"1\n1\",a\n2,b,c\n",
                "a.csv:4: 3 fields where the header has 2",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id,id\n1,2\n",
                "a.csv:1: two columns are named `id`",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id,\n1,2\n",
                "a.csv:1: column 2 is named ``",
            ),
            (
                "a.csv",
                FeedFormat::Csv,
                b"id\n1\n\xff\n",
                "a.csv:3: a feed is UTF-8 text",
            ),
            (
                "a.tsv",
                FeedFormat::Tsv,
                b"id\tname\n1,2\n",
                "a value with a tab in it",
            ),
            ("a.jsonl", FeedFormat::Jsonl, b"\n", "a.jsonl has no record"),
            (
                "a.jsonl",
                FeedFormat::Jsonl,
                b"{\"a\":1}\n[1]\n",
                "a.jsonl:2: no JSON object",
            ),
            (
                "a.jsonl",
                FeedFormat::Jsonl,
                b"{\"a\":1}\n\n{\"a\":\n",
                "a.jsonl:3: no JSON object: EOF",
            ),
        ] {
            let fault = open(name, format, content).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
        let missing = FeedFile::open("/nowhere/a.csv", FeedFormat::Csv).unwrap_err();
        assert!(
            missing.contains("/nowhere/a.csv cannot be read"),
            "{missing}"
        );
    }

    #[test]
    fn a_column_that_cannot_be_used_is_a_fault() {
        let header = Use {
            in_header: true,
            ..Use::default()
        };
        let raw = Use {
            is_raw: true,
            ..Use::default()
        };
        let csv = open(
            "a.csv",
            FeedFormat::Csv,
            b"id,link\n1,/a?b=%20\n\"2\n\",/a b\n",
        )
        .unwrap();
        let jsonl = open(
            "a.jsonl",
            FeedFormat::Jsonl,
            b"{\"a\":{\"b\":1}}\n{\"a\":{\"b\":\"\\n\"}}\n{\"a\":3}",
        )
        .unwrap();

        assert_eq!(csv.fault("id", Use::default()), None);
        assert_eq!(
            csv.fault("name", header).unwrap(),
            "a.csv has no column `name`; there is id, link"
        );
        assert!(csv
            .fault("id", header)
            .unwrap()
            .contains("a.csv:3: `id` has a control byte"));
        assert!(csv
            .fault("link", raw)
            .unwrap()
            .contains("a.csv:3: `link` may not stand unescaped"));
        assert_eq!(
            jsonl.fault("b", header).unwrap(),
            "a.jsonl has no column `b`; there is a"
        );
        assert!(jsonl
            .fault("a.b", header)
            .unwrap()
            .contains("a.jsonl:2: `a.b` has a control byte"));
        assert!(jsonl.fault("a.b", raw).unwrap().contains("a.jsonl:2"));
        assert_eq!(
            jsonl.fault("a.b", Use::default()).unwrap(),
            "a.jsonl:3: no `a.b` in this record"
        );
        assert!(jsonl
            .fault("a..b", Use::default())
            .unwrap()
            .contains("empty name"));
    }
}
