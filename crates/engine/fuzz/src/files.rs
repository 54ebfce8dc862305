//! Files that a user or an earlier run brings: feeds, due times, interval logs.

use loadlens_plan::arrival::replay::DueTimes;
use loadlens_plan::program::{FeedFile, Use};
use loadlens_plan::FeedFormat;
use loadlens_record::files::read_intervals;

use crate::literal::json::{at, Json};
use crate::{knob, Ending};

/// A line that a fault names: the file is called `f`.
fn line_of(fault: &str) -> Option<usize> {
    let rest = fault.strip_prefix("f:")?;
    rest.split_once(':')?.0.parse().ok()
}

/// Asserts that a fault names its file and, where it names a line, one that exists.
fn check_fault(fault: &str, lines: usize) {
    assert!(fault.starts_with('f'), "{fault}");
    if let Some(line) = line_of(fault) {
        assert!((1..=lines).contains(&line), "{fault}: of {lines} lines");
    }
}

/// The first byte says how the feed is written and what its columns are used for.
pub fn feed(bytes: &[u8]) -> Ending {
    let (how, bytes) = knob(bytes);
    let format = [FeedFormat::Csv, FeedFormat::Tsv, FeedFormat::Jsonl][usize::from(how % 3)];
    let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
    let file = match FeedFile::read("f".to_owned(), bytes.to_vec(), format) {
        Ok(file) => file,
        Err(fault) => {
            check_fault(&fault, lines);
            return Ending::Refused;
        }
    };
    assert!(file.records() > 0 && file.records() as usize <= lines);
    let wanted = Use {
        in_header: how & 64 != 0,
        is_raw: how & 128 != 0,
    };
    let columns: Vec<(String, Use)> = file
        .columns()
        .iter()
        .map(|name| (name.clone(), wanted))
        .collect();
    let table = match file.table(&columns) {
        Ok(table) => table,
        Err(faults) => {
            for (column, fault) in faults {
                assert!(column < columns.len());
                assert!(
                    fault.contains(&format!("`{}`", columns[column].0))
                        || format == FeedFormat::Jsonl
                );
            }
            return Ending::Refused;
        }
    };
    let cell = |record: usize, column: usize| table.text(record as u32, column as u16);
    match format {
        FeedFormat::Jsonl => {
            let text = std::str::from_utf8(bytes).expect("it was read");
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            let records = text
                .split('\n')
                .filter(|line| !line.trim_ascii().is_empty());
            for (number, line) in records.enumerate() {
                let record: Json = serde_json::from_str(line).expect("it was read");
                for (column, (name, _)) in columns.iter().enumerate() {
                    match at(&record, name) {
                        Some(Json::Text(text)) => assert_eq!(cell(number, column), text.as_bytes()),
                        Some(value) => {
                            let again: Json =
                                serde_json::from_slice(&cell(number, column)).expect("JSON");
                            assert_eq!(&again, value);
                        }
                        None => panic!("{name} is not there"),
                    }
                }
            }
        }
        _ if bytes.iter().any(|byte| b"\"\r".contains(byte)) => {}
        _ => {
            // Without quotes a row is what stands between separators (RFC 4180).
            let separator = if format == FeedFormat::Csv { ',' } else { '\t' };
            let text = std::str::from_utf8(bytes).expect("it was read");
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            let rows = text.split('\n').filter(|row| !row.is_empty());
            for (number, row) in rows.skip(1).enumerate() {
                for (column, field) in row.split(separator).enumerate() {
                    assert_eq!(cell(number, column), field.as_bytes());
                }
            }
        }
    }
    Ending::Read
}

/// The first byte says which column is read, and how.
pub fn due_times(bytes: &[u8]) -> Ending {
    let (how, bytes) = knob(bytes);
    let column = [None, Some("1"), Some("2"), Some("t")][usize::from(how & 3)];
    let speed = [1.0, 2.0, 0.5, 1e-9][usize::from(how >> 2 & 3)];
    let from_first = how & 16 != 0;
    let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
    let due_times = match DueTimes::read_bytes("f", bytes, column, speed, from_first) {
        Ok(due_times) => due_times,
        Err(faults) => {
            assert!((1..=5).contains(&faults.len()), "{faults:?}");
            for fault in faults {
                check_fault(&fault, lines);
            }
            return Ending::Refused;
        }
    };
    assert!(due_times.count() > 0 && due_times.count() as usize <= lines);
    assert!(due_times.times.is_sorted());
    assert!(!from_first || due_times.times[0] == 0);
    assert!(due_times.peak_per_s() >= 1.0 && due_times.peak_per_s() <= due_times.count() as f64);
    if column.is_none() && speed == 1.0 && !from_first {
        if let Some(expected) = plain_seconds(bytes) {
            assert_eq!(*due_times.times, expected[..]);
        }
    }
    Ending::Read
}

/// Nanoseconds, where every line is a plain decimal number of seconds.
fn plain_seconds(bytes: &[u8]) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let nanos = |line: &str| {
        let (whole, fraction) = line.split_once('.').unwrap_or((line, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() > 7 || fraction.len() > 9 {
            return None;
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
        Some(whole.parse::<u64>().ok()? * 1_000_000_000 + fraction)
    };
    lines.map(nanos).collect()
}

/// An interval log, by us or by another writer of HDR histograms.
pub fn interval_log(bytes: &[u8]) -> Ending {
    let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
    match read_intervals("f", bytes) {
        Ok(intervals) => {
            assert!(intervals.len() <= lines);
            for interval in &intervals {
                assert!(interval.counts.is_sorted_by(|a, b| a.0 < b.0));
                assert!(interval.counts.iter().all(|(_, count)| *count > 0));
            }
            if intervals.is_empty() {
                Ending::Refused
            } else {
                Ending::Read
            }
        }
        Err(error) => {
            check_fault(&error.to_string(), lines);
            Ending::Refused
        }
    }
}
