//! Tests with other processes. Apart from the unit tests, whose descriptors a copy would keep open.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use loadlens_sys::{end_child, fork, monotonic_ns, process_cpu_ns, shared_zeros};

#[test]
fn a_copy_shares_the_memory_for_that_ends_with_its_parent_and_can_be_ended_before() {
    // SAFETY: zero is a valid value of an atomic number, which several processes may share.
    let death_signal: &AtomicI32 = unsafe { shared_zeros() }.unwrap();
    // The copy of a process of several threads may make system calls, and nothing else.
    let Some(pid) = fork().unwrap() else {
        let mut signal: libc::c_int = 0;
        // SAFETY: the signal is written to a valid place.
        unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) };
        death_signal.store(signal, SeqCst);
        loop {
            // SAFETY: no pointers.
            unsafe { libc::pause() };
        }
    };
    let until = monotonic_ns() + 10_000_000_000;
    while death_signal.load(SeqCst) == 0 && monotonic_ns() < until {
        std::thread::yield_now();
    }
    let is_there = || Path::new(&format!("/proc/{pid}")).exists();

    let before = is_there();
    end_child(pid);

    assert_eq!(death_signal.load(SeqCst), libc::SIGKILL);
    assert_eq!((before, is_there()), (true, false));
}

#[test]
fn another_process_is_asked_for_its_own_time_and_has_none_once_it_is_gone() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat starts");
    let pid = child.id() as i32;
    let (mut given, mut copied) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    given.write_all(b"x").unwrap();
    copied.read_exact(&mut [0]).unwrap(); // so it has run

    let of_child = process_cpu_ns(pid);
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(of_child > 0);
    assert_eq!(process_cpu_ns(pid), 0);
}
