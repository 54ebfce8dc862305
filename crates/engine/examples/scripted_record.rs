//! Writes the live files of a record from a script of what happened: `scripted_record FOLDER < SCRIPT`.
//!
//! What workers do calls the recorders, threads and all; here a script does. `tests/end_to_end/test_record_round_trip.py` draws one,
//! counts for itself what must be in the files, and reads them with Python's readers.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use loadlens_base::Outcome;
use loadlens_plan::program::CheckTally;
use loadlens_record::collector::{Collector, Live, ThreadEnds};
use loadlens_record::files::{Files, Names, StreamNames};
use loadlens_record::grid::Grid;
use loadlens_record::interval::{Course, IntervalSet, Shape};
use loadlens_record::recorder::{Ended, Recorder, RowLogs, StreamProgress, SETS};
use loadlens_record::ring::ring;
use loadlens_record::rows::{
    row_log, ConnectionRow, SampleRow, Thinning, CONNECTION_BYTES, NO_CONNECTION, SAMPLE_BYTES,
};
use parking_lot::Mutex;
use serde::Deserialize;

/// Chunks of rows that a thread has.
const CHUNKS: usize = 8;

#[derive(Deserialize)]
struct Script {
    streams: Vec<StreamOf>,
    threads: usize,
    warmup_ns: u64,
    /// End of the measured part.
    end_ns: u64,
    /// End of the run.
    ended_ns: u64,
    /// In the order of their times.
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct StreamOf {
    name: String,
    steps: Vec<String>,
    groups: Vec<String>,
    /// Number of checks of each step.
    checks: Vec<usize>,
}

#[derive(Deserialize)]
struct Event {
    at: u64,
    thread: usize,
    #[serde(flatten)]
    what: What,
}

/// Calls of a worker to its recorder.
#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum What {
    Due {
        stream: u8,
        step: u16,
    },
    Issued {
        stream: u8,
        step: u16,
        ready: u64,
    },
    Dropped {
        stream: u8,
        step: u16,
        due: u64,
        seq: u64,
    },
    Skipped {
        stream: u8,
        step: u16,
        steps: u16,
    },
    Ended(Request),
    Unfinished(Request),
    Censored {
        stream: u8,
        step: u16,
        due: u64,
        sent: Option<u64>,
    },
    Waiting {
        stream: u8,
        step: u16,
        due: u64,
        seq: u64,
    },
    GroupDue {
        group: usize,
    },
    GroupEnded {
        group: usize,
        course: u8,
        response: u64,
        service: u64,
    },
    GroupUnfinished {
        group: usize,
        response: u64,
        service: Option<u64>,
    },
    Checked {
        check: usize,
        passed: u64,
        failed: u64,
        not_judged: u64,
    },
    Opened {
        stream: u8,
    },
    Established {
        stream: u8,
        took: u64,
    },
    Secured {
        stream: u8,
        took: u64,
        resumed: bool,
    },
    Closed(Connection),
    Unsolicited {
        stream: u8,
    },
    BytesOut {
        stream: u8,
        bytes: usize,
    },
    BytesIn {
        stream: u8,
        bytes: usize,
    },
}

#[derive(Deserialize)]
struct Request {
    stream: u8,
    step: u16,
    outcome: u8,
    status: u16,
    seq: u64,
    due: u64,
    sent: u64,
    asked: u64,
    first: u64,
    user: u32,
    connection: u32,
    first_on_connection: bool,
    wire_bytes: u64,
    body_bytes: u64,
}

#[derive(Deserialize)]
struct Connection {
    connection: u32,
    user: u32,
    opened_ns: i64,
    established_ns: i64,
    closed_ns: i64,
    requests: u32,
    closed_by: u8,
    stream: u8,
    outcome: u8,
    resumed: bool,
    bytes_in: u64,
    tls_ns: i64,
}

impl Request {
    fn at(&self, done: u64) -> Result<Ended, String> {
        let outcome = Outcome::from_code(self.outcome);
        Ok(Ended {
            stream: self.stream,
            step: self.step,
            outcome: outcome.ok_or_else(|| format!("no outcome {}", self.outcome))?,
            status: self.status,
            seq: self.seq,
            due: self.due,
            sent: self.sent,
            asked: self.asked,
            first: self.first,
            done,
            user: self.user,
            connection: self.connection,
            first_on_connection: self.first_on_connection,
            wire_bytes: self.wire_bytes,
            body_bytes: self.body_bytes,
            why: "",
            os_error: 0,
        })
    }
}

impl Connection {
    fn row(&self) -> ConnectionRow {
        ConnectionRow {
            connection: self.connection,
            user: self.user,
            opened_ns: self.opened_ns,
            established_ns: self.established_ns,
            closed_ns: self.closed_ns,
            requests: self.requests,
            closed_by: self.closed_by,
            stream: self.stream,
            outcome: self.outcome,
            is_resumed: self.resumed,
            bytes_in: self.bytes_in,
            tls_ns: self.tls_ns,
            thinned: 0,
        }
    }
}

/// One thread of the run.
struct RecordingThread {
    recorder: Recorder,
    /// Verdicts of its checks so far.
    checks: Vec<CheckTally>,
}

impl RecordingThread {
    fn new(script: &Script) -> (RecordingThread, ThreadEnds) {
        let count = |of: fn(&StreamOf) -> usize| script.streams.iter().map(of).sum();
        let shape = Shape {
            streams: script.streams.len(),
            steps: count(|stream| stream.steps.len()),
            groups: count(|stream| stream.groups.len()),
            checks: count(|stream| stream.checks.iter().sum()),
        };
        let sets = (0..SETS).map(|_| Box::new(IntervalSet::of(&shape)));
        let (full_in, full) = ring(SETS);
        let (empty, empty_out) = ring(SETS);
        let (samples, sample_source) = row_log(SAMPLE_BYTES, CHUNKS);
        let (connections, connection_source) = row_log(CONNECTION_BYTES, CHUNKS);
        let logs = RowLogs {
            samples,
            connections,
            kept_samples: vec![Thinning::new(u64::MAX); script.streams.len()],
            kept_connections: vec![Thinning::new(u64::MAX); script.streams.len()],
        };
        let grid = Grid {
            warmup_end: script.warmup_ns,
            end: script.end_ns,
        };
        let steps: Vec<usize> = script
            .streams
            .iter()
            .map(|stream| stream.steps.len())
            .collect();
        let progress: Arc<[StreamProgress]> =
            steps.iter().map(|_| StreamProgress::default()).collect();
        let rings = (full_in, empty_out);
        let recorder = Recorder::new(&steps, grid, sets.collect(), rings, Some(logs), progress);
        let ends = ThreadEnds {
            full,
            empty,
            samples: Some(sample_source),
            connections: Some(connection_source),
        };
        let checks = vec![CheckTally::default(); shape.checks];
        (RecordingThread { recorder, checks }, ends)
    }

    /// Ends the intervals whose cut is at or before `now`.
    fn pass(&mut self, now: u64) {
        if now >= self.recorder.cut() {
            self.recorder.checked(0, &self.checks);
            self.recorder.cross(now);
        }
    }

    fn take(&mut self, at: u64, what: &What) -> Result<(), String> {
        let recorder = &mut self.recorder;
        match what {
            What::Due { stream, step } => recorder.due(*stream, *step),
            What::Issued {
                stream,
                step,
                ready,
            } => recorder.issued(*stream, *step, *ready, at),
            What::Dropped {
                stream,
                step,
                due,
                seq,
            } => {
                recorder.dropped(*stream, *step);
                recorder.sample(unissued(*stream, *step, *due, *seq, Outcome::Dropped));
            }
            What::Skipped {
                stream,
                step,
                steps,
            } => recorder.skipped(*stream, *step, *steps),
            What::Ended(request) => recorder.ended(&request.at(at)?),
            What::Unfinished(request) => recorder.unfinished(&request.at(at)?),
            What::Censored {
                stream,
                step,
                due,
                sent,
            } => recorder.censored(*stream, *step, *due, *sent, at),
            What::Waiting {
                stream,
                step,
                due,
                seq,
            } => {
                recorder.sample(unissued(*stream, *step, *due, *seq, Outcome::Waiting));
            }
            What::GroupDue { group } => recorder.group_due(*group),
            What::GroupEnded {
                group,
                course,
                response,
                service,
            } => {
                let courses = [Course::Completed, Course::Failed, Course::Censored];
                let course = courses[usize::from(*course)];
                recorder.group_ended(*group, course, *response, *service);
            }
            What::GroupUnfinished {
                group,
                response,
                service,
            } => {
                recorder.group_unfinished(*group, *response, *service);
            }
            What::Checked {
                check,
                passed,
                failed,
                not_judged,
            } => {
                let tally = &mut self.checks[*check];
                tally.passed += passed;
                tally.failed += failed;
                tally.not_judged += not_judged;
            }
            What::Opened { stream } => recorder.opened(*stream),
            What::Established { stream, took } => recorder.established(*stream, *took),
            What::Secured {
                stream,
                took,
                resumed,
            } => recorder.secured(*stream, *took, *resumed),
            What::Closed(connection) => recorder.closed(&connection.row()),
            What::Unsolicited { stream } => recorder.unsolicited(*stream),
            What::BytesOut { stream, bytes } => recorder.bytes_out(*stream, *bytes),
            What::BytesIn { stream, bytes } => recorder.bytes_in(*stream, *bytes),
        }
        Ok(())
    }
}

/// The row of a request that was due and never issued.
fn unissued(stream: u8, step: u16, due: u64, seq: u64, outcome: Outcome) -> SampleRow {
    SampleRow {
        seq,
        due_ns: due as i64,
        sent_ns: -1,
        first_ns: -1,
        done_ns: -1,
        user: u32::MAX,
        connection: NO_CONNECTION,
        step,
        outcome: outcome.code(),
        stream,
        ..SampleRow::default()
    }
}

fn names(script: &Script) -> Names {
    let of_stream = |stream: &StreamOf| StreamNames {
        name: stream.name.clone(),
        steps: stream.steps.clone(),
        groups: stream.groups.clone(),
        checks: stream.checks.clone(),
    };
    Names {
        streams: script.streams.iter().map(of_stream).collect(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("scripted_record FOLDER < SCRIPT")?;
    let script: Script = serde_json::from_reader(std::io::stdin().lock())?;
    let files = Files::create(Path::new(&folder), None)?;
    let (mut threads, ends): (Vec<RecordingThread>, Vec<ThreadEnds>) = (0..script.threads)
        .map(|_| RecordingThread::new(&script))
        .unzip();
    let live = Arc::new(Mutex::new(Live::default()));
    let mut collector = Collector::new(names(&script), ends, Some(files), live);
    for event in &script.events {
        threads.iter_mut().for_each(|thread| thread.pass(event.at));
        collector.collect();
        threads[event.thread].take(event.at, &event.what)?;
    }
    for mut thread in threads {
        thread.pass(script.ended_ns - 1);
        thread.recorder.checked(0, &thread.checks);
        let leftover = thread.recorder.finish(script.ended_ns);
        collector.collect();
        if leftover.lost_samples + leftover.lost_connections > 0 {
            return Err("rows were lost".into());
        }
    }
    let (collected, files) = collector.finish();
    let (faults, lost) = (files.map(|files| files.faults()), collected.lost_values);
    if faults.iter().flatten().next().is_some() || lost > 0 {
        return Err(format!("{faults:?}, {lost} values lost").into());
    }
    Ok(())
}
