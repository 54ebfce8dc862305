//! Number of system calls per request, counted from outside: a second process runs the engine and is traced with
//! ptrace(2), so an unexpected call is counted too.
//!
//! Tracing slows every call down, so that more answers wait at each look and fewer looks are needed than in a free run; the
//! calls that belong to one request do not depend on it.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, mem};

use loadlens_engine::run::Run;
use loadlens_engine::script::{Requests, Script, ScriptHost, ScriptSignal};
use loadlens_http::whole::{self, Framing};
use loadlens_origin::{Config, Origin};
use loadlens_record::recorder::Ended;
use serde_json::{json, Value};

/// Environment variable with the plan of the second process.
const PLAN: &str = "LOADLENS_TRACED_PLAN";
/// Says that a script goes along, which makes no requests itself.
const SCRIPTED: &str = "LOADLENS_TRACED_SCRIPT";
/// The engine's thread.
const WORKER: &str = "loadlens-0";

/// Calls of one thread.
#[derive(Default)]
struct Calls {
    by_number: BTreeMap<i64, u64>,
    /// The last one.
    last: i64,
    /// Sends that came before the end of a handshake, where the kernel took its time for that.
    vain_sends: u64,
}

impl Calls {
    fn note(&mut self, stop: Stop) {
        match stop {
            Stop::Enters(number) => {
                self.last = number;
                *self.by_number.entry(number).or_default() += 1;
            }
            Stop::Leaves(result) => {
                self.vain_sends += u64::from(is_vain_send(self.last, result));
            }
        }
    }
}

fn is_vain_send(number: i64, result: i64) -> bool {
    number == libc::SYS_sendto && result == -i64::from(libc::EAGAIN)
}

/// Reason for the stop of a thread.
enum Stop {
    /// It is about to make this call.
    Enters(i64),
    /// It comes back from one with this.
    Leaves(i64),
}

fn ptrace(request: libc::c_uint, tid: libc::pid_t, address: usize, data: usize) -> i64 {
    // SAFETY: the callers give addresses of their own, valid for what the request writes.
    unsafe { libc::ptrace(request, tid, address, data) }
}

/// Reason for the stop of a thread; none: it is being killed with its process.
fn stop_of(tid: libc::pid_t) -> Option<Stop> {
    // SAFETY: zeros are a valid value of a struct of numbers.
    let mut info: libc::ptrace_syscall_info = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&info);
    let written = ptrace(
        libc::PTRACE_GET_SYSCALL_INFO,
        tid,
        size,
        (&raw mut info) as usize,
    );
    let error = io::Error::last_os_error();
    if written <= 0 && error.raw_os_error() == Some(libc::ESRCH) {
        return None;
    }
    assert!(written > 0, "{error}");
    // SAFETY: the kernel has said which member of the union is there.
    Some(unsafe {
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => Stop::Enters(info.u.entry.nr as i64),
            _ => Stop::Leaves(info.u.exit.sval),
        }
    })
}

/// A script that says nothing: its requests are all the same.
struct Silent;

impl Script for Silent {
    const IS_THERE: bool = true;

    fn makes_requests(&self) -> bool {
        false
    }
    fn pauses(&self) -> bool {
        false
    }
    fn reads_answers(&self) -> bool {
        false
    }
    fn request(&mut self, _: u64, _: &mut Vec<u8>) -> Option<Framing> {
        None
    }
    fn pause_ns(&mut self, _: u64) -> u64 {
        0
    }
    fn answer(&mut self, _: u64, _: u16, _: &[u8], _: &[u8]) {}
    fn ended(&mut self, _: &Ended) {}
    fn signal(&self) -> ScriptSignal {
        ScriptSignal::GoOn
    }
}

/// Runs a plan in a traced process and counts the calls of the engine's thread.
#[allow(clippy::zombie_processes)] // the loop waits for it
fn calls_of_worker(plan: &Value, is_scripted: bool) -> Calls {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "the_traced_process", "--ignored", "--quiet"])
        .env(PLAN, plan.to_string())
        .envs(is_scripted.then_some((SCRIPTED, "yes")))
        .stdout(Stdio::null());
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        command.pre_exec(|| match ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    let child = command.spawn().expect("this test needs ptrace(2)");
    let pid = child.id() as libc::pid_t;
    let mut by_thread: BTreeMap<libc::pid_t, Calls> = BTreeMap::new();
    let mut of_worker = None;
    let mut is_begun = false;
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writing. Only children of this thread are waited for: other tests have theirs.
        let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        assert!(tid > 0, "{}", io::Error::last_os_error());
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if tid == pid {
                assert_eq!(status, 0, "the traced process failed");
                return of_worker.expect("the engine's thread was not seen");
            }
            continue;
        }
        let mut signal = libc::WSTOPSIG(status);
        if !is_begun {
            is_begun = true;
            let options = libc::PTRACE_O_TRACESYSGOOD
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEEXIT
                | libc::PTRACE_O_EXITKILL;
            assert_eq!(ptrace(libc::PTRACE_SETOPTIONS, tid, 0, options as usize), 0);
            signal = 0;
        } else if signal == libc::SIGTRAP | 0x80 {
            if let Some(stop) = stop_of(tid) {
                by_thread.entry(tid).or_default().note(stop);
            }
            signal = 0;
        } else if signal == libc::SIGTRAP {
            if status >> 16 == libc::PTRACE_EVENT_EXIT {
                let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
                if name.is_ok_and(|name| name.trim() == WORKER) {
                    of_worker = by_thread.remove(&tid);
                }
            }
            signal = 0;
        } else if signal == libc::SIGSTOP {
            signal = 0; // a new thread begins
        }
        ptrace(libc::PTRACE_SYSCALL, tid, 0, signal as usize);
    }
}

/// Calls that a thread makes in a second however few requests there are: a look in 20 ms, and what it reads of itself
/// at the cuts, four a second.
const BY_TIME_PER_S: f64 = 70.0;

/// Costs of a request.
#[derive(Debug)]
struct Taken {
    calls: BTreeMap<i64, f64>,
    vain_sends: f64,
    /// Calls that the time makes, not the request: at most so many.
    by_time: f64,
}

impl Taken {
    fn total(&self) -> f64 {
        self.calls.values().sum()
    }
}

/// Calls a request, from the difference of a long run and a short one: what a run makes once is not in it.
fn taken_by_a_request(connection: &Value, users: u64, is_scripted: bool) -> Taken {
    const FEW: u64 = 1_000;
    const MANY: u64 = 5_000;
    let origin = Origin::start(Config::default()).unwrap();
    let calls = |requests: u64| {
        let step = json!({"name": "get", "method": "GET", "path": "/json"});
        let authority = format!("127.0.0.1:{}", origin.port);
        let stream = json!({
            "name": "load",
            "role": "load",
            "target": {"host": "127.0.0.1", "port": origin.port, "authority": authority},
            "scenarios": [{"name": "s", "weight": 1, "steps": [step]}],
            "workload": {"kind": "closed", "users": users, "requests": requests},
            "connection": connection,
            "timeout_ns": 60_000_000_000u64,
        });
        let plan = json!({"schema_version": 1, "seed": 7, "threads": 1, "streams": [stream]});
        let mut calls = calls_of_worker(&plan, is_scripted);
        if let Some(sends) = calls.by_number.get_mut(&libc::SYS_sendto) {
            *sends -= calls.vain_sends; // what was sent is sent by another call
        }
        calls
    };
    let few = calls(FEW);
    let began = Instant::now();
    let many = calls(MANY);
    let by_time = began.elapsed().as_secs_f64() * BY_TIME_PER_S;
    let a_request = |many: u64, few: u64| (many as f64 - few as f64) / (MANY - FEW) as f64;
    let calls = many.by_number.iter().map(|(number, count)| {
        let before = few.by_number.get(number).copied().unwrap_or(0);
        (*number, a_request(*count, before))
    });
    Taken {
        calls: calls.filter(|(_, calls)| *calls != 0.0).collect(),
        vain_sends: a_request(many.vain_sends, 0),
        by_time: by_time / (MANY - FEW) as f64,
    }
}

#[test]
fn a_request_on_a_kept_connection_takes_two_calls_and_its_part_of_a_look() {
    for is_scripted in [false, true] {
        let taken = taken_by_a_request(&json!({"reuse": {"kind": "keep"}}), 100, is_scripted);

        assert_eq!(taken.calls[&libc::SYS_sendto], 1.0, "{taken:?}");
        assert_eq!(taken.calls[&libc::SYS_recvfrom], 1.0, "{taken:?}");
        assert!(taken.total() <= 2.05 + taken.by_time, "{taken:?}");
    }
}

#[test]
fn a_request_on_a_connection_of_its_own_takes_seven_calls_and_its_part_of_a_look() {
    let taken = taken_by_a_request(&json!({"reuse": {"kind": "new"}}), 50, false);

    let seven = [
        libc::SYS_socket,
        libc::SYS_setsockopt,
        libc::SYS_connect,
        libc::SYS_sendto,
        libc::SYS_epoll_ctl,
        libc::SYS_recvfrom,
        libc::SYS_close,
    ];
    for number in seven {
        assert_eq!(taken.calls[&number], 1.0, "{number}: {taken:?}");
    }
    assert!(taken.total() <= 7.1 + taken.by_time, "{taken:?}");
    // A send in vain lets the next 63 connections wait for their handshakes, so at worst every 65th is in vain.
    assert!(taken.vain_sends <= 0.03, "{taken:?}");
}

#[test]
#[ignore = "is run by the other tests, in the process that they trace"]
fn the_traced_process() {
    let Ok(plan) = std::env::var(PLAN) else {
        return;
    };
    let mut run = Run::new(&plan).unwrap();
    if std::env::var(SCRIPTED).is_ok() {
        let whole = b"GET /json HTTP/1.1\r\nHost: origin\r\n\r\n";
        let framing = whole::one(whole).unwrap();
        let script_host = ScriptHost {
            script: Silent,
            requests: Requests::Fixed(whole.to_vec(), framing),
            reads_answers: false,
            address: None,
        };
        run.start_with(vec![script_host]).unwrap();
    } else {
        run.start().unwrap();
    }
    assert!(run.wait(Duration::from_secs(60)), "{}", run.progress());
    let result: Value = serde_json::from_str(&run.result().unwrap()).unwrap();
    assert_eq!(result["status"], "complete", "{result}");
}
