//! A script on one engine thread: makes requests, pauses, sees answers, and counts what wrk's statistics are made of.

use std::sync::Arc;

use loadlens_base::units::MILLISECOND;
use loadlens_engine::script::{Script, ScriptSignal, Watch};
use loadlens_http::whole::{self, Framing};
use loadlens_record::recorder::Ended;
use mlua::{Function, Value};

use crate::fault::{name_of, Fault};
use crate::state::State;
use crate::tally::Tally;
use crate::thread::Shared;

/// Numbers of the calls, as the watch knows them.
const REQUEST: usize = 0;
const DELAY: usize = 1;
const RESPONSE: usize = 2;
const CALLS: [&str; 3] = ["request", "delay", "response"];
/// The longest pause, in milliseconds: a year.
const LONGEST_DELAY_MS: f64 = 366.0 * 86_400_000.0;

/// One call: there if the script has a function of that name when its thread begins.
struct Call {
    function: Function,
    /// Place of the function's definition, and its name.
    name: String,
}

/// A script on one engine thread.
pub struct Running {
    state: State,
    shared: Arc<Shared>,
    request: Option<Call>,
    delay: Option<Call>,
    response: Option<Call>,
    /// A request that was made to see whether it is one: it is the first to be sent.
    first: Option<(Vec<u8>, Framing)>,
    tally: Tally,
    watch: Arc<Watch>,
    fault: Option<Fault>,
}

impl Running {
    /// A script that is about to run.
    pub fn new(state: State, shared: Arc<Shared>, tally: Tally) -> mlua::Result<Running> {
        let call = |number: usize| -> mlua::Result<Option<Call>> {
            let Some(global) = state.global(CALLS[number])? else {
                return Ok(None);
            };
            Ok(Some(Call {
                function: state.calls.get(CALLS[number])?,
                name: name_of(&global, CALLS[number]),
            }))
        };
        let (request, delay, response) = (call(REQUEST)?, call(DELAY)?, call(RESPONSE)?);
        let name = |call: &Option<Call>| {
            call.as_ref()
                .map_or_else(String::new, |call| call.name.clone())
        };
        let watch = Watch::new(vec![name(&request), name(&delay), name(&response)]);
        Ok(Running {
            state,
            shared,
            request,
            delay,
            response,
            first: None,
            tally,
            watch: Arc::new(watch),
            fault: None,
        })
    }

    /// The request that all of them are, where the script has no function `request`.
    pub fn fixed(&self) -> Result<(Vec<u8>, Framing), Fault> {
        let make: Function = self.state.calls.get("request")?;
        let mut bytes = Vec::new();
        let framing = made(&make.call(())?, "the request", &mut bytes)?;
        Ok((bytes, framing))
    }

    /// Makes the first request now; gives it back as it is.
    pub fn make_first(&mut self) -> Result<&[u8], Fault> {
        let mut bytes = Vec::new();
        let framing = self.make(&mut bytes)?;
        Ok(&self.first.insert((bytes, framing)).0)
    }

    /// Counts of the script's thread.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Fault of the script.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    fn make(&self, out: &mut Vec<u8>) -> Result<Framing, Fault> {
        let Some(call) = &self.request else {
            return Err(Fault::new("the script has no function request".to_owned()));
        };
        made(&call.function.call(())?, &call.name, out)
    }

    fn delay_ms(&self) -> Result<f64, Fault> {
        let Some(call) = &self.delay else {
            return Ok(0.0);
        };
        let pause: Value = call.function.call(())?;
        // As wrk has it, whatever is no number is no pause.
        let ms = match &pause {
            Value::Integer(ms) => *ms as f64,
            Value::Number(ms) => *ms,
            Value::String(text) => text.to_string_lossy().trim().parse().unwrap_or(0.0),
            _ => 0.0,
        };
        if (0.0..=LONGEST_DELAY_MS).contains(&ms) {
            Ok(ms)
        } else {
            let name = &call.name;
            Err(Fault::new(format!(
                "{name} has returned {ms}: a pause is from 0 ms to a year"
            )))
        }
    }

    fn tell_answer(&self, status: u16, head: &[u8], body: &[u8]) -> Result<(), Fault> {
        let Some(call) = &self.response else {
            return Ok(());
        };
        let headers = self.state.lua.create_table()?;
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let name = self.state.lua.create_string(&line[..colon])?;
            let value = self
                .state
                .lua
                .create_string(line[colon + 1..].trim_ascii())?;
            headers.raw_set(name, value)?;
        }
        let body = self.state.lua.create_string(body)?;
        Ok(call.function.call::<()>((status, headers, body))?)
    }

    /// Makes one call of the script under the eyes of the watch; none: it failed.
    fn watched<T>(
        &mut self,
        call: usize,
        now: u64,
        work: impl FnOnce(&mut Running) -> Result<T, Fault>,
    ) -> Option<T> {
        self.watch.enter(call, now);
        let worked = work(self);
        self.watch.leave();
        match worked {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault.get_or_insert(fault);
                None
            }
        }
    }
}

/// Appends what a script has made, if it is one request; `name` is the function that made it.
fn made(value: &Value, name: &str, out: &mut Vec<u8>) -> Result<Framing, Fault> {
    let Value::String(text) = value else {
        let what = match value.type_name() {
            "integer" => "number", // Lua has one name for both
            other => other,
        };
        return Err(Fault::new(format!(
            "{name} has returned {what}, not a request"
        )));
    };
    let bytes = text.as_bytes();
    let framing = whole::one(&bytes).map_err(|fault| {
        let (line, column) = fault.position(&bytes);
        Fault::new(format!("{name}: {} at {line}:{column} of it", fault.what))
    })?;
    out.extend_from_slice(&bytes);
    Ok(framing)
}

impl Script for Running {
    const IS_THERE: bool = true;

    #[inline]
    fn makes_requests(&self) -> bool {
        self.request.is_some()
    }

    #[inline]
    fn pauses(&self) -> bool {
        self.delay.is_some()
    }

    #[inline]
    fn reads_answers(&self) -> bool {
        self.response.is_some()
    }

    fn request(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Framing> {
        if let Some((bytes, framing)) = self.first.take() {
            out.extend_from_slice(&bytes);
            return Some(framing);
        }
        self.watched(REQUEST, now, |running| running.make(out))
    }

    fn pause_ns(&mut self, now: u64) -> u64 {
        let ms = self.watched(DELAY, now, |running| running.delay_ms());
        (ms.unwrap_or(0.0) * MILLISECOND as f64) as u64
    }

    fn answer(&mut self, now: u64, status: u16, head: &[u8], body: &[u8]) {
        self.watched(RESPONSE, now, |running| {
            running.tell_answer(status, head, body)
        });
    }

    #[inline]
    fn ended(&mut self, ended: &Ended) {
        self.tally.ended(ended);
    }

    #[inline]
    fn signal(&self) -> ScriptSignal {
        if self.fault.is_some() {
            ScriptSignal::EndRun
        } else if self.shared.is_stopped() {
            ScriptSignal::EndThread
        } else {
            ScriptSignal::GoOn
        }
    }

    fn watch(&self) -> Option<Arc<Watch>> {
        Some(self.watch.clone())
    }
}
