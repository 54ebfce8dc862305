//! Merging: the counts of several machines give the result and the files of one engine that has all their threads.

use std::fs;
use std::path::{Path, PathBuf};

use loadlens_base::Random;
use loadlens_engine::run::{merge, result};
use loadlens_plan::program::Program;
use serde_json::Value;

use crate::explore;
use crate::history::{History, Machine, Setting};
use crate::laws::check;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(of: &str, seed: u64) -> Folder {
        let name = format!("loadlens-merged-{}-{of}-{seed}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn machine(&self, name: &str, workers: usize) -> Machine {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).unwrap();
        Machine { folder, workers }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Lives a history on machines with so many workers each, which write into folders `a`, `b` and so on.
fn live_on(seed: u64, folder: &Folder, workers: &[usize]) -> (History, Vec<PathBuf>) {
    let mut setting = Setting::drawn(seed);
    let names = ["a", "b", "c"].iter().zip(workers);
    setting.machines = names
        .map(|(name, count)| folder.machine(name, *count))
        .collect();
    let folders = setting.machines.iter();
    let folders = folders.map(|machine| machine.folder.clone()).collect();
    (setting.live(), folders)
}

/// The workers of a seed's history in one to three groups.
fn grouped(seed: u64) -> Vec<usize> {
    let mut groups = vec![0];
    let random = &mut Random::derived(seed, &[3]);
    for _ in 0..Setting::drawn(seed).worlds.len() {
        if groups.last() != Some(&0) && random.below(3) > 0 {
            groups.push(0);
        }
        *groups.last_mut().unwrap() += 1;
    }
    groups
}

/// The result of one engine.
fn result_of(history: &History) -> String {
    let program = Program::compile(&history.plan).unwrap();
    let (collected, conclusion) = (&history.collected, &history.conclusion);
    result::build(&history.plan, &program, collected, conclusion, &[]).to_string()
}

fn merged(history: &History, folders: &[PathBuf], out: &Path) -> Result<String, String> {
    merge(&serde_json::to_string(&history.plan).unwrap(), folders, out)
}

#[test]
fn merged_results_and_files_are_those_of_one_engine_to_the_last_digit() {
    explore(300, "merged_results", |seed| {
        let folder = Folder::new("whole", seed);
        let groups = grouped(seed);
        let out = folder.machine("out", 0).folder;

        let (of_several, folders) = live_on(seed, &folder, &groups);
        let merged = merged(&of_several, &folders, &out).unwrap();

        let whole = Folder::new("one", seed);
        let (of_one, one) = live_on(seed, &whole, &[groups.iter().sum()]);
        assert_eq!(of_several.digest(), of_one.digest(), "the same happened");
        assert_eq!(merged, result_of(&of_one));
        for name in ["intervals.hlog", "counters.jsonl"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
            assert_eq!(read(&out), read(&one[0]), "{name}");
        }
        check(&of_one);
        of_one
    });
}

#[test]
fn a_file_that_ends_early_counts_up_to_there_and_every_law_holds() {
    explore(300, "a_file_that_ends_early", |seed| {
        let folder = Folder::new("torn", seed);
        let groups = grouped(seed);
        let out = folder.machine("out", 0).folder;
        let (history, folders) = live_on(seed, &folder, &groups);
        let whole = merged(&history, &folders, &out).unwrap();
        let random = &mut Random::derived(seed, &[4]);
        let file = folders[random.below(folders.len() as u64) as usize].join("sums.bin");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..random.below(bytes.len() as u64) as usize]).unwrap();

        let torn = merged(&history, &folders, &out).unwrap();

        let read = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let (torn, whole) = (read(&torn), read(&whole));
        assert_eq!(torn["status"], "incomplete");
        let reasons = torn["reasons"].to_string();
        assert!(reasons.contains("its counts end at"), "{reasons}");
        for index in 0..history.plan.streams.len() {
            let stream = &torn["streams"][index];
            assert_eq!(stream["law_holds"], true, "{}", stream["law"]);
            let due = |result: &Value| result["streams"][index]["requests"]["due"].as_u64();
            assert!(due(&torn) <= due(&whole));
        }
        history
    });
}

#[test]
fn a_damaged_file_is_named_and_never_taken_for_a_whole_one() {
    explore(300, "a_damaged_file", |seed| {
        let folder = Folder::new("damaged", seed);
        let out = folder.machine("out", 0).folder;
        let (history, folders) = live_on(seed, &folder, &grouped(seed));
        let random = &mut Random::derived(seed, &[5]);
        let file = folders[random.below(folders.len() as u64) as usize].join("sums.bin");
        let mut bytes = fs::read(&file).unwrap();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        fs::write(&file, &bytes).unwrap();

        let merged = merged(&history, &folders, &out);

        match merged {
            // A longer chunk than there is: the file ends early.
            Ok(result) => assert!(result.contains("\"status\":\"incomplete\""), "byte {at}"),
            Err(fault) => assert!(fault.starts_with(file.to_str().unwrap()), "{fault}"),
        }
        history
    });
}
