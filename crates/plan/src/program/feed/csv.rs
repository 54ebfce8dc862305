//! Feeds of lines with separators: CSV (RFC 4180), and the same with tabs.

use crate::FeedFormat;

use super::{line_of, FeedFile, Table, Use};

impl FeedFile {
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

    pub(super) fn look_at_csv(&mut self) -> Result<(), String> {
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

    pub(super) fn fill_from_csv(
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
