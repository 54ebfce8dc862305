//! `loadlens-specimen`: starts a specimen and says where it is, in one line of JSON.
//!
//! It ends when its standard input ends, or on TERM or INT, so a caller that dies leaves nothing behind.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::process::ExitCode;

use loadlens_specimen::{steps, Settings, Specimen};
use loadlens_sys as sys;

const HELP: &str = "\
A small server with one known flaw, or without it, over HTTP/1.1 on 127.0.0.1.

  loadlens-specimen SETTINGS     a JSON object, or @FILE with one; crates/lab/specimen/src/settings.rs names all keys
  loadlens-specimen burn CORES   computes on so many threads: a neighbour

Prints {\"port\", \"metrics_port\", \"pid\", \"pids\"} when it listens, and for each line on stdin what it
counted so far: how long holds, pauses and waits of chosen requests really were, its processor
time, and answers; ends when stdin ends, or on TERM.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["burn", cores] => neighbour(cores),
        [settings] => serve(settings),
        _ => Err(format!("give it settings\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("loadlens-specimen: {why}");
            ExitCode::from(2)
        }
    }
}

fn serve(word: &str) -> Result<(), String> {
    let text = match word.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?
        }
        None => word.to_owned(),
    };
    let settings = Settings::read(&text).map_err(|faults| faults.join("\n"))?;
    sys::raise_descriptor_limit();
    let signals = sys::termination_signals().map_err(|error| error.to_string())?;
    let specimen = Specimen::start(settings).map_err(|why| format!("cannot start: {why}"))?;
    say(&serde_json::json!({
        "port": specimen.port, "metrics_port": specimen.metrics_port,
        "pid": std::process::id(), "pids": specimen.pids,
    }));
    sys::wait_for_the_end(signals.as_raw_fd(), Some(&|| say(&specimen.lasted())));
    Ok(())
}

fn neighbour(cores: &str) -> Result<(), String> {
    let cores: usize = cores
        .parse()
        .map_err(|_| format!("not a number: {cores}"))?;
    let signals = sys::termination_signals().map_err(|error| error.to_string())?;
    for _ in 0..cores {
        std::thread::spawn(|| loop {
            steps::burn(1_000_000_000);
        });
    }
    say(&serde_json::json!({"pid": std::process::id()}));
    sys::wait_for_the_end(signals.as_raw_fd(), Some(&|| ()));
    Ok(())
}

/// A caller that does not listen is none of our business.
fn say(what: &serde_json::Value) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{what}");
    let _ = out.flush();
}
