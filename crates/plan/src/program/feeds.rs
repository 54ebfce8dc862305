//! The feeds of a plan while it is compiled: which columns its templates use, where, and in which streams.

use std::sync::Arc;

use loadlens_base::{Fault, Faults};

use super::feed::{FeedFile, Table, Use};
use super::template::check_name;
use super::values::Value;
use crate::bounded::check_digest;
use crate::{AtEnd, Feed, Pick, Stream, Workload};

/// A feed as one stream uses it.
#[derive(Debug)]
pub struct FeedProgram {
    /// Its name in the plan.
    pub name: String,
    /// Rule that picks the record of an iteration.
    pub pick: Pick,
    /// Behaviour after the last record.
    pub end: AtEnd,
    /// Number of records.
    pub records: u32,
    table: Arc<Table>,
}

impl FeedProgram {
    pub(super) fn new(feed: &Feed, table: &(u32, Arc<Table>)) -> Self {
        FeedProgram {
            name: feed.name.clone(),
            pick: feed.pick,
            end: end_of(feed),
            records: table.0,
            table: table.1.clone(),
        }
    }
}

/// Behaviour after the last record: those that are used once each always end the load.
fn end_of(feed: &Feed) -> AtEnd {
    match feed.pick {
        Pick::Unique => AtEnd::Stop,
        _ => feed.end,
    }
}

/// The records that one iteration was given, one of each feed of its stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    feeds: &'a [FeedProgram],
    at: &'a [u32],
}

impl<'a> Records<'a> {
    /// `at[i]` is the record of `feeds[i]`.
    #[inline]
    pub fn new(feeds: &'a [FeedProgram], at: &'a [u32]) -> Self {
        Records { feeds, at }
    }

    #[inline]
    pub(super) fn value(self, feed: u16, column: u16) -> Value<'a> {
        let feed = usize::from(feed);
        self.feeds[feed].table.value(self.at[feed], column)
    }
}

/// The feeds of a plan while it is compiled: which columns its templates use, and where.
pub(super) struct Feeds<'p> {
    feeds: &'p [Feed],
    names: Vec<String>,
    /// By feed: its columns, what for, and the first place of each.
    columns: Vec<Vec<(String, Use, String)>>,
    /// By feed: the streams that use it.
    streams: Vec<Vec<usize>>,
    /// Feeds of the present stream, and whether its users last.
    of_stream: Vec<usize>,
    stream: usize,
    has_users: bool,
    /// Feeds of the present scenario, as indices into those of the stream.
    of_scenario: Vec<u16>,
    faults: Vec<Fault>,
}

impl<'p> Feeds<'p> {
    pub fn new(feeds: &'p [Feed], faults: &mut Vec<Fault>) -> Self {
        for (index, feed) in feeds.iter().enumerate() {
            let mut faults = Faults::new(faults, format!("feeds[{index}]"));
            if let Err(what) = check_name(&feed.name) {
                faults.add("name", what);
            }
            let is_new = feeds[..index].iter().all(|other| other.name != feed.name);
            let what = format_args!("two feeds are named `{}`", feed.name);
            faults.want(is_new, "name", what);
            if feed.end == AtEnd::Stop && matches!(feed.pick, Pick::Random | Pick::User) {
                let what = "stop: random records and those of users have no end: loop";
                faults.add("end", what);
            }
        }
        Feeds {
            feeds,
            names: feeds.iter().map(|feed| feed.name.clone()).collect(),
            columns: vec![Vec::new(); feeds.len()],
            streams: vec![Vec::new(); feeds.len()],
            of_stream: Vec::new(),
            stream: 0,
            has_users: false,
            of_scenario: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn begin_stream(&mut self, index: usize, stream: &Stream) {
        self.stream = index;
        self.has_users = matches!(stream.workload, Workload::Closed { .. });
    }

    /// True if the stream uses a feed that ends its load.
    pub fn end_the_load(&self) -> bool {
        let ends = |&feed: &usize| end_of(&self.feeds[feed]) == AtEnd::Stop;
        self.of_stream.iter().any(ends)
    }

    /// The feeds that the stream uses, in the order of their indices in its program.
    pub fn end_stream(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.of_stream)
    }

    /// The feeds that the scenario uses: indices into those of the stream.
    pub fn end_scenario(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.of_scenario)
    }

    /// Notes the use of a column; gives the index of the feed in the stream and of the column in its table.
    pub fn used(&mut self, feed: usize, column: String, wanted: Use, at: String) -> (u16, u16) {
        if !self.streams[feed].contains(&self.stream) {
            self.streams[feed].push(self.stream);
            self.check_stream(feed, &at);
        }
        let of_stream = position_or_push(&mut self.of_stream, feed) as u16;
        position_or_push(&mut self.of_scenario, of_stream);
        let columns = &mut self.columns[feed];
        let listed = columns.iter().position(|(listed, _, _)| *listed == column);
        let place = listed.unwrap_or_else(|| {
            columns.push((column, Use::default(), at));
            columns.len() - 1
        });
        columns[place].1.in_header |= wanted.in_header;
        columns[place].1.is_raw |= wanted.is_raw;
        (of_stream, place as u16)
    }

    fn check_stream(&mut self, index: usize, at: &str) {
        let feed = &self.feeds[index];
        if feed.pick == Pick::Unique && self.streams[index].len() == 2 {
            let what = format!(
                "feed {} is unique and another stream uses it: pick shared, or a file for each",
                feed.name
            );
            self.faults.push(Fault::new(at, what));
        }
        if feed.pick == Pick::User && !self.has_users {
            let what = format!(
                "feed {} has a record for each user, and this load has no users that stay: pick shared or random",
                feed.name
            );
            self.faults.push(Fault::new(at, what));
        }
    }

    /// The records and columns that are used of each feed; where files are read, they are checked.
    pub fn tables(mut self, reads: bool, faults: &mut Vec<Fault>) -> Vec<(u32, Arc<Table>)> {
        faults.append(&mut self.faults);
        let mut tables = Vec::new();
        for (index, (feed, columns)) in self.feeds.iter().zip(&self.columns).enumerate() {
            let made = if !reads || columns.is_empty() {
                Ok((0, Table::default()))
            } else {
                table(feed, columns)
            };
            let (records, table) = made.unwrap_or_else(|found| {
                faults.extend(found.into_iter().map(|(at, what)| {
                    Fault::new(at.unwrap_or_else(|| format!("feeds[{index}].path")), what)
                }));
                (0, Table::default())
            });
            tables.push((records, Arc::new(table)));
        }
        tables
    }
}

/// The records of a feed and the columns that are used; or the faults, each at a use or in the file itself.
type Made = Result<(u32, Table), Vec<(Option<String>, String)>>;

fn table(feed: &Feed, columns: &[(String, Use, String)]) -> Made {
    let file = FeedFile::open(&feed.path, feed.format).map_err(|what| vec![(None, what)])?;
    let name = format!("feed {}", feed.path);
    check_digest(&name, file.digest(), &feed.digest).map_err(|what| vec![(None, what)])?;
    let wanted: Vec<(String, Use)> = columns
        .iter()
        .map(|(name, used, _)| (name.clone(), *used))
        .collect();
    match file.table(&wanted) {
        Ok(table) => Ok((file.records(), table)),
        Err(faults) => Err(faults
            .into_iter()
            .map(|(column, what)| (Some(columns[column].2.clone()), what))
            .collect()),
    }
}

pub(super) fn position_or_push<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            list.push(item);
            list.len() - 1
        })
}
