//! The request of a step: its line, its headers, its credentials and its body.

use loadlens_http::request::{is_token, OWN_HEADERS};

use crate::bounded;
use crate::program::render::{Place, Request, Segment};
use crate::program::template;
use crate::{Auth, Body, Reuse, Step};

use super::demands::header_name;
use super::{Compiler, World};

/// The largest body file.
const MAX_FILE_BYTES: u64 = 256 << 20;

impl Compiler<'_, '_> {
    pub(super) fn request(&mut self, step: &Step) -> Request {
        let mut head = self.request_line(step);
        let given = |name: &str| has_header(step, name);
        let mut line = |text: String| head.push(Segment::Bytes(text.into_bytes()));
        let authority = &self.stream.target.authority;
        line(format!(" HTTP/1.1\r\nHost: {authority}\r\n"));
        if !given("user-agent") {
            let version = env!("CARGO_PKG_VERSION");
            line(format!("User-Agent: loadlens/{version}\r\n"));
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
                self.fault(".auth", what);
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
        let method = step.method.escape_debug();
        if !is_token(step.method.as_bytes()) {
            let what = format!("`{method}` is not a method: letters without spaces, as in GET");
            self.fault(".method", what);
        } else if step.method == "CONNECT" {
            let what = "CONNECT makes a tunnel, which loadlens does not drive";
            self.fault(".method", what);
        } else if step.method == "TRACE" && step.body != Body::None {
            self.fault(".body", "a TRACE request has no body (RFC 9110 9.3.8)");
        }
        if !step.path.starts_with('/') && !template::begins_raw(&step.path) {
            let path = step.path.escape_debug();
            self.fault(".path", format_args!("`{path}` does not begin with `/`"));
        }
        let mut segments = vec![Segment::Bytes(format!("{} ", step.method).into_bytes())];
        segments.extend(self.template(".path", &step.path, Place::Target));
        segments
    }

    fn headers(&mut self, step: &Step) -> Vec<Segment> {
        let mut segments = Vec::new();
        for (index, (name, value)) in step.headers.iter().enumerate() {
            let place = format!(".headers[{index}]");
            if let Err(what) = header_name(name) {
                self.fault(&place, what);
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
                    let what = format!("environment variable {token_env} is not a token: letters, digits, -._~+/ and = at the end (RFC 6750 2.1)");
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
        let name = format!("body file {path}");
        bounded::read_planned(&name, (path, digest), MAX_FILE_BYTES, "sent")
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
                        let what = "a key of a JSON body cannot be a template, only values can";
                        self.fault(place, format_args!("key `{}`: {what}", key.escape_debug()));
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
}

/// True if the plan gives the step a header of this name.
pub(super) fn has_header(step: &Step, name: &str) -> bool {
    let mut names = step.headers.iter().map(|(name, _)| name);
    names.any(|given| given.eq_ignore_ascii_case(name))
}

/// RFC 9110 11.2.
fn is_token68(text: &str) -> bool {
    let content = text.trim_end_matches('=');
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !content.is_empty() && content.bytes().all(is_one)
}
