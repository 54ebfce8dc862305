//! The live files of a run, append only, as docs/reference/record.md lays them out.
//!
//! A file that cannot be written any more is given up and named; the others and the run go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use base64::Engine as _;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{json, Map, Value};

use loadlens_base::units::seconds;
use loadlens_base::{Class, Outcome};

use super::histogram::{bucket_high, bucket_low, bucket_of, HIGHEST};
use super::interval::{CheckCount, Course, GroupTally, LoopTally, CLASSES, COURSES};
use super::merge::{Counts, IntervalSum, StreamSum, TimingSum};
use super::rows::Chunk;
use super::sums::{chunk, Begin, Kind};

/// Names of streams and steps, as the files need them.
#[derive(Clone, Debug)]
pub struct Names {
    /// In the order of the plan.
    pub streams: Vec<StreamNames>,
}

/// Names of one stream.
#[derive(Clone, Debug, Default)]
pub struct StreamNames {
    /// As in the plan.
    pub name: String,
    /// Its steps, as in the plan.
    pub steps: Vec<String>,
    /// Its groups, as in the plan.
    pub groups: Vec<String>,
    /// Number of checks of each step; empty: none has any.
    pub checks: Vec<usize>,
}

impl Names {
    /// Index of the first step of a stream among all steps.
    pub fn first_step(&self, stream: usize) -> usize {
        self.streams[..stream]
            .iter()
            .map(|stream| stream.steps.len())
            .sum()
    }

    /// Indices of the steps of a stream among all steps.
    pub fn steps(&self, stream: usize) -> Range<usize> {
        let first = self.first_step(stream);
        first..first + self.streams[stream].steps.len()
    }

    /// Index of the first group of a stream among all groups.
    pub fn first_group(&self, stream: usize) -> usize {
        let before = self.streams[..stream].iter();
        before.map(|stream| stream.groups.len()).sum()
    }

    /// Index of the first check of a stream among all checks.
    pub fn first_check(&self, stream: usize) -> usize {
        let before = self.streams[..stream].iter();
        before.flat_map(|stream| &stream.checks).sum()
    }
}

/// One append-only file, until it cannot be written any more.
struct Log {
    name: &'static str,
    file: Option<File>,
    fault: Option<String>,
}

impl Log {
    fn create(dir: &Path, name: &'static str) -> io::Result<Log> {
        let file = File::create(dir.join(name))?;
        Ok(Log {
            name,
            file: Some(file),
            fault: None,
        })
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes) {
            self.fault = Some(format!("{} ends early: {error}", self.name));
            self.file = None;
        }
    }
}

/// First word of a compressed histogram (HdrHistogram V2).
const DEFLATED: u32 = 0x1c84_9314;
/// Bytes of an encoded histogram before its counts.
const ENCODED_HEAD: usize = 40;
/// An interval begins with a step if it begins at most so long before it: times are rounded in the log.
const EDGE_S: f64 = 1e-6;
/// More than all buckets of the finest histogram take.
const LONGEST_ENCODED: u64 = 64 << 20;

/// All live files.
pub struct Files {
    samples: Option<Log>,
    connections: Option<Log>,
    sums: Option<Log>,
    intervals: Log,
    counters: Log,
    encoder: HlogEncoder,
}

impl Files {
    /// Creates those of one machine in an existing folder; with sums only if they are asked for.
    pub fn create(dir: &Path, sums: Option<Begin>) -> io::Result<Files> {
        let mut files = Files::merged(dir)?;
        files.samples = Some(Log::create(dir, "samples.bin")?);
        files.connections = Some(Log::create(dir, "connections.bin")?);
        if let Some(begin) = sums {
            let mut log = Log::create(dir, "sums.bin")?;
            log.append(&chunk(Kind::Begin, &begin));
            files.sums = Some(log);
        }
        Ok(files)
    }

    /// Creates those of several machines together in an existing folder: rows stay where they are.
    pub fn merged(dir: &Path) -> io::Result<Files> {
        let mut files = Files {
            samples: None,
            connections: None,
            sums: None,
            intervals: Log::create(dir, "intervals.hlog")?,
            counters: Log::create(dir, "counters.jsonl")?,
            encoder: HlogEncoder::new(),
        };
        files.intervals.append(
            b"#[Histogram log format version 1.3]\n\
              \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        );
        Ok(files)
    }

    /// Appends a chunk of sample rows.
    pub fn samples(&mut self, chunk: &Chunk) {
        append_chunk(&mut self.samples, b"LLS1", chunk);
    }

    /// Appends an interval of one thread to the sums.
    pub fn sum(&mut self, thread: usize, sum: &IntervalSum) {
        if let Some(log) = &mut self.sums {
            log.append(&chunk(Kind::Interval, &(thread as u32, sum)));
        }
    }

    /// Ends the sums.
    pub fn end(&mut self, end: &impl Serialize) {
        if let Some(log) = &mut self.sums {
            log.append(&chunk(Kind::End, end));
        }
    }

    /// Appends a chunk of connection rows.
    pub fn connections(&mut self, chunk: &Chunk) {
        append_chunk(&mut self.connections, b"LLC3", chunk);
    }

    /// Appends one interval to histograms and counters.
    pub fn interval(&mut self, sum: &IntervalSum, names: &Names) {
        let mut lines = String::new();
        for_each_timing(sum, names, |tag, timing| {
            self.encoder
                .line(&mut lines, tag, sum.start, sum.end, &timing.counts);
        });
        self.intervals.append(lines.as_bytes());
        let mut lines = String::new();
        for index in 0..names.streams.len() {
            lines.push_str(&counters_of_stream(sum, names, index).to_string());
            lines.push('\n');
        }
        lines.push_str(&counters_of_engine(sum).to_string());
        lines.push('\n');
        self.counters.append(lines.as_bytes());
    }

    /// Faults of writing.
    pub fn faults(&self) -> Vec<String> {
        let optional = [&self.samples, &self.connections, &self.sums];
        let logs = optional.into_iter().flatten();
        let logs = logs.chain([&self.intervals, &self.counters]);
        logs.filter_map(|log| log.fault.clone()).collect()
    }
}

fn append_chunk(log: &mut Option<Log>, magic: &[u8; 4], chunk: &Chunk) {
    let Some(log) = log else { return };
    let mut bytes = Vec::with_capacity(16 + chunk.bytes.len());
    bytes.extend_from_slice(magic);
    bytes.extend_from_slice(&chunk.rows.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&chunk.bytes).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&chunk.bytes);
    log.append(&bytes);
}

/// Calls `each(tag, timing)` for everything in an interval that is not empty.
fn for_each_timing(sum: &IntervalSum, names: &Names, mut each: impl FnMut(&str, &TimingSum)) {
    for (index, stream) in names.streams.iter().enumerate() {
        let name = tag_part(&stream.name);
        let first = names.first_step(index);
        for (step, step_name) in stream.steps.iter().enumerate() {
            for &class in Class::ALL {
                let cell = &sum.cells[(first + step) * CLASSES + class as usize];
                let tag = format!("{name}.{}.{}", tag_part(step_name), class.name());
                each(&format!("{tag}.response"), &cell.response);
                each(&format!("{tag}.service"), &cell.service);
            }
            let phases = &sum.phases[first + step];
            let tag = format!("{name}.{}.{}", tag_part(step_name), Class::Ok.name());
            each(&format!("{tag}.first_byte"), &phases.first_byte);
            each(&format!("{tag}.last_byte"), &phases.last_byte);
        }
        let first = names.first_group(index);
        for (group, group_name) in stream.groups.iter().enumerate() {
            for (course, class) in COURSE_CLASSES {
                let cell = &sum.group_cells[(first + group) * COURSES + course as usize];
                let tag = format!("{name}.{}.{}", tag_part(group_name), class.name());
                each(&format!("{tag}.group_response"), &cell.response);
                each(&format!("{tag}.group_service"), &cell.service);
            }
        }
        let tally = &sum.streams[index];
        each(&format!("{name}...lag"), &tally.lag);
        each(&format!("{name}...connect"), &tally.connect);
        each(&format!("{name}...tls"), &tally.tls);
    }
}

/// Runs of groups under the names of the classes that requests have.
const COURSE_CLASSES: [(Course, Class); COURSES] = [
    (Course::Completed, Class::Ok),
    (Course::Failed, Class::Failed),
    (Course::Censored, Class::Censored),
];

fn tag_part(name: &str) -> String {
    name.replace(['.', ',', ' ', '='], "_")
}

/// Writes lines of an HDR histogram log.
struct HlogEncoder {
    histogram: Histogram<u64>,
    serializer: V2DeflateSerializer,
    bytes: Vec<u8>,
}

impl HlogEncoder {
    fn new() -> Self {
        HlogEncoder {
            histogram: empty(),
            serializer: V2DeflateSerializer::new(),
            bytes: Vec::new(),
        }
    }

    fn line(&mut self, out: &mut String, tag: &str, start: u64, end: u64, counts: &Counts) {
        if counts.is_empty() {
            return;
        }
        self.histogram.reset();
        for (bucket, count) in counts {
            self.histogram
                .saturating_record_n(bucket_low(*bucket as usize), *count);
        }
        self.bytes.clear();
        if self
            .serializer
            .serialize(&self.histogram, &mut self.bytes)
            .is_err()
        {
            return; // writing to memory: only an overflow of 2^63 counts could end up here
        }
        let encoded = base64::engine::general_purpose::STANDARD.encode(&self.bytes);
        let (start_s, length_s) = (seconds(start), seconds(end - start));
        let max_ms = self.histogram.max() as f64 / 1e6;
        out.push_str(&format!(
            "Tag={tag},{start_s:.9},{length_s:.9},{max_ms:.3},{encoded}\n"
        ));
    }
}

fn empty() -> Histogram<u64> {
    // The bounds are constants within what the crate takes.
    Histogram::new_with_bounds(1, HIGHEST, 3).unwrap_or_else(|error| unreachable!("{error}"))
}

fn counters_of_stream(sum: &IntervalSum, names: &Names, index: usize) -> Value {
    let stream = &sum.streams[index];
    let steps = names.steps(index);
    let of_steps = |count: fn(&super::interval::StepTally) -> u64| -> u64 {
        sum.steps[steps.clone()].iter().map(count).sum()
    };
    let of_class = |class: Class| sum.ended(steps.clone(), class);
    let (ok, unexpected, failed_check) = (
        of_class(Class::Ok),
        of_class(Class::UnexpectedStatus),
        of_class(Class::CheckFailed),
    );
    let gap = stream.longest_gap();
    json!({
        "start_s": seconds(sum.start),
        "length_s": seconds(sum.length()),
        "phase": <&str>::from(sum.phase),
        "stream": names.streams[index].name,
        "due": of_steps(|step| step.due),
        "issued": of_steps(|step| step.issued),
        "dropped": of_steps(|step| step.dropped),
        "answered": ok + unexpected + failed_check,
        "ok": ok,
        "unexpected_status": unexpected,
        "check_failed": failed_check,
        "skipped": of_steps(|step| step.skipped),
        "failed": failures(stream),
        "status": statuses(stream),
        "in_flight": stream.in_flight,
        "in_flight_integral_s": seconds(stream.flows.in_flight_integral),
        "in_flight_max": stream.in_flight_max,
        "waiting": stream.waiting,
        "max_gap_s": gap.map(|gap| seconds(gap.length())),
        "max_gap_at_s": gap.map(|gap| seconds(gap.from)),
        "opened": stream.flows.opened,
        "closed_by_client": stream.flows.closed_by_client,
        "closed_by_server": stream.flows.closed_by_server,
        "closed_by_error": stream.flows.closed_by_error,
        "unsolicited": stream.flows.unsolicited,
        "bytes_out": stream.flows.bytes_out,
        "bytes_in_wire": stream.flows.bytes_in_wire,
        "bytes_in_body": stream.flows.bytes_in_body,
        "cells": cells(sum, steps),
        "groups": groups(sum, names, index),
        "checks": checks(sum, names, index),
    })
}

/// Failures by class.
pub fn failures(stream: &StreamSum) -> Map<String, Value> {
    let classes = Outcome::ALL.iter().filter(|outcome| outcome.is_failure());
    classes
        .map(|outcome| {
            (
                outcome.name().to_owned(),
                stream.failed[outcome.code() as usize],
            )
        })
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name, count.into()))
        .collect()
}

/// Answers by status.
pub fn statuses(stream: &StreamSum) -> Map<String, Value> {
    let seen = stream
        .status
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    seen.map(|(status, count)| (status.to_string(), (*count).into()))
        .collect()
}

fn cells(sum: &IntervalSum, steps: Range<usize>) -> Map<String, Value> {
    let mut cells = Map::new();
    for (number, step) in steps.enumerate() {
        for &class in Class::ALL {
            let cell = &sum.cells[step * CLASSES + class as usize];
            if cell.response.moments.count == 0 {
                continue;
            }
            let (response, service) = (&cell.response.moments, &cell.service.moments);
            let content = json!({
                "count": response.count,
                "response_sum_s": response.sum_s(),
                "response_sumsq_s2": response.sum_of_squares_s2(),
                "service_sum_s": service.sum_s(),
                "service_sumsq_s2": service.sum_of_squares_s2(),
            });
            cells.insert(format!("{number}.{}", class.name()), content);
        }
    }
    cells
}

/// Runs of the stream's groups, by the index of the group; none: there was none in the interval.
fn groups(sum: &IntervalSum, names: &Names, index: usize) -> Map<String, Value> {
    let mut groups = Map::new();
    let first = names.first_group(index);
    for group in 0..names.streams[index].groups.len() {
        let tally = &sum.groups[first + group];
        if *tally == GroupTally::default() {
            continue;
        }
        let completed = &sum.group_cells[(first + group) * COURSES + Course::Completed as usize];
        let mut content = json!(tally);
        content["response_sum_s"] = completed.response.moments.sum_s().into();
        content["service_sum_s"] = completed.service.moments.sum_s().into();
        groups.insert(group.to_string(), content);
    }
    groups
}

/// Results of the checks of the stream's steps, by the index of the step and of its check.
fn checks(sum: &IntervalSum, names: &Names, index: usize) -> Map<String, Value> {
    let mut checks = Map::new();
    let mut at = names.first_check(index);
    for (step, count) in names.streams[index].checks.iter().enumerate() {
        for check in 0..*count {
            let count = &sum.checks[at];
            at += 1;
            if *count == CheckCount::default() {
                continue;
            }
            checks.insert(format!("{step}.{check}"), json!(count));
        }
    }
    checks
}

fn counters_of_engine(sum: &IntervalSum) -> Value {
    let length = sum.length().max(1) as f64;
    let by_thread =
        |value: &dyn Fn(&LoopTally) -> f64| -> Vec<f64> { sum.threads.iter().map(value).collect() };
    json!({
        "start_s": seconds(sum.start),
        "length_s": seconds(sum.length()),
        "phase": <&str>::from(sum.phase),
        "stream": null,
        "generator": {
            "busy": by_thread(&|thread| thread.busy(length)),
            "runq_wait_s": by_thread(&|thread| seconds(thread.runq_wait_ns)),
            "stalled_s": by_thread(&|thread| seconds(thread.stalled_ns)),
            "lag_p99_s": sum.lag_p99_s(),
            "loops": sum.threads.iter().map(|thread| thread.loops).sum::<u64>(),
        },
    })
}

/// One line of an interval log: times, tag, and the buckets that are not empty.
#[derive(Clone, Debug, PartialEq)]
pub struct HlogInterval {
    /// Since `t0`.
    pub start_s: f64,
    /// Its length.
    pub length_s: f64,
    /// `stream.step.class.kind`.
    pub tag: String,
    /// (largest value of the bucket in ns, count), rising.
    pub counts: Vec<(u64, u64)>,
}

/// Reads an interval log, which faults call `name`; a torn last line is left out, any other bad line is an error that
/// names it.
pub fn read_intervals(name: &str, bytes: &[u8]) -> io::Result<Vec<HlogInterval>> {
    let mut intervals = Vec::new();
    each_interval(name, bytes, |_| true, |interval| intervals.push(interval))?;
    Ok(intervals)
}

/// Shows each interval whose tag is wanted; the others are not decoded.
pub fn each_interval(
    name: &str,
    bytes: &[u8],
    is_wanted: impl Fn(&str) -> bool,
    mut visit: impl FnMut(HlogInterval),
) -> io::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut deserializer = Deserializer::new();
    for (number, line) in whole.lines().enumerate() {
        if line.is_empty() || line.starts_with(['#', '"']) {
            continue;
        }
        let tag = line
            .strip_prefix("Tag=")
            .and_then(|rest| rest.split(',').next());
        if !is_wanted(tag.unwrap_or("")) {
            continue;
        }
        let interval = read_line(line, &mut deserializer).ok_or_else(|| {
            let what = format!("{name}:{}: not a line of an HDR histogram log", number + 1);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        visit(interval);
    }
    Ok(())
}

/// Adds up the intervals of each tag that lie in the same step, so that a long log takes no more room than its steps.
pub struct Steps {
    /// Begins of the steps in seconds, rising, and the end of the last one.
    edges: Vec<f64>,
    /// By tag: the step that is being added up.
    open: BTreeMap<String, OpenStep>,
}

struct OpenStep {
    step: usize,
    start_s: f64,
    end_s: f64,
    counts: Vec<u64>,
}

impl Steps {
    /// Steps between these edges.
    pub fn new(edges: Vec<f64>) -> Self {
        Steps {
            edges,
            open: BTreeMap::new(),
        }
    }

    /// Takes the next interval of a log; gives the step of its tag that ends with it. An interval that lies in no
    /// step is dropped.
    pub fn add(&mut self, interval: HlogInterval) -> Option<HlogInterval> {
        let at = interval.start_s + EDGE_S;
        let step = self.edges.partition_point(|edge| *edge <= at);
        if step == 0 || step == self.edges.len() {
            return None;
        }
        let ended = match self.open.get(&interval.tag) {
            Some(open) if open.step == step => None,
            _ => self.open.remove(&interval.tag),
        };
        let ended = ended.map(|open| open.end(interval.tag.clone()));
        let open = self.open.entry(interval.tag).or_insert_with(|| OpenStep {
            step,
            start_s: interval.start_s,
            end_s: 0.0,
            counts: vec![0; bucket_of(HIGHEST) + 1],
        });
        open.end_s = interval.start_s + interval.length_s;
        for (upper, count) in interval.counts {
            open.counts[bucket_of(upper)] += count;
        }
        ended
    }

    /// The steps that no later interval ended.
    pub fn finish(self) -> impl Iterator<Item = HlogInterval> {
        self.open.into_iter().map(|(tag, open)| open.end(tag))
    }
}

impl OpenStep {
    fn end(self, tag: String) -> HlogInterval {
        let counted = self.counts.into_iter().enumerate();
        HlogInterval {
            start_s: self.start_s,
            length_s: self.end_s - self.start_s,
            tag,
            counts: counted
                .filter(|(_, count)| *count > 0)
                .map(|(bucket, count)| (bucket_high(bucket), count))
                .collect(),
        }
    }
}

fn read_line(line: &str, deserializer: &mut Deserializer) -> Option<HlogInterval> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',')?,
        None => ("", line),
    };
    let mut fields = rest.split(',');
    let (start_s, length_s) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let encoded = fields.nth(1)?;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()?;
    let bytes = inflated(&bytes)?;
    let histogram: Histogram<u64> = deserializer.deserialize(&mut bytes.as_slice()).ok()?;
    let counts = histogram.iter_recorded();
    let counts = counts
        .map(|value| {
            (
                histogram.highest_equivalent(value.value_iterated_to()),
                value.count_at_value(),
            )
        })
        .collect();
    Some(HlogInterval {
        start_s,
        length_s,
        tag: tag.to_owned(),
        counts,
    })
}

/// An encoded histogram without its compression; none: it is none.
///
/// The `hdrhistogram` crate makes room for as many bytes as the header says are to come, up to 4 GiB: so what it is given
/// must be there.
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(word))
    };
    let plain = if word(bytes, 0)? == DEFLATED {
        let length = word(bytes, 4)? as usize;
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(bytes.get(8..8 + length)?)
            .take(LONGEST_ENCODED)
            .read_to_end(&mut plain)
            .ok()?;
        plain
    } else {
        bytes.to_vec()
    };
    let to_come = plain.len().checked_sub(ENCODED_HEAD)?;
    (word(&plain, 4)? as usize <= to_come).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_between_two_edges_are_added_up_by_tag() {
        let at = |start_s, tag: &str, counts: &[(u64, u64)]| HlogInterval {
            start_s,
            length_s: 1.0,
            tag: tag.to_owned(),
            counts: counts.to_vec(),
        };
        let mut steps = Steps::new(vec![1.0, 3.0, 4.0]);
        let log = [
            at(0.0, "a", &[(9, 9)]), // before the first step
            at(1.0, "a", &[(5, 1), (7, 2)]),
            at(2.0, "b", &[(5, 4)]),
            at(1.999_999_9, "a", &[(7, 3)]),
            at(3.0, "a", &[(5, 8)]),
            at(4.0, "a", &[(9, 9)]), // after the last one
        ];

        let mut read: Vec<HlogInterval> =
            log.into_iter().filter_map(|each| steps.add(each)).collect();
        read.extend(steps.finish());

        let shown = read.iter().map(|each| {
            (
                each.tag.as_str(),
                each.start_s,
                each.start_s + each.length_s,
                each.counts.clone(),
            )
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown[0].0, "a");
        assert_eq!(shown[0].3, [(5, 1), (7, 5)]);
        assert!((shown[0].1 - 1.0).abs() < 1e-9 && (shown[0].2 - 3.0).abs() < 1e-6);
        assert_eq!(shown[1], ("a", 3.0, 4.0, vec![(5, 8)]));
        assert_eq!(shown[2], ("b", 2.0, 3.0, vec![(5, 4)]));
    }

    #[test]
    fn an_interval_log_reads_back_bucket_by_bucket() {
        let counts: Counts = [1_500, 2_000_000, 7_000_000_000]
            .map(|v| (bucket_of(v) as u32, v % 7 + 1))
            .to_vec();
        let mut text = String::from("#[Histogram log format version 1.3]\n\"StartTimestamp\"\n");
        HlogEncoder::new().line(
            &mut text,
            "load.get.ok.response",
            250_000_000,
            500_000_000,
            &counts,
        );
        text.push_str("Tag=load.get.ok.resp");

        let read = read_intervals("f", text.as_bytes()).unwrap();

        assert_eq!(read.len(), 1);
        assert_eq!((read[0].start_s, read[0].length_s), (0.25, 0.25));
        assert_eq!(read[0].tag, "load.get.ok.response");
        let expected: Vec<(u64, u64)> = counts
            .iter()
            .map(|(b, c)| (bucket_high(*b as usize), *c))
            .collect();
        assert_eq!(read[0].counts, expected);
    }

    #[test]
    fn a_histogram_that_announces_more_than_is_there_makes_no_room_for_it() {
        let mut log = Vec::new();
        let mut histogram = empty();
        histogram.record(1_500).unwrap();
        hdrhistogram::serialization::V2Serializer::new()
            .serialize(&histogram, &mut log)
            .unwrap();
        assert_eq!(inflated(&log), Some(log.clone()));

        log[4..8].copy_from_slice(&u32::MAX.to_be_bytes());

        assert_eq!(inflated(&log), None);
    }

    #[test]
    fn names_cannot_break_a_tag() {
        assert_eq!(tag_part("a.b,c d=e"), "a_b_c_d_e");
    }
}
