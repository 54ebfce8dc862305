//! From a plan to a program, every fault collected on the way.

use std::sync::Arc;

use super::check::{Checks, Demand, Extraction, From, Need};
use super::feed::Use;
use super::feeds::{FeedProgram, Feeds};
use super::flow::Flow;
use super::json::{push_escaped, Expected, Path};
use super::mix::Mix;
use super::naming;
use super::pattern::Pattern;
use super::render::{Given, Place, Request, Segment};
use super::template::{self, Instant, Known, Piece, Slot};
use super::{GroupProgram, Program, ScenarioProgram, StepProgram, StreamProgram};
use crate::arrival::replay::DueTimes;
use crate::bounded;
use crate::error::Fault;
use crate::http1::request::{
    is_target_byte, is_token, is_value_byte, percent_is_whole, push_component, OWN_HEADERS,
};
use crate::plan::{
    Auth, Body, Bounds, Check, Cookies, Group, Plan, Reuse, Scenario, Source, Step, Stream,
    Workload,
};
use crate::validate;

/// The largest body file.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Where the content of a plan comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    /// Files and environment are read.
    Read,
    /// Only the plan itself is judged.
    Unread,
}

/// Compiles a plan, or gives all its faults.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<Fault>> {
    let mut faults = Vec::new();
    validate::structure(plan, &mut faults);
    let streams = streams(plan, World::Read, &mut faults);
    if faults.is_empty() {
        Ok(Program { streams })
    } else {
        Err(faults)
    }
}

/// The faults of templates, headers, bodies, checks and extractions, without reading files or the environment.
pub(crate) fn check(plan: &Plan, faults: &mut Vec<Fault>) {
    streams(plan, World::Unread, faults);
}

fn streams(plan: &Plan, world: World, faults: &mut Vec<Fault>) -> Vec<StreamProgram> {
    let mut feeds = Feeds::new(&plan.feeds, faults);
    let mut streams = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let at = format!("streams[{index}]");
        feeds.begin_stream(index, stream);
        let program = stream_program(stream, &at, world, &mut feeds, faults);
        streams.push((program, feeds.end_stream()));
    }
    let tables = feeds.tables(world == World::Read, faults);
    let (mut groups, mut checks) = (0, 0);
    let with_tables = |(mut program, used): (StreamProgram, Vec<usize>)| {
        (program.first_group, program.first_check) = (groups, checks);
        groups += program.groups.len();
        checks += program.checks();
        program.feeds = used
            .into_iter()
            .map(|index| FeedProgram::new(&plan.feeds[index], &tables[index]))
            .collect();
        program
    };
    streams.into_iter().map(with_tables).collect()
}

fn stream_program(
    stream: &Stream,
    at: &str,
    world: World,
    feeds: &mut Feeds<'_>,
    faults: &mut Vec<Fault>,
) -> StreamProgram {
    let mut steps = Vec::new();
    let mut scenarios = Vec::new();
    let mut slots = 0;
    let mut flow = Flow::default();
    for (index, scenario) in stream.scenarios.iter().enumerate() {
        let place = format!("{at}.scenarios[{index}]");
        scenarios.push(ScenarioProgram {
            name: scenario.name.clone(),
            first_step: steps.len() as u16,
            steps: scenario.steps.len() as u16,
            begins: flow.append(scenario, steps.len(), &place, faults),
            feeds: Vec::new(),
        });
        let mut compiler = Compiler {
            world,
            faults,
            names: Vec::new(),
            feeds,
            at: place,
            stream,
        };
        steps.extend(compiler.steps(scenario));
        slots = slots.max(compiler.names.len() as u16);
        if let Some(last) = scenarios.last_mut() {
            last.feeds = feeds.end_scenario();
        }
    }
    let (mut tallies, mut tools) = (0, 0);
    let cookies = cookies(stream);
    for step in &mut steps {
        let step: &mut StepProgram = step;
        step.checks.number(&mut tallies, &mut tools);
        if cookies != Cookies::Off {
            step.need = step.need.max(Need::Head);
            step.request.render_always();
        }
    }
    let weights: Vec<f64> = stream
        .scenarios
        .iter()
        .map(|scenario| scenario.weight)
        .collect();
    let of_scenario = |(scenario, of): (usize, &Scenario)| {
        let named = |group: &Group| GroupProgram {
            name: group.name.clone(),
            scenario,
        };
        of.groups
            .iter()
            .filter(|group| group.is_named())
            .map(named)
            .collect::<Vec<_>>()
    };
    let scenarios_of_plan = stream.scenarios.iter().enumerate();
    StreamProgram {
        steps,
        scenarios,
        slots,
        feeds: Vec::new(),
        flow,
        groups: scenarios_of_plan.flat_map(of_scenario).collect(),
        first_group: 0,
        first_check: 0,
        cookies,
        due_times: due_times(stream, at, world, faults),
        mix: Mix::new(&weights),
    }
}

/// Cookies of an iteration are for its later requests: where there are none, nothing needs to be kept.
fn cookies(stream: &Stream) -> Cookies {
    let goes_on = |scenario: &Scenario| {
        scenario.steps.len() > 1 || scenario.groups.iter().any(|group| group.repeat > 1)
    };
    match stream.cookies {
        Cookies::Iteration if !stream.scenarios.iter().any(goes_on) => Cookies::Off,
        cookies => cookies,
    }
}

/// The due times that a stream replays.
fn due_times(
    stream: &Stream,
    at: &str,
    world: World,
    faults: &mut Vec<Fault>,
) -> Option<Arc<[u64]>> {
    let Workload::Open {
        replay: Some(replay),
        ..
    } = &stream.workload
    else {
        return None;
    };
    if world == World::Unread {
        return None;
    }
    match DueTimes::of(replay) {
        Ok(found) => Some(found.times),
        Err(whats) => {
            let place = format!("{at}.workload.replay");
            faults.extend(whats.into_iter().map(|what| Fault::new(&place, what)));
            None
        }
    }
}

/// Compiles one scenario; `names` grows with what its steps extract.
struct Compiler<'a, 'p> {
    world: World,
    faults: &'a mut Vec<Fault>,
    names: Vec<String>,
    feeds: &'a mut Feeds<'p>,
    at: String,
    stream: &'a Stream,
}

impl Compiler<'_, '_> {
    fn fault(&mut self, place: &str, what: String) {
        self.faults
            .push(Fault::new(format!("{}{place}", self.at), what));
    }

    fn steps(&mut self, scenario: &Scenario) -> Vec<StepProgram> {
        let base = std::mem::take(&mut self.at);
        let mut steps = Vec::new();
        for (index, step) in scenario.steps.iter().enumerate() {
            self.at = format!("{base}.steps[{index}]");
            let request = self.request(step);
            let checks = self.checks(step);
            self.refuse_coded_bodies(step, checks.need());
            steps.push(StepProgram {
                name: step.name.clone(),
                need: checks.need(),
                has_own_cookie: step
                    .headers
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case("cookie")),
                request_is_head: step.method == "HEAD",
                think: step.think,
                request,
                checks,
            });
        }
        steps
    }

    fn request(&mut self, step: &Step) -> Request {
        let mut head = self.request_line(step);
        let given = |name: &str| {
            step.headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        let mut line = |text: String| head.push(Segment::Bytes(text.into_bytes()));
        line(format!(
            " HTTP/1.1\r\nHost: {}\r\n",
            self.stream.target.authority
        ));
        if !given("user-agent") {
            line(format!(
                "User-Agent: loadlens/{}\r\n",
                env!("CARGO_PKG_VERSION")
            ));
        }
        if !given("accept") {
            line("Accept: */*\r\n".to_owned());
        }
        if matches!(step.body, Body::Json { .. }) && !given("content-type") {
            line("Content-Type: application/json\r\n".to_owned());
        }
        if self.stream.connection.reuse == Reuse::New {
            line("Connection: close\r\n".to_owned());
        }
        head.extend(self.headers(step));
        if let Some(auth) = &step.auth {
            if given("authorization") {
                let what = "the step has an Authorization header too: keep one of them";
                self.fault(".auth", what.to_owned());
            }
            head.push(Segment::Bytes(self.authorization(auth)));
        }
        let body = self.body(&step.body);
        // RFC 9110 8.6: also without a body where the method expects one.
        let length = !matches!(step.body, Body::None)
            || matches!(step.method.as_str(), "POST" | "PUT" | "PATCH");
        Request::new(head, body, length)
    }

    fn request_line(&mut self, step: &Step) -> Vec<Segment> {
        if !is_token(step.method.as_bytes()) {
            self.fault(
                ".method",
                format!(
                    "`{}` is no method: letters without spaces, as in GET",
                    step.method.escape_debug()
                ),
            );
        } else if step.method == "CONNECT" {
            self.fault(
                ".method",
                "CONNECT makes a tunnel, which loadlens does not drive".to_owned(),
            );
        } else if step.method == "TRACE" && step.body != Body::None {
            self.fault(
                ".body",
                "a TRACE request has no body (RFC 9110 9.3.8)".to_owned(),
            );
        }
        if !step.path.starts_with('/') && !template::begins_raw(&step.path) {
            self.fault(
                ".path",
                format!("`{}` does not begin with `/`", step.path.escape_debug()),
            );
        }
        let mut segments = vec![Segment::Bytes(format!("{} ", step.method).into_bytes())];
        segments.extend(self.template(".path", &step.path, Place::Target));
        segments
    }

    fn headers(&mut self, step: &Step) -> Vec<Segment> {
        let mut segments = Vec::new();
        for (index, (name, value)) in step.headers.iter().enumerate() {
            let place = format!(".headers[{index}]");
            if !is_token(name.as_bytes()) {
                self.fault(
                    &place,
                    format!(
                        "`{}` is no header name: letters, digits and hyphens",
                        name.escape_debug()
                    ),
                );
            } else if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                let hint = match name.to_ascii_lowercase().as_str() {
                    "host" => "set target.authority",
                    "connection" => "set connection.reuse",
                    _ => "leave it out",
                };
                self.fault(&place, format!("header {name} is the engine's own: {hint}"));
            }
            segments.push(Segment::Bytes(format!("{name}: ").into_bytes()));
            segments.extend(self.template(&place, value, Place::Header));
            segments.push(Segment::Bytes(b"\r\n".to_vec()));
        }
        segments
    }

    /// The header line of credentials. A fault names the variable, never what it holds.
    fn authorization(&mut self, auth: &Auth) -> Vec<u8> {
        use base64::Engine;
        let (scheme, credentials) = match auth {
            Auth::Basic { user, password_env } => {
                if user.contains(':') || user.chars().any(char::is_control) {
                    let user = user.escape_debug();
                    let what = format!("user `{user}`: no colon and no control byte (RFC 7617 2)");
                    self.fault(".auth.user", what);
                }
                let password = self.environment(".auth.password_env", password_env);
                let password = password.unwrap_or_default();
                if password.chars().any(char::is_control) {
                    let what = format!("environment variable {password_env} has a control byte, which no password may have");
                    self.fault(".auth.password_env", what);
                }
                let pair = format!("{user}:{password}");
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                ("Basic", encoded)
            }
            Auth::Bearer { token_env } => {
                let token = self.environment(".auth.token_env", token_env);
                if token.as_deref().is_some_and(|token| !is_token68(token)) {
                    let what = format!("environment variable {token_env} is no token: letters, digits, -._~+/ and = at the end (RFC 6750 2.1)");
                    self.fault(".auth.token_env", what);
                }
                ("Bearer", token.unwrap_or_default())
            }
        };
        format!("Authorization: {scheme} {credentials}\r\n").into_bytes()
    }

    fn body(&mut self, body: &Body) -> Vec<Segment> {
        match body {
            Body::None => Vec::new(),
            Body::Text { text } => self.template(".body.text", text, Place::Text),
            Body::Json { value } => {
                let mut segments = Vec::new();
                self.json(".body.value", value, &mut segments);
                segments
            }
            Body::File { path, digest } => match self.file(path, digest) {
                Ok(bytes) => vec![Segment::Bytes(bytes)],
                Err(what) => {
                    self.fault(".body.path", what);
                    Vec::new()
                }
            },
        }
    }

    fn file(&self, path: &str, digest: &str) -> Result<Vec<u8>, String> {
        if self.world == World::Unread {
            return Ok(Vec::new());
        }
        let bytes = bounded::read(path, MAX_FILE_BYTES)
            .map_err(|error| format!("body file {path} cannot be read: {error}"))?
            .ok_or_else(|| {
                format!(
                    "body file {path} has more than {MAX_FILE_BYTES} bytes, the most that is sent"
                )
            })?;
        let found = super::digest::sha256_hex(&bytes);
        if !found.eq_ignore_ascii_case(digest) {
            return Err(format!(
                "body file {path} has changed since the plan was made: its SHA-256 is {found}"
            ));
        }
        Ok(bytes)
    }

    /// Writes a JSON value in pieces; strings are templates, and one that is a single slot keeps its type.
    fn json(&mut self, place: &str, value: &serde_json::Value, segments: &mut Vec<Segment>) {
        use serde_json::Value;
        let constant = |text: &str| Segment::Bytes(text.as_bytes().to_vec());
        match value {
            Value::String(text) => segments.extend(self.template(place, text, Place::JsonValue)),
            Value::Array(items) => {
                segments.push(constant("["));
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        segments.push(constant(","));
                    }
                    self.json(&format!("{place}[{index}]"), item, segments);
                }
                segments.push(constant("]"));
            }
            Value::Object(members) => {
                segments.push(constant("{"));
                for (index, (key, item)) in members.iter().enumerate() {
                    if key.contains("{{") {
                        self.fault(place, format!("key `{}`: a key of a JSON body cannot be a template, only values can", key.escape_debug()));
                    }
                    let separator = if index > 0 { "," } else { "" };
                    segments.push(constant(&format!(
                        "{separator}{}:",
                        Value::String(key.clone())
                    )));
                    self.json(&format!("{place}.{key}"), item, segments);
                }
                segments.push(constant("}"));
            }
            _ => segments.push(constant(&value.to_string())),
        }
    }

    /// A template in pieces written for their place.
    fn template(&mut self, at: &str, text: &str, place: Place) -> Vec<Segment> {
        let known = Known {
            names: &self.names,
            feeds: self.feeds.names(),
        };
        let pieces = match template::parse(text, known) {
            Ok(pieces) => pieces,
            Err(what) => {
                self.fault(at, what);
                return Vec::new();
            }
        };
        let (place, quoted) = match (place, pieces.as_slice()) {
            (Place::JsonValue, [Piece::Slot(slot)]) if slot.has_json_type() => {
                (Place::JsonValue, false)
            }
            (Place::JsonValue, _) => (Place::JsonString, true),
            _ => (place, false),
        };
        let mut segments = Vec::with_capacity(pieces.len() + 2);
        for (index, piece) in pieces.into_iter().enumerate() {
            let segment = match piece {
                Piece::Slot(Slot::Raw(slot)) => self.raw(at, *slot, place, index == 0),
                piece => self.segment(at, piece, place),
            };
            segments.push(segment);
        }
        if quoted {
            segments.insert(0, Segment::Bytes(b"\"".to_vec()));
            segments.push(Segment::Bytes(b"\"".to_vec()));
        }
        segments
    }

    fn segment(&mut self, at: &str, piece: Piece, place: Place) -> Segment {
        let slot = match piece {
            Piece::Literal(text) => return Segment::Bytes(self.literal(at, &text, place)),
            Piece::Slot(slot) => slot,
        };
        match slot {
            Slot::Uuid => Segment::Uuid,
            Slot::Int { low, high } => Segment::Int { low, high },
            Slot::Float { low, high } => Segment::Float { low, high },
            Slot::Word { letters } => Segment::Word { letters },
            Slot::Timestamp(instant) => Segment::Timestamp(instant),
            Slot::Sequence => Segment::Sequence,
            Slot::User => Segment::User,
            Slot::Hex { digits } => Segment::Hex { digits },
            Slot::Bool => Segment::Bool,
            Slot::Raw(slot) => self.raw(at, *slot, place, false),
            slot @ (Slot::Extracted(_) | Slot::Field { .. }) => Segment::Given {
                from: self.given(at, slot, place, false),
                place,
            },
            Slot::Choice(words) => {
                let word = |word: String| self.written(at, &word, place, "a word of choice");
                Segment::Choice(words.into_iter().map(word).collect())
            }
            Slot::Env(name) => Segment::Bytes(match self.environment(at, &name) {
                Some(value) => {
                    self.written(at, &value, place, &format!("environment variable {name}"))
                }
                None => Vec::new(),
            }),
        }
    }

    /// An extracted value, or a column of a feed, whose use is noted.
    fn given(&mut self, at: &str, slot: Slot, place: Place, is_raw: bool) -> Given {
        match slot {
            Slot::Field { feed, column } => {
                let wanted = Use {
                    in_header: place == Place::Header,
                    is_raw,
                };
                let at = format!("{}{at}", self.at);
                let (feed, column) = self.feeds.used(feed, column, wanted, at);
                Given::Field { feed, column }
            }
            Slot::Extracted(slot) => Given::Extracted(slot),
            _ => Given::Extracted(0), // the template reader lets nothing else be raw
        }
    }

    fn raw(&mut self, at: &str, slot: Slot, place: Place, is_first: bool) -> Segment {
        if place != Place::Target {
            let what = "raw is for paths: nothing is encoded here".to_owned();
            self.fault(at, what);
        }
        let authority = is_first.then(|| self.stream.target.authority.clone().into());
        Segment::Raw {
            // A whole URL is judged when it is sent.
            from: self.given(at, slot, place, !is_first),
            authority,
        }
    }

    fn environment(&mut self, at: &str, name: &str) -> Option<String> {
        if self.world == World::Unread {
            return None;
        }
        match std::env::var(name) {
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => {
                self.fault(
                    at,
                    format!("environment variable {name} is not set: set it where loadlens runs"),
                );
                None
            }
            Err(std::env::VarError::NotUnicode(_)) => {
                self.fault(at, format!("environment variable {name} is not UTF-8"));
                None
            }
        }
    }

    /// A value as it is written in its place. A fault names `origin`, never the value: it may be a secret.
    fn written(&mut self, at: &str, value: &str, place: Place, origin: &str) -> Vec<u8> {
        let mut out = Vec::new();
        match place {
            Place::Target => push_component(&mut out, value.as_bytes()),
            Place::JsonString | Place::JsonValue => push_escaped(&mut out, value.as_bytes()),
            Place::Text => out.extend_from_slice(value.as_bytes()),
            Place::Header if value.bytes().all(is_value_byte) => {
                out.extend_from_slice(value.as_bytes())
            }
            Place::Header => self.fault(
                at,
                format!("{origin} has a control byte, which no header may have"),
            ),
        }
        out
    }

    /// Text that stands in the plan itself: taken as it is where it may stand, else a fault.
    fn literal(&mut self, at: &str, text: &str, place: Place) -> Vec<u8> {
        let bytes = text.as_bytes();
        match place {
            Place::JsonString | Place::JsonValue => {
                let mut out = Vec::new();
                push_escaped(&mut out, bytes);
                return out;
            }
            Place::Text => {}
            Place::Header => {
                if !bytes.iter().all(|byte| is_value_byte(*byte)) {
                    self.fault(
                        at,
                        "a control byte, which no header value may have".to_owned(),
                    );
                }
            }
            Place::Target => {
                if let Some(bad) = text
                    .chars()
                    .find(|c| !c.is_ascii() || !is_target_byte(*c as u8))
                {
                    let mut escaped = Vec::new();
                    push_component(&mut escaped, bad.to_string().as_bytes());
                    let escaped = String::from_utf8_lossy(&escaped).into_owned();
                    self.fault(
                        at,
                        format!(
                            "`{}` may not stand in a path or query: write {escaped}",
                            bad.escape_debug()
                        ),
                    );
                } else if !percent_is_whole(bytes) {
                    self.fault(
                        at,
                        "`%` without two hexadecimal digits after it: write %25 for a percent sign"
                            .to_owned(),
                    );
                }
            }
        }
        bytes.to_vec()
    }

    fn checks(&mut self, step: &Step) -> Checks {
        let mut checks = Checks {
            expect: step.expect.clone(),
            names: naming::names(step),
            ..Checks::default()
        };
        for (index, check) in step.checks.iter().enumerate() {
            match demand(check) {
                Ok(demand) => checks.demands.push(demand),
                Err(what) => self.fault(&format!(".checks[{index}]"), what),
            }
        }
        for (index, extract) in step.extract.iter().enumerate() {
            let place = format!(".extract[{index}]");
            if let Err(what) = template::check_name(&extract.name) {
                self.fault(&place, what);
            }
            match origin(&extract.from) {
                Ok(from) => {
                    let slot = self.slot(&extract.name);
                    checks.extracts.push(Extraction { slot, from });
                }
                Err(what) => self.fault(&place, what),
            }
        }
        checks
    }

    /// Bodies are judged as they come; a compressed one would fail every check.
    fn refuse_coded_bodies(&mut self, step: &Step, need: Need) {
        let is_identity =
            |value: &str| value.trim().is_empty() || value.trim().eq_ignore_ascii_case("identity");
        let asks = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("accept-encoding") && !is_identity(value)
        };
        if let (Need::Body, Some(index)) = (need, step.headers.iter().position(asks)) {
            let what = "asks for compressed bodies, which checks and extractions do not unpack: leave the header out";
            self.fault(&format!(".headers[{index}]"), what.to_owned());
        }
    }

    /// The slot of an extracted name: the one it has, or a new one.
    fn slot(&mut self, name: &str) -> u16 {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }) as u16
    }
}

/// RFC 9110 11.2.
fn is_token68(text: &str) -> bool {
    let content = text.trim_end_matches('=');
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !content.is_empty() && content.bytes().all(is_one)
}

fn demand(check: &Check) -> Result<Demand, String> {
    let is_template = match check {
        Check::Json { equals, .. } => equals.to_string().contains("{{"),
        Check::Header { equals, .. } => equals.contains("{{"),
        Check::Contains { text } => text.contains("{{"),
        Check::Regex { pattern } => pattern.contains("{{"),
        _ => false,
    };
    if is_template {
        return Err(
            "a check compares with what stands in the plan: templates are not filled here"
                .to_owned(),
        );
    }
    Ok(match check {
        Check::Json { path, equals } => Demand::Json {
            path: Path::parse(path)?,
            expected: Expected::new(equals),
        },
        Check::Exists { path } => Demand::Exists {
            path: Path::parse(path)?,
        },
        Check::Absent { path } => Demand::Absent {
            path: Path::parse(path)?,
        },
        Check::Number { path, is } => Demand::Number {
            path: Path::parse(path)?,
            bounds: usable(is)?,
        },
        Check::Count { path, is } => Demand::Count {
            path: Path::parse(path)?,
            bounds: usable(is)?,
        },
        Check::Header { name, equals } => Demand::Header {
            name: header_name(name)?,
            expected: equals.trim().as_bytes().to_vec(),
        },
        Check::Contains { text } if text.is_empty() => {
            return Err("an empty text is in every body".to_owned())
        }
        Check::Contains { text } => Demand::Contains(Box::new(
            memchr::memmem::Finder::new(text.as_bytes()).into_owned(),
        )),
        Check::Regex { pattern } => Demand::Regex(Pattern::new(pattern, Some(0))?),
        Check::Size { is } => Demand::Size(usable(is)?),
        Check::Latency { below_ns: 0 } => {
            return Err("no answer takes less than 0: a time above it".to_owned())
        }
        Check::Latency { below_ns } => Demand::Latency {
            below_ns: *below_ns,
        },
    })
}

/// Bounds that some number can lie within.
fn usable(bounds: &Bounds) -> Result<Bounds, String> {
    let given = [bounds.equals, bounds.above, bounds.below];
    if given.iter().all(Option::is_none) {
        return Err("no bound: give equals, above or below".to_owned());
    }
    if given.iter().flatten().any(|bound| !bound.is_finite()) {
        return Err("a bound is no number".to_owned());
    }
    match (bounds.above, bounds.below) {
        (Some(above), Some(below)) if above >= below => Err(format!(
            "nothing is above {above} and below {below}: swap them"
        )),
        _ => Ok(*bounds),
    }
}

fn origin(source: &Source) -> Result<From, String> {
    Ok(match source {
        Source::Json { path } => From::Json(Path::parse(path)?),
        Source::Header { name } => From::Header(header_name(name)?),
        Source::Regex {
            pattern,
            group,
            header,
        } => From::Regex {
            pattern: Pattern::new(pattern, *group)?,
            header: header.as_deref().map(header_name).transpose()?,
        },
    })
}

fn header_name(name: &str) -> Result<String, String> {
    if is_token(name.as_bytes()) {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "`{}` is no header name: letters, digits and hyphens",
            name.escape_debug()
        ))
    }
}

impl Slot {
    /// Whether it gives a JSON value with a type of its own.
    fn has_json_type(&self) -> bool {
        matches!(
            self,
            Slot::Int { .. }
                | Slot::Float { .. }
                | Slot::Bool
                | Slot::Timestamp(Instant::Since1970 { .. })
                | Slot::Sequence
                | Slot::User
                | Slot::Extracted(_)
                | Slot::Field { .. }
        )
    }
}
