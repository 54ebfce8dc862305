//! Behaviour of each path. A target (path and query) is resolved once and then shared by all threads, so that
//! two connections that ask for the same target meet the same counter, seed and queue.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::answer::{standard, Answer};
use crate::bad::{self, Behaviour};
use crate::law::{Draws, Law, Rotation, Station};

/// Most targets with a state of their own; further ones are resolved anew for each request.
const MAX_TARGETS: usize = 4096;
/// Longest body of `/bytes/N`.
const MAX_BYTES: usize = 64 << 20;

/// Behaviour of a target.
#[derive(Debug)]
pub enum Route {
    /// Answers at once, always the same.
    Fixed(Answer),
    /// Answers after a time drawn from a law, independent of other requests.
    Delay(Mutex<Draws>, Answer),
    /// Answers when a queueing station has served the request; the second answer turns it away.
    Queue(Mutex<Station>, Answer, Answer),
    /// Answers with statuses in rotation.
    Statuses(Mutex<Rotation>, Vec<Answer>),
    /// Answers with the body of the request.
    Echo,
    /// Answers with the head of the request as it came.
    EchoHead,
    /// The collection of items: POST makes one, GET lists the newest.
    Items(Arc<Items>),
    /// One item.
    Item(Arc<Items>, u64),
    /// Does something wrong on purpose; counts how often.
    Bad(&'static Behaviour, AtomicU64),
}

/// Items that exist: ids from 1, given out in order.
#[derive(Debug, Default)]
pub struct Items {
    last: AtomicU64,
    there: Mutex<BTreeSet<u64>>,
}

impl Items {
    /// Makes an item and gives its id.
    pub fn create(&self) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.there).insert(id);
        id
    }

    /// Returns true if an item exists.
    pub fn has(&self, id: u64) -> bool {
        lock(&self.there).contains(&id)
    }

    /// Takes an item away; false when it was not there.
    pub fn delete(&self, id: u64) -> bool {
        lock(&self.there).remove(&id)
    }

    /// At most `count` items that are there, the newest first.
    pub fn newest(&self, count: usize) -> Vec<u64> {
        lock(&self.there)
            .iter()
            .rev()
            .take(count)
            .copied()
            .collect()
    }
}

/// Locks, and goes on after a panic elsewhere: everything kept under our locks is valid at any time.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All targets seen so far.
pub struct Routes {
    known: Mutex<HashMap<String, Arc<Route>>>,
    items: Arc<Items>,
    /// Target as which `/` is answered.
    root: Option<String>,
}

impl Routes {
    /// With `root`, requests for `/` are answered as if they had asked for that target.
    pub fn new(root: Option<String>) -> Routes {
        Routes {
            known: Mutex::default(),
            items: Arc::default(),
            root,
        }
    }

    /// Returns the behaviour of `target`.
    pub fn resolve(&self, target: &str) -> Arc<Route> {
        let target = match (&self.root, target) {
            (Some(root), "/") => root.as_str(),
            _ => target,
        };
        let mut routes = lock(&self.known);
        if let Some(route) = routes.get(target) {
            return route.clone();
        }
        let made = make(target, &self.items);
        let route = Arc::new(made.unwrap_or_else(|why| {
            let status = if why == NOT_FOUND { 404 } else { 400 };
            Route::Fixed(Answer::refusal(status, &why))
        }));
        if routes.len() < MAX_TARGETS {
            routes.insert(target.to_owned(), route.clone());
        }
        route
    }
}

/// Name of a target in the counts; ids are left out.
pub fn name_in_counts(target: &str) -> String {
    match target.strip_prefix("/items/") {
        Some(_) => "/items/{id}".to_owned(),
        None => target.to_owned(),
    }
}

const NOT_FOUND: &str = "no such path";

fn make(target: &str, items: &Arc<Items>) -> Result<Route, String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::read(query)?;
    let parts: Vec<&str> = path[1..].split('/').collect();
    let ok = || Answer::json(200, r#"{"ok":true}"#);
    let route = match parts.as_slice() {
        [""] | ["json"] => Route::Fixed(standard()),
        ["bytes", count] => Route::Fixed(Answer::new(
            200,
            &[("Content-Type", "text/plain")],
            &vec![b'x'; number(count, MAX_BYTES)?],
        )),
        ["delay", ms] => {
            let law = Law::Constant {
                ns: milliseconds(ms)?,
            };
            Route::Delay(Mutex::new(Draws::new(law, 0)), ok())
        }
        ["delay"] => Route::Delay(Mutex::new(Draws::new(query.law()?, query.seed()?)), ok()),
        ["mix"] => {
            let law = query.rotation()?;
            Route::Delay(Mutex::new(Draws::new(law, 0)), ok())
        }
        ["mm1"] => query.queue(query.exponential()?, 1)?,
        ["md1"] => query.queue(query.constant()?, 1)?,
        ["mmc"] => query.queue(query.exponential()?, query.servers()?)?,
        ["mdc"] => query.queue(query.constant()?, query.servers()?)?,
        ["queue"] => query.queue(query.law()?, query.servers()?)?,
        ["status", code] => Route::Fixed(status_answer(number(code, 999)?)?),
        ["status"] => query.statuses()?,
        ["headers", count] => Route::Fixed(many_headers(number(count, 10_000)?)),
        ["echo"] => Route::Echo,
        ["head"] => Route::EchoHead,
        ["items"] => Route::Items(items.clone()),
        ["items", id] => Route::Item(items.clone(), number(id, usize::MAX)? as u64),
        ["bad"] => Route::Fixed(Answer::json(200, &bad::list())),
        ["bad", name] => Route::Bad(bad::find(name).ok_or(NOT_FOUND)?, AtomicU64::new(0)),
        _ => return Err(NOT_FOUND.to_owned()),
    };
    Ok(route)
}

fn number(text: &str, most: usize) -> Result<usize, String> {
    let value: usize = text
        .parse()
        .map_err(|_| format!("not a whole number: {text}"))?;
    if value > most {
        return Err(format!("above {most}: {text}"));
    }
    Ok(value)
}

/// Milliseconds as nanoseconds, at most an hour.
fn milliseconds(text: &str) -> Result<f64, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| format!("not a number of ms: {text}"))?;
    if !(0.0..=3_600_000.0).contains(&value) {
        return Err(format!("not between 0 and an hour: {text} ms"));
    }
    Ok(value * 1e6)
}

fn status_answer(code: usize) -> Result<Answer, String> {
    if !(200..=999).contains(&code) {
        return Err(format!("not a final status: {code}"));
    }
    Ok(Answer::json(
        code as u16,
        &format!(r#"{{"status":{code}}}"#),
    ))
}

fn many_headers(count: usize) -> Answer {
    let names: Vec<String> = (0..count).map(|at| format!("X-Header-{at}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "value")).collect();
    Answer::new(200, &fields, b"{}")
}

/// The parameters of a target.
struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    fn read(text: &'a str) -> Result<Query<'a>, String> {
        let pairs = text.split('&').filter(|part| !part.is_empty());
        let read = |part: &'a str| {
            part.split_once('=')
                .ok_or(format!("parameter without a value: {part}"))
        };
        Ok(Query(pairs.map(read).collect::<Result<_, _>>()?))
    }

    fn find(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }

    fn need(&self, name: &str) -> Result<&'a str, String> {
        self.find(name)
            .ok_or_else(|| format!("parameter missing: {name}"))
    }

    fn need_ms(&self, name: &str) -> Result<f64, String> {
        milliseconds(self.need(name)?)
    }

    fn need_number(&self, name: &str) -> Result<f64, String> {
        let text = self.need(name)?;
        let value: f64 = text
            .parse()
            .map_err(|_| format!("not a number: {name}={text}"))?;
        if !value.is_finite() || value <= 0.0 {
            return Err(format!("not above 0: {name}={text}"));
        }
        Ok(value)
    }

    fn seed(&self) -> Result<u64, String> {
        self.find("seed").map_or(Ok(1), |text| {
            number(text, usize::MAX).map(|seed| seed as u64)
        })
    }

    fn servers(&self) -> Result<usize, String> {
        number(self.need("c")?, 10_000)
    }

    fn constant(&self) -> Result<Law, String> {
        Ok(Law::Constant {
            ns: self.need_ms("ms")?,
        })
    }

    fn exponential(&self) -> Result<Law, String> {
        Ok(Law::Exponential {
            mean_ns: self.need_ms("mean_ms")?,
        })
    }

    fn law(&self) -> Result<Law, String> {
        match self.need("law")? {
            "constant" => self.constant(),
            "exponential" => self.exponential(),
            "uniform" => Ok(Law::Uniform {
                low_ns: self.need_ms("low_ms")?,
                high_ns: self.need_ms("high_ms")?,
            }),
            "lognormal" => Ok(Law::LogNormal {
                median_ns: self.need_ms("median_ms")?,
                sigma: self.need_number("sigma")?,
            }),
            "pareto" => Ok(Law::Pareto {
                scale_ns: self.need_ms("scale_ms")?,
                shape: self.need_number("shape")?,
            }),
            other => Err(format!("no such law: {other}")),
        }
    }

    /// `ms=10:99,200:1` as a rotation.
    fn rotation(&self) -> Result<Law, String> {
        let parts = shares(self.need("ms")?)?;
        let parts: Result<Vec<(f64, u32)>, String> = parts
            .into_iter()
            .map(|(value, share)| Ok((milliseconds(value)?, share)))
            .collect();
        Ok(Law::Rotation { parts: parts? })
    }

    fn queue(&self, law: Law, servers: usize) -> Result<Route, String> {
        let places = self
            .find("places")
            .map(|text| number(text, usize::MAX))
            .transpose()?;
        let station = Station::new(Draws::new(law, self.seed()?), servers, places);
        Ok(Route::Queue(
            Mutex::new(station),
            Answer::json(200, r#"{"ok":true}"#),
            Answer::json(503, r#"{"ok":false,"why":"all places are taken"}"#),
        ))
    }

    /// `codes=200:9,500:1` as a rotation.
    fn statuses(&self) -> Result<Route, String> {
        let parts = shares(self.need("codes")?)?;
        let rotation = Rotation::new(&parts.iter().map(|part| part.1).collect::<Vec<u32>>());
        let answers: Result<Vec<Answer>, String> = parts
            .iter()
            .map(|part| status_answer(number(part.0, 999)?))
            .collect();
        Ok(Route::Statuses(Mutex::new(rotation), answers?))
    }
}

/// `a:9,b:1` as values with shares; a value alone has share 1.
fn shares(text: &str) -> Result<Vec<(&str, u32)>, String> {
    text.split(',')
        .map(|part| {
            let (value, share) = part.split_once(':').unwrap_or((part, "1"));
            match number(share, 1_000_000)? {
                0 => Err(format!("share of 0: {part}")),
                share => Ok((value, share as u32)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(target: &str) -> Result<Route, String> {
        make(target, &Arc::default())
    }

    #[test]
    fn a_target_with_a_bad_parameter_says_which() {
        let cases = [
            ("/nowhere", "no such path"),
            ("/bad/nothing_of_that_name", "no such path"),
            ("/bytes/x", "not a whole number: x"),
            ("/bytes/99999999999", "above 67108864: 99999999999"),
            ("/delay/-1", "not between 0 and an hour: -1 ms"),
            ("/mm1", "parameter missing: mean_ms"),
            ("/delay?law=zipf", "no such law: zipf"),
            ("/status/199", "not a final status: 199"),
            ("/mix?ms=10:0", "share of 0: 10:0"),
            ("/mm1?mean_ms", "parameter without a value: mean_ms"),
        ];

        for (target, why) in cases {
            assert_eq!(made(target).err().as_deref(), Some(why), "{target}");
        }
    }

    #[test]
    fn the_same_target_is_one_route_and_another_query_is_another() {
        let routes = Routes::new(None);

        let first = routes.resolve("/mm1?mean_ms=2");
        let again = routes.resolve("/mm1?mean_ms=2");
        let other = routes.resolve("/mm1?mean_ms=2&seed=2");

        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn the_root_can_stand_for_another_target() {
        let routes = Routes::new(Some("/delay/5".to_owned()));

        assert!(matches!(*routes.resolve("/"), Route::Delay(..)));
        assert!(matches!(*routes.resolve("/json"), Route::Fixed(..)));
    }

    #[test]
    fn an_item_is_there_from_its_creation_to_its_deletion() {
        let items = Items::default();

        let id = items.create();

        assert!(items.has(id) && !items.has(id + 1) && !items.has(0));
        assert!(items.delete(id) && !items.delete(id) && !items.has(id));
    }

    #[test]
    fn the_newest_items_leave_out_what_was_deleted() {
        let items = Items::default();
        let ids: Vec<u64> = (0..4).map(|_| items.create()).collect();

        items.delete(ids[2]);

        assert_eq!(items.newest(2), [ids[3], ids[1]]);
    }

    #[test]
    fn ids_are_left_out_of_the_counts() {
        assert_eq!(name_in_counts("/items/17"), "/items/{id}");
        assert_eq!(name_in_counts("/mm1?mean_ms=2"), "/mm1?mean_ms=2");
    }
}
