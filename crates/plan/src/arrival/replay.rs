//! Due times from a file: one a line, rising.
//!
//! A line holds a time, or is a row of a CSV file with the time in a column. A time is seconds, or has a unit. Empty
//! lines and lines that begin with `#` say nothing.

use std::sync::Arc;

use loadlens_base::units::SECOND;

use crate::bounded::{self, line_of};
use crate::program::digest::sha256_hex;
use crate::Replay;

/// The largest file.
const MAX_BYTES: u64 = 256 << 20;
/// 80 MB of memory.
const MAX_ARRIVALS: usize = 10_000_000;
/// A later time is a time of day, not one since the start.
const MAX_DUE_NS: u64 = 366 * 86_400 * SECOND;
/// Maximum number of faults reported per file.
const FAULTS: usize = 5;

/// The due times of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct DueTimes {
    /// Nanoseconds since the start, rising; at least one.
    pub times: Arc<[u64]>,
    /// SHA-256 of the file, hex.
    pub digest: String,
}

impl DueTimes {
    /// Reads what a plan replays, or says what is wrong with it.
    pub fn of(replay: &Replay) -> Result<DueTimes, Vec<String>> {
        let due_times = DueTimes::read(
            &replay.path,
            replay.column.as_deref(),
            replay.speed,
            replay.from_first,
        )?;
        let path = &replay.path;
        bounded::check_digest(path, &due_times.digest, &replay.digest)
            .map_err(|what| vec![what])?;
        if (due_times.count(), due_times.last_ns()) != (replay.arrivals, replay.last_ns) {
            let what = format!(
                "{path} has {} due times, the last at {} ns; the plan says {}, the last at {} ns",
                due_times.count(),
                due_times.last_ns(),
                replay.arrivals,
                replay.last_ns
            );
            return Err(vec![what]);
        }
        Ok(due_times)
    }

    /// Reads a file; faults name file and line.
    ///
    /// `column` is a name in the first line or a number from 1; none: what stands before the first comma. With
    /// `from_first` the first time is the start. Times are divided by `speed`, which is above 0.
    pub fn read(
        path: &str,
        column: Option<&str>,
        speed: f64,
        from_first: bool,
    ) -> Result<DueTimes, Vec<String>> {
        let bytes = bounded::read_file(path, path, MAX_BYTES, "read").map_err(|what| vec![what])?;
        DueTimes::read_bytes(path, &bytes, column, speed, from_first)
    }

    /// The same of bytes that are there already; `path` is what faults call them.
    pub fn read_bytes(
        path: &str,
        bytes: &[u8],
        column: Option<&str>,
        speed: f64,
        from_first: bool,
    ) -> Result<DueTimes, Vec<String>> {
        let only = |what: String| vec![what];
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = line_of(bytes, error.valid_up_to());
            only(format!("{path}:{line}: not text in UTF-8"))
        })?;
        let mut reader = Reader {
            path,
            faults: Vec::new(),
        };
        let times = reader.times(text, column, speed, from_first);
        if reader.faults.is_empty() {
            Ok(DueTimes {
                times: times.into(),
                digest: sha256_hex(bytes),
            })
        } else {
            Err(reader.faults)
        }
    }

    /// Number of due times.
    pub fn count(&self) -> u64 {
        self.times.len() as u64
    }

    /// The last one.
    pub fn last_ns(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }

    /// The most that are due within one second that begins at a whole second.
    pub fn peak_per_s(&self) -> f64 {
        let seconds = self
            .times
            .chunk_by(|first, second| first / SECOND == second / SECOND);
        seconds.map(|second| second.len()).max().unwrap_or(0) as f64
    }
}

struct Reader<'a> {
    path: &'a str,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn fault(&mut self, line: usize, what: String) {
        self.faults.push(format!("{}:{line}: {what}", self.path));
    }

    fn times(
        &mut self,
        text: &str,
        column: Option<&str>,
        speed: f64,
        from_first: bool,
    ) -> Vec<u64> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some(place) = self.place(column, &mut lines) else {
            return Vec::new();
        };
        let mut times: Vec<u64> = Vec::new();
        let (mut first, mut before) = (0, (0, ""));
        for (number, line) in lines {
            if self.faults.len() == FAULTS {
                break;
            }
            let Some(field) = fields(line).nth(place) else {
                self.fault(number, format!("{} has no column {}", cut(line), place + 1));
                continue;
            };
            let Some(written) = nanos(field) else {
                let what = format!(
                    "{} is not a due time: seconds such as 1.25, or 250ms",
                    cut(field)
                );
                self.fault(number, what);
                continue;
            };
            if times.is_empty() && from_first {
                first = written;
            }
            if written < before.0 {
                let what = format!("{} comes after {}: due times rise", cut(field), before.1);
                self.fault(number, what);
                continue;
            }
            before = (written, field);
            let due = ((written - first) as f64 / speed).round();
            // Exact where nothing is to be divided.
            let due = if speed == 1.0 {
                written - first
            } else {
                due as u64
            };
            if due > MAX_DUE_NS {
                let what = format!(
                    "{} is more than a year after the start: for times of day, from=first",
                    cut(field)
                );
                self.fault(number, what);
                break;
            }
            if times.len() == MAX_ARRIVALS {
                self.fault(
                    number,
                    format!("more than {MAX_ARRIVALS} due times are not kept in memory"),
                );
                break;
            }
            times.push(due);
        }
        if times.is_empty() && self.faults.is_empty() {
            self.fault(1, "no due time in it".to_owned());
        }
        times
    }

    /// Index of the column; reads the line of names when it has a name.
    fn place<'t>(
        &mut self,
        column: Option<&str>,
        lines: &mut impl Iterator<Item = (usize, &'t str)>,
    ) -> Option<usize> {
        let Some(column) = column else { return Some(0) };
        if let Ok(number) = column.parse::<usize>() {
            return Some(number.saturating_sub(1));
        }
        let Some((number, names)) = lines.next() else {
            self.fault(1, "no line with the names of the columns".to_owned());
            return None;
        };
        let place = fields(names).position(|name| name == column);
        if place.is_none() {
            let what = format!(
                "no column is named {}: the names are {}",
                column,
                cut(names)
            );
            self.fault(number, what);
        }
        place
    }
}

/// The fields of a row, without the quotes around them.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut is_quoted = false;
        let end = text.find(|c: char| {
            is_quoted ^= c == '"';
            c == ',' && !is_quoted
        });
        let (field, after) = match end {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        rest = after;
        let field = field.trim();
        Some(
            field
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'))
                .unwrap_or(field),
        )
    })
}

/// A time in nanoseconds: `1.25`, `250ms`, `1e-3`.
fn nanos(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("min", 60 * SECOND),
        ("h", 3_600 * SECOND),
        ("s", SECOND),
    ];
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?.trim_end(), *ns)))
        .unwrap_or((text, SECOND));
    let is_number = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !number.bytes().all(is_number)
    {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(digits(whole) && digits(fraction) && fraction.len() <= 18 && whole.len() <= 18) {
        let ns = number.parse::<f64>().ok()? * unit as f64;
        return (0.0..1e19).contains(&ns).then(|| ns.round() as u64);
    }
    let parse = |text: &str| match text {
        "" => Some(0),
        digits => digits.parse::<u128>().ok(),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let number = parse(whole)? * scale + parse(fraction)?;
    let exact = number.checked_mul(u128::from(unit))?;
    u64::try_from(exact.checked_add(scale / 2)? / scale).ok()
}

/// The part of a line that a fault shows.
fn cut(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct File(std::path::PathBuf);

    impl File {
        fn with(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("loadlens-{}-{name}", std::process::id()));
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            File(path)
        }

        fn read(&self, column: Option<&str>, speed: f64, from_first: bool) -> Vec<u64> {
            let path = self.0.to_str().unwrap();
            DueTimes::read(path, column, speed, from_first)
                .unwrap()
                .times
                .to_vec()
        }

        fn faults(&self, column: Option<&str>) -> Vec<String> {
            let path = self.0.to_str().unwrap();
            let faults = DueTimes::read(path, column, 1.0, false).unwrap_err();
            faults
                .iter()
                .map(|fault| fault.replace(path, "FILE"))
                .collect()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_line_is_seconds_or_has_a_unit() {
        let file = File::with(
            "units",
            "# when\n0\n0.000000001\n.5\n500.25ms\n\n 2s \n1e1\n1min\n",
        );

        assert_eq!(
            file.read(None, 1.0, false),
            [
                0,
                1,
                500_000_000,
                500_250_000,
                2_000_000_000,
                10_000_000_000,
                60_000_000_000
            ]
        );
    }

    #[test]
    fn a_column_of_a_table_is_found_by_name_or_by_number() {
        let file = File::with(
            "table",
            "path,\"at\"\n\"/a,b\",100.5\n/c,\"101\"\n/c, 101\n",
        );
        let expected = [0, 500_000_000, 500_000_000];

        assert_eq!(file.read(Some("at"), 1.0, true), expected);

        let bare = File::with("bare", "/a,3\n/b,4\n");
        assert_eq!(
            bare.read(Some("2"), 1.0, false),
            [3_000_000_000, 4_000_000_000]
        );
    }

    #[test]
    fn speed_divides_the_times() {
        let file = File::with("speed", "1\n2\n3\n");

        assert_eq!(
            file.read(None, 4.0, false),
            [250_000_000, 500_000_000, 750_000_000]
        );
        assert_eq!(
            file.read(None, 0.5, true),
            [0, 2_000_000_000, 4_000_000_000]
        );
    }

    #[test]
    fn every_fault_names_its_line() {
        let file = File::with("faults", "1\nsoon\n3\n-4\n2\n1e9\n");

        assert_eq!(
            file.faults(None),
            [
                "FILE:2: `soon` is not a due time: seconds such as 1.25, or 250ms",
                "FILE:4: `-4` is not a due time: seconds such as 1.25, or 250ms",
                "FILE:5: `2` comes after 3: due times rise",
                "FILE:6: `1e9` is more than a year after the start: for times of day, from=first",
            ]
        );
        // 2^128 ns and 1,000 s: too large to be counted, and not the rest of it
        let huge = File::with("huge", "94522880.000000000000000000h\n");
        assert!(huge.faults(None)[0].ends_with("is not a due time: seconds such as 1.25, or 250ms"));
        assert_eq!(file.faults(Some("3"))[0], "FILE:1: `1` has no column 3");
        assert_eq!(
            file.faults(Some("at")),
            ["FILE:1: no column is named at: the names are `1`"]
        );
        assert_eq!(
            File::with("empty", "\n# nothing\n").faults(None),
            ["FILE:1: no due time in it"]
        );
    }

    #[test]
    fn the_peak_is_the_fullest_second() {
        let file = File::with("peak", "0.1\n0.9\n1.0\n1.1\n1.99\n5\n");
        let path = file.0.to_str().unwrap();

        let times = DueTimes::read(path, None, 1.0, false).unwrap();

        assert_eq!(
            (times.count(), times.last_ns(), times.peak_per_s()),
            (6, 5_000_000_000, 3.0)
        );
    }
}
