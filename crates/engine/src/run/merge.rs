//! One result from several machines: their threads are taken as threads of one engine.
//!
//! Each machine wrote `sums.bin`: the intervals of its threads, and how its run ended. They go through the same aligner
//! and into the same result as those of one engine, so there is no second way to any number. Files are read side by
//! side along the time of the run: what is held does not grow with its length.

use std::io;
use std::path::Path;

use loadlens_base::units::seconds;
use loadlens_plan::program::Program;
use loadlens_plan::Plan;
use loadlens_record::collector::{Books, Collected};
use loadlens_record::files::Files;
use loadlens_record::interval::Shape;
use loadlens_record::merge::{Aligned, Aligner};
use loadlens_record::sums::{Next, Reader};

use super::layout;
use super::result::{self, Conclusion, Ends};

/// Merges what the machines that shared a plan wrote into these folders: writes the intervals of all together into the
/// folder `out`, and returns the result as JSON.
///
/// `plan_json` is the whole plan. A file that ends before its run did counts up to there, and the result says so. An
/// error names the file and its fault.
pub fn merge(plan_json: &str, folders: &[impl AsRef<Path>], out: &Path) -> Result<String, String> {
    let plan: Plan = serde_json::from_str(plan_json).map_err(|error| format!("plan: {error}"))?;
    let program = Program::unsent(&plan).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        faults.join("; ")
    })?;
    let merge = || -> io::Result<String> {
        let mut merging = Merging::begin(&program, folders)?;
        let names = layout::names(&plan, &program);
        let mut collected = Collected::new(&names, merging.threads.len());
        let mut files = Files::merged(out)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", out.display())))?;
        loop {
            match merging.aligner.pull() {
                Aligned::Interval(sum) => {
                    files.interval(&sum, &names);
                    collected.add(&sum, &names);
                }
                Aligned::Lacks(threads) => {
                    for thread in threads {
                        merging.read_on(thread)?;
                    }
                }
                Aligned::End => break,
            }
        }
        let mut conclusion = merging.conclusion.unwrap_or_default();
        conclusion.faults.extend(files.faults());
        let result = result::build(&plan, &program, &collected, &conclusion, &merging.broken);
        Ok(result.to_string())
    };
    merge().map_err(|error| error.to_string())
}

/// The files of one machine.
struct Node {
    /// That of its folder.
    name: String,
    reader: Reader,
    /// Number of its first thread among those of all machines.
    first_thread: usize,
    books: Books,
    /// End of its last interval.
    at: u64,
    has_ended: bool,
}

struct Merging<'p> {
    program: &'p Program,
    nodes: Vec<Node>,
    /// By thread: the index of its machine.
    threads: Vec<usize>,
    aligner: Aligner,
    /// That of the first machines, as far as they have ended.
    conclusion: Option<Conclusion>,
    /// By machine: the others.
    later: Vec<Option<Conclusion>>,
    /// Number of machines in `conclusion`.
    concluded: usize,
    /// Streams of which the law of counting is broken on a machine, in words.
    broken: Vec<(usize, String)>,
}

impl<'p> Merging<'p> {
    fn begin(program: &'p Program, folders: &[impl AsRef<Path>]) -> io::Result<Self> {
        let shape = Shape::of(program);
        let (mut nodes, mut threads) = (Vec::new(), Vec::new());
        for (index, folder) in folders.iter().enumerate() {
            let folder = folder.as_ref();
            let reader = Reader::open(folder, shape)?;
            let name = folder.file_name().unwrap_or(folder.as_os_str());
            let first_thread = threads.len();
            threads.resize(first_thread + reader.threads(), index);
            nodes.push(Node {
                name: name.to_string_lossy().into_owned(),
                reader,
                first_thread,
                books: Books::new(shape.steps),
                at: 0,
                has_ended: false,
            });
        }
        let mut merging = Merging {
            program,
            later: vec![None; nodes.len()],
            aligner: Aligner::new(threads.len()),
            nodes,
            threads,
            conclusion: None,
            concluded: 0,
            broken: Vec::new(),
        };
        for index in 0..merging.nodes.len() {
            if merging.nodes[index].reader.threads() == 0 {
                merging.end(index, None);
            }
        }
        Ok(merging)
    }

    /// Reads on in the file of a thread until it has pushed an interval or ended.
    fn read_on(&mut self, thread: usize) -> io::Result<()> {
        let index = self.threads[thread];
        while !self.nodes[index].has_ended {
            let node = &mut self.nodes[index];
            match node.reader.read()? {
                Next::Interval(own, sum) => {
                    node.books.add(&sum);
                    node.at = node.at.max(sum.end);
                    let of = node.first_thread + own;
                    self.aligner.push(of, sum);
                    if of == thread {
                        break;
                    }
                }
                Next::End(conclusion) => self.end(index, Some(conclusion)),
                Next::Torn => self.end(index, None),
            }
        }
        Ok(())
    }

    /// A machine has ended, with a conclusion of its own or without.
    fn end(&mut self, index: usize, conclusion: Option<Conclusion>) {
        let has_several = self.nodes.len() > 1;
        let node = &mut self.nodes[index];
        node.has_ended = true;
        for thread in 0..node.reader.threads() {
            self.aligner.end(node.first_thread + thread);
        }
        let mut conclusion = conclusion.unwrap_or_else(|| cut_off(node));
        let unfinished = &conclusion.ends.unfinished;
        for (stream, law) in result::broken_laws(self.program, &node.books, unfinished) {
            self.broken.push((stream, format!("{}: {law}", node.name)));
        }
        if has_several {
            let named = |fault: &mut String| *fault = format!("{}: {fault}", node.name);
            conclusion.faults.iter_mut().for_each(named);
        }
        self.later[index] = Some(conclusion);
        // In the order of the machines, whichever ended first.
        while let Some(next) = self.later.get_mut(self.concluded).and_then(Option::take) {
            self.concluded += 1;
            match &mut self.conclusion {
                None => self.conclusion = Some(next),
                Some(conclusion) => conclusion.add(next),
            }
        }
    }
}

/// The conclusion of a machine whose file ends before its run did: what was open at its last cut stays open.
fn cut_off(node: &Node) -> Conclusion {
    let at_s = seconds(node.at);
    Conclusion {
        ends: Ends::cut_off(node.at, result::left_open(&node.books)),
        is_incomplete: true,
        faults: vec![format!(
            "its counts end at {at_s:.3} s, before its load did"
        )],
        ..Conclusion::default()
    }
}
