//! Requirements on a step's answer, and values taken from it for later steps.

use loadlens_http::request::is_token;

use crate::program::check::{Checks, Demand, Extraction, From, Need};
use crate::program::feeds::position_or_push;
use crate::program::json::{Expected, Path};
use crate::program::naming;
use crate::program::pattern::Pattern;
use crate::program::template;
use crate::{Bounds, Check, Source, Step};

use super::Compiler;

impl Compiler<'_, '_> {
    pub(super) fn checks(&mut self, step: &Step) -> Checks {
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
    pub(super) fn refuse_coded_bodies(&mut self, step: &Step, need: Need) {
        let is_identity =
            |value: &str| value.trim().is_empty() || value.trim().eq_ignore_ascii_case("identity");
        let asks = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("accept-encoding") && !is_identity(value)
        };
        if let (Need::Body, Some(index)) = (need, step.headers.iter().position(asks)) {
            let what = "asks for compressed bodies, which checks and extractions do not unpack: leave the header out";
            self.fault(&format!(".headers[{index}]"), what);
        }
    }

    /// The slot of an extracted name: the one it has, or a new one.
    fn slot(&mut self, name: &str) -> u16 {
        position_or_push(&mut self.names, name.to_owned()) as u16
    }
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
        Check::Json { path, equals } => Demand::Json(Path::parse(path)?, Expected::new(equals)),
        Check::Exists { path } => Demand::Exists(Path::parse(path)?),
        Check::Absent { path } => Demand::Absent(Path::parse(path)?),
        Check::Number { path, is } => Demand::Number(Path::parse(path)?, usable(is)?),
        Check::Count { path, is } => Demand::Count(Path::parse(path)?, usable(is)?),
        Check::Header { name, equals } => {
            Demand::Header(header_name(name)?, equals.trim().as_bytes().to_vec())
        }
        Check::Contains { text } if text.is_empty() => {
            return Err("an empty text is in every body".to_owned())
        }
        Check::Contains { text } => {
            let finder = memchr::memmem::Finder::new(text.as_bytes());
            Demand::Contains(Box::new(finder.into_owned()))
        }
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
        return Err("a bound is not a number".to_owned());
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

pub(super) fn header_name(name: &str) -> Result<String, String> {
    if is_token(name.as_bytes()) {
        return Ok(name.to_owned());
    }
    let name = name.escape_debug();
    Err(format!(
        "`{name}` is not a header name: letters, digits and hyphens"
    ))
}
