//! Scenarios of users: steps, the request of a step, and the checks on its answer.

use serde::{Deserialize, Serialize};

use super::Think;

/// Steps that one user does in order; a failed extraction ends the iteration.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique in the stream.
    pub name: String,
    /// Share of iterations, relative to the other scenarios; above 0.
    pub weight: f64,
    /// At least one.
    pub steps: Vec<Step>,
    /// Steps that belong together or are repeated, in the order of their first steps, outer before inner.
    #[serde(default)]
    pub groups: Vec<Group>,
}

/// Neighbouring steps of a scenario that belong together; they may be repeated.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name; empty: it only repeats.
    #[serde(default)]
    pub name: String,
    /// Index of its first step in the scenario.
    pub first: u16,
    /// Number of steps, those of inner groups included; at least 1.
    pub steps: u16,
    /// Number of times in a row; at least 1.
    pub repeat: u32,
}

impl Group {
    /// True if it has a name, and with it times of its own.
    pub fn is_named(&self) -> bool {
        !self.name.is_empty()
    }
}

/// One request of a scenario. Strings are templates: `{{...}}` is filled for each request.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Unique in the stream; the name in results.
    pub name: String,
    /// GET, POST ...
    pub method: String,
    /// Path and query, a template that begins with `/`.
    pub path: String,
    /// In the order sent; values are templates. Host, Content-Length and Connection are the engine's.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Credentials from the environment; none: none are sent.
    pub auth: Option<Auth>,
    /// Body of the request.
    #[serde(default)]
    pub body: Body,
    /// Statuses that are as expected; empty: any from 200 to 399.
    #[serde(default)]
    pub expect: Vec<u16>,
    /// Judged when the status is as expected, all of them; one that fails makes the outcome `check_failed`.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Values for later steps of the same iteration.
    #[serde(default)]
    pub extract: Vec<Extract>,
    /// Pause after this step (before the next step of the iteration).
    #[serde(default)]
    pub think: Think,
}

/// Credentials: an Authorization header whose secret is an environment variable of the engine, read when the plan is
/// compiled and never written.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// Name and password (RFC 7617).
    Basic {
        /// The name; no colon.
        user: String,
        /// Name of the variable that holds the password.
        password_env: String,
    },
    /// A token (RFC 6750).
    Bearer {
        /// Name of the variable that holds the token.
        token_env: String,
    },
}

/// Body of the request.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A template.
    Text {
        /// The template.
        text: String,
    },
    /// A JSON value; a string in it that is one `{{...}}` keeps its JSON type.
    Json {
        /// The value.
        value: serde_json::Value,
    },
    /// The bytes of a file, as they are.
    File {
        /// Path of the file.
        path: String,
        /// SHA-256 of its bytes, hex.
        digest: String,
    },
}

/// One demand on the answer.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Check {
    /// A value in the JSON body equals this one.
    Json {
        /// Dotted path: `data.items[0].id`.
        path: String,
        /// The value that must be there.
        equals: serde_json::Value,
    },
    /// Something stands at this path of the JSON body, were it null.
    Exists {
        /// Dotted path.
        path: String,
    },
    /// The body is JSON, and nothing stands at this path.
    Absent {
        /// Dotted path.
        path: String,
    },
    /// A number of the JSON body lies within bounds.
    Number {
        /// Dotted path.
        path: String,
        /// Bounds of the value.
        is: Bounds,
    },
    /// An array of the JSON body has so many elements, an object so many members.
    Count {
        /// Dotted path.
        path: String,
        /// Bounds of the number.
        is: Bounds,
    },
    /// A header has this value.
    Header {
        /// Name, case-insensitive.
        name: String,
        /// The value that it must have.
        equals: String,
    },
    /// The body contains this text.
    Contains {
        /// The text.
        text: String,
    },
    /// Something in the body matches this regular expression.
    Regex {
        /// In the syntax of the `regex` crate.
        pattern: String,
    },
    /// The decoded body has so many bytes.
    Size {
        /// Bounds of the number.
        is: Bounds,
    },
    /// The response time, from due to the last byte, is below this. Counted like every check, but an answer that is late
    /// and as expected otherwise stays `ok`: its time belongs among those of the successes.
    Latency {
        /// The bound.
        below_ns: u64,
    },
}

/// Bounds of a number; at least one of them is given.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// It is this one.
    pub equals: Option<f64>,
    /// It is larger than this.
    pub above: Option<f64>,
    /// It is smaller than this.
    pub below: Option<f64>,
}

/// One value that later steps use as `{{name}}`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Extract {
    /// Its name in templates.
    pub name: String,
    /// Source of the value.
    pub from: Source,
}

/// Source of an extracted value.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// In the JSON body.
    Json {
        /// Dotted path: `data.id`.
        path: String,
    },
    /// In a header.
    Header {
        /// Name, case-insensitive.
        name: String,
    },
    /// The match of a regular expression, in the body or in a header.
    Regex {
        /// In the syntax of the `regex` crate.
        pattern: String,
        /// Number of the group; none: the first, or the whole match when there is no group.
        group: Option<u32>,
        /// Name of the header; none: the body.
        header: Option<String>,
    },
}
