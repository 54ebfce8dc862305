//! The program: it says where it is, and is gone when its caller is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_loadlens-origin");

fn start(arguments: &[&str]) -> (Child, Value) {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let hello = serde_json::from_str(&line).expect("one line of JSON");
    (child, hello)
}

fn ask(hello: &Value) {
    let port = hello["port"].as_u64().expect("a port") as u16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let request = "GET /bytes/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.ends_with("xxx"), "{answer}");
}

#[test]
fn it_ends_with_its_standard_input_and_leaves_its_counts() {
    let file = std::env::temp_dir().join(format!("loadlens-books-{}.json", std::process::id()));
    let (mut child, hello) = start(&["--books", file.to_str().expect("a path")]);

    ask(&hello);
    drop(child.stdin.take());
    let status = child.wait().expect("it ends");

    let counts: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("books")).expect("JSON");
    std::fs::remove_file(&file).expect("the file goes");
    assert!(status.success());
    assert_eq!(
        (&counts["received"], &counts["answered"]),
        (&Value::from(1), &Value::from(1))
    );
}

#[test]
fn it_ends_on_term_in_good_order() {
    let (mut child, hello) = start(&["--threads", "2"]);
    ask(&hello);

    // SAFETY: the child has not been waited for, so its id is its own.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };

    assert!(child.wait().expect("it ends").success());
}

#[test]
fn an_unknown_option_is_named() {
    let done = Command::new(PROGRAM)
        .arg("--nonsense")
        .output()
        .expect("it runs");

    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("unknown option --nonsense"));
}
