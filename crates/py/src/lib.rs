//! `loadlens._engine`: the door between Python and the engine. It converts and decides nothing.
//!
//! The contract is docs/reference/engine-api.md. Nothing here runs on an engine thread, and no engine
//! thread ever takes the GIL.

mod estimates;
mod yaml;

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use loadlens_base::Fault;
use loadlens_engine::run::{self, Refusal};
use loadlens_engine::worker::Level;
use loadlens_engine::{calibrate, clock};
use loadlens_lua::{Fault as ScriptFault, Session};
use loadlens_plan::arrival::replay::DueTimes;
use loadlens_plan::program;
use loadlens_plan::{FeedFormat, Plan};
use loadlens_proxy::{Proxy, Settings};
use loadlens_record::files;
use parking_lot::Mutex;
use pyo3::exceptions::{PyConnectionError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

fn pairs(faults: Vec<Fault>) -> Vec<(String, String)> {
    faults
        .into_iter()
        .map(|fault| (fault.where_, fault.what))
        .collect()
}

/// A ValueError whose text is a list of faults as JSON.
fn value_error(faults: &impl Serialize) -> PyErr {
    let list = serde_json::to_string(faults);
    PyValueError::new_err(list.unwrap_or_else(|error| error.to_string()))
}

/// The engine's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Every fault of a plan at once as (where, what); empty: the plan is good.
#[pyfunction]
fn validate(py: Python<'_>, plan_json: &str) -> Vec<(String, String)> {
    py.detach(|| match serde_json::from_str::<Plan>(plan_json) {
        Ok(plan) => pairs(plan.validate()),
        Err(error) => vec![("plan".to_owned(), error.to_string())],
    })
}

/// CLOCK_MONOTONIC in nanoseconds.
#[pyfunction]
fn monotonic_ns() -> u64 {
    clock::monotonic_ns()
}

/// A fault of one template, given the names that earlier steps extract and the feeds; None: it is good.
#[pyfunction]
fn check_template(text: &str, names: Vec<String>, feeds: Vec<String>) -> Option<String> {
    program::check_template(text, &names, &feeds)
}

/// The columns of feeds that a template uses, as (feed, column, whether raw); none of one that has a fault.
#[pyfunction]
fn columns_of(text: &str, names: Vec<String>, feeds: Vec<String>) -> Vec<(String, String, bool)> {
    program::columns_of(text, &names, &feeds)
}

/// A data feed, read whole and checked.
#[pyclass(module = "loadlens._engine", frozen)]
struct FeedFile {
    file: program::FeedFile,
}

#[pymethods]
impl FeedFile {
    /// `format`: csv, tsv or jsonl.
    #[new]
    fn new(py: Python<'_>, path: &str, format: &str) -> PyResult<Self> {
        let format = match format {
            "csv" => FeedFormat::Csv,
            "tsv" => FeedFormat::Tsv,
            "jsonl" => FeedFormat::Jsonl,
            _ => return Err(PyValueError::new_err(format!("unknown format {format}"))),
        };
        py.detach(|| program::FeedFile::open(path, format))
            .map(|file| FeedFile { file })
            .map_err(PyValueError::new_err)
    }

    /// SHA-256 of the bytes, hex.
    fn digest(&self) -> &str {
        self.file.digest()
    }

    /// Number of records.
    fn records(&self) -> u32 {
        self.file.records()
    }

    /// Reason why a column cannot be used this way; None: it can.
    fn fault(&self, py: Python<'_>, column: &str, in_header: bool, is_raw: bool) -> Option<String> {
        py.detach(|| self.file.fault(column, program::Use { in_header, is_raw }))
    }
}

/// A fault of one regular expression of which `group` is wanted; None: it is good.
#[pyfunction]
fn check_pattern(text: &str, group: Option<u32>) -> Option<String> {
    program::check_pattern(text, group)
}

/// Count, last one in nanoseconds, most in a second and digest of a file of due times; ValueError: a JSON list of its faults.
#[pyfunction]
fn read_due_times(
    py: Python<'_>,
    path: &str,
    column: Option<&str>,
    speed: f64,
    from_first: bool,
) -> PyResult<(u64, u64, f64, String)> {
    match py.detach(|| DueTimes::read(path, column, speed, from_first)) {
        Ok(found) => Ok((
            found.count(),
            found.last_ns(),
            found.peak_per_s(),
            found.digest,
        )),
        Err(faults) => Err(value_error(&faults)),
    }
}

/// Start, length, tag, bucket upper values and counts (u64, little-endian) of the lines of an interval log whose tags do
/// not begin and end as one of `but` does. With `edges`, lines of one tag between two of them are added up, and lines
/// outside them are left out. ValueError: a line is damaged.
#[pyfunction]
#[pyo3(signature = (path, but, edges=None))]
#[allow(clippy::type_complexity)]
fn read_intervals<'py>(
    py: Python<'py>,
    path: &str,
    but: Vec<(String, String)>,
    edges: Option<Vec<f64>>,
) -> PyResult<Vec<(f64, f64, String, Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
    let content = py.detach(|| std::fs::read(path))?;
    let is_wanted = |tag: &str| {
        let ends = tag.split_once('.').zip(tag.rsplit_once('.'));
        ends.is_none_or(|((stream, _), (_, kind))| {
            !but.iter()
                .any(|(one, other)| one == stream && other == kind)
        })
    };
    let bytes = |values: &mut dyn Iterator<Item = u64>| -> Bound<'py, PyBytes> {
        let raw: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        PyBytes::new(py, &raw)
    };
    let mut intervals = Vec::new();
    let mut keep = |interval: files::HlogInterval| {
        intervals.push((
            interval.start_s,
            interval.length_s,
            interval.tag,
            bytes(&mut interval.counts.iter().map(|(upper, _)| *upper)),
            bytes(&mut interval.counts.iter().map(|(_, count)| *count)),
        ));
    };
    let mut steps = edges.map(files::Steps::new);
    files::each_interval(path, &content, is_wanted, |interval| match &mut steps {
        None => keep(interval),
        Some(steps) => {
            if let Some(ended) = steps.add(interval) {
                keep(ended);
            }
        }
    })
    .map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    for last in steps.into_iter().flat_map(files::Steps::finish) {
        keep(last);
    }
    Ok(intervals)
}

/// Nanoseconds: how late sleeps of a millisecond end (p50, p99, most), and one reading of the clock.
#[pyfunction]
fn timer_precision(py: Python<'_>, sleeps: usize) -> (u64, u64, u64, u64) {
    let timer = py.detach(|| calibrate::Timer::measure(sleeps));
    (
        timer.late_p50_ns,
        timer.late_p99_ns,
        timer.late_max_ns,
        timer.clock_read_ns,
    )
}

/// Serves a loopback port that does nothing, with a thread on each of `cores`, until standard input ends;
/// `listening` is called with the port first.
#[pyfunction]
fn serve_nothing(py: Python<'_>, cores: Vec<u32>, listening: Py<PyAny>) -> PyResult<()> {
    let nothing = calibrate::Nothing::bind()?;
    listening.call1(py, (nothing.port(),))?;
    py.detach(|| nothing.serve(std::io::stdin().as_raw_fd(), &cores))?;
    Ok(())
}

/// Serves as a fault proxy on this thread until one of the descriptors `ends` can be read or is closed;
/// `listening` is called with the two ports first. ValueError: a JSON list of the settings' faults as (key, what).
#[pyfunction]
fn serve_proxy(
    py: Python<'_>,
    settings_json: &str,
    ends: Vec<i32>,
    listening: Py<PyAny>,
) -> PyResult<()> {
    let settings = Settings::read(settings_json).map_err(|faults| value_error(&pairs(faults)))?;
    let proxy = Proxy::bind(settings).map_err(|taken| PyOSError::new_err(taken.to_string()))?;
    listening.call1(py, (proxy.port, proxy.control_port))?;
    py.detach(|| proxy.serve(&ends))?;
    Ok(())
}

/// The outcome of a queueing model, both as JSON. ValueError: a JSON list of the model's faults as (where, what).
#[pyfunction]
fn simulate(py: Python<'_>, model_json: &str) -> PyResult<String> {
    py.detach(|| loadlens_queues::simulate_json(model_json))
        .map_err(|faults| value_error(&pairs(faults)))
}

/// The result, as JSON, of machines that shared a plan and wrote `sums.bin` into these folders; the intervals of all go
/// into the folder `out`. ValueError: the file and its fault.
#[pyfunction]
fn merge(py: Python<'_>, plan_json: &str, folders: Vec<String>, out: &str) -> PyResult<String> {
    py.detach(|| run::merge(plan_json, &folders, Path::new(out)))
        .map_err(PyValueError::new_err)
}

/// One run of the engine on threads of its own, which never take the GIL.
#[pyclass(module = "loadlens._engine")]
struct Run {
    // Only `start` needs it alone; the lock is never held while waiting.
    run: Mutex<run::Run>,
}

#[pymethods]
impl Run {
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        match py.detach(|| run::Run::new(plan_json)) {
            Ok(run) => Ok(Run {
                run: Mutex::new(run),
            }),
            Err(Refusal::Plan(faults)) => Err(value_error(&pairs(faults))),
            Err(Refusal::Machine(shortage)) => Err(PyOSError::new_err(format!(
                "{}\n{}",
                shortage.what, shortage.advice
            ))),
        }
    }

    /// Warnings about this machine, made before the start.
    fn notes(&self) -> Vec<String> {
        self.run.lock().notes().to_vec()
    }

    /// Starts the threads; returns when they run, or are ready to begin at `at_monotonic_ns`. ValueError: that is past or
    /// too near.
    #[pyo3(signature = (at_monotonic_ns=None))]
    fn start(&self, py: Python<'_>, at_monotonic_ns: Option<u64>) -> PyResult<()> {
        py.detach(|| self.run.lock().start_at(at_monotonic_ns))
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidInput if at_monotonic_ns.is_some() => {
                    PyValueError::new_err(error.to_string())
                }
                _ => PyOSError::new_err(error.to_string()),
            })
    }

    /// Progress of the run as JSON; cheap, any time, from any thread.
    fn progress(&self, py: Python<'_>) -> String {
        py.detach(|| self.run.lock().progress())
    }

    /// Changes the load of a stream to a rate or a number of users; returns the level before and the time at which the
    /// change takes effect, in nanoseconds since `t0`. ValueError: why it cannot be.
    #[pyo3(signature = (stream, rate_per_s=None, users=None))]
    fn change(
        &self,
        py: Python<'_>,
        stream: &str,
        rate_per_s: Option<f64>,
        users: Option<u32>,
    ) -> PyResult<(f64, u64)> {
        let level = match (rate_per_s, users) {
            (Some(rate_per_s), None) => Level::RatePerS(rate_per_s),
            (None, Some(users)) => Level::Users(users),
            _ => return Err(PyValueError::new_err("either a rate or a number of users")),
        };
        let change = py
            .detach(|| self.run.lock().change(stream, level))
            .map_err(PyValueError::new_err)?;
        let old = match change.old {
            Level::RatePerS(rate_per_s) => rate_per_s,
            Level::Users(users) => f64::from(users),
        };
        Ok((old, change.at))
    }

    /// Asks for an early, orderly end; the results so far stay.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.run.lock().stop());
    }

    /// Waits until the run has ended, at most so long; true: it has.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        // A day at most: a Duration takes neither negative numbers nor infinity.
        let timeout = Duration::from_secs_f64(timeout_s.clamp(0.0, 86_400.0));
        py.detach(|| {
            let waiter = self.run.lock().waiter();
            waiter.wait(timeout)
        })
    }

    /// The result as JSON; after the end only.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.run.lock().result())
            .map_err(PyRuntimeError::new_err)
    }
}

/// A script of wrk and its phases: made (the script is run, `setup` and `init` are called), started with a run, done.
#[pyclass(module = "loadlens._engine")]
struct Script {
    session: Mutex<Session>,
}

#[pymethods]
impl Script {
    #[new]
    fn new(py: Python<'_>, asked_json: &str) -> PyResult<Self> {
        py.detach(|| {
            let asked = serde_json::from_str(asked_json)
                .map_err(|error| ScriptFault::new(error.to_string()))?;
            Session::prepare(&asked)
        })
        .map(|session| Script {
            session: Mutex::new(session),
        })
        .map_err(|fault| match fault {
            ScriptFault::Script(what) => PyValueError::new_err(what),
            ScriptFault::Unreachable(what) => PyConnectionError::new_err(what),
        })
    }

    /// The first line of all requests; None: the script makes each.
    fn first_line(&self) -> Option<String> {
        self.session.lock().first_line().map(str::to_owned)
    }

    /// Starts a run with the script on its threads; returns when they run.
    fn start(&self, py: Python<'_>, run: PyRef<'_, Run>) -> PyResult<()> {
        let run: &Run = &run;
        py.detach(|| self.session.lock().start(&mut run.run.lock()))
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Fault of the script while it ran; after the end of the run.
    fn fault(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.session.lock().fault())
    }

    /// Latencies and rates as JSON, of so many nanoseconds and connections; after the end of the run.
    fn figures(&self, py: Python<'_>, measured_ns: u64, connections: u64) -> String {
        py.detach(|| {
            let figures = self.session.lock().figures(measured_ns, connections);
            serde_json::json!(figures).to_string()
        })
    }

    /// Calls `done`, if there is one; after the end of the run.
    fn done(&self, py: Python<'_>, measured_ns: u64, summary_json: &str) -> PyResult<()> {
        py.detach(|| {
            let summary = serde_json::from_str(summary_json).map_err(|error| error.to_string())?;
            let done = self.session.lock().done(measured_ns, &summary);
            done.map_err(|fault| fault.to_string())
        })
        .map_err(PyValueError::new_err)
    }
}

#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::estimates::{edge_is_cut, level, mean, mean_time, quantile, rate, share};
    #[pymodule_export]
    use super::yaml::yaml_events;
    #[pymodule_export]
    use super::{
        check_pattern, check_template, columns_of, merge, monotonic_ns, read_due_times,
        read_intervals, serve_nothing, serve_proxy, simulate, timer_precision, validate, version,
        FeedFile, Run, Script,
    };
}
