//! `loadlens-origin`: starts an origin and says where it is, in one line of JSON.
//!
//! It ends when its standard input ends, or on TERM or INT, so a caller that dies leaves nothing behind.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use loadlens_origin::tls::{Pem, TlsConfig};
use loadlens_origin::{bad, floor, Config, Freeze, Origin};
use loadlens_sys as sys;
use strum::VariantNames;

const HELP: &str = "\
Serve known behaviour over HTTP/1.1, and keep counts of it.

  loadlens-origin [--address 127.0.0.1] [--port 0] [--threads 1] [--cpus 0,1] [--root TARGET] [--log-rows 0]
                  [--books FILE]
                  [--admission accept|refuse|hold|close|reset|greet] [--backlog 4096] [--max-connections N]
                  [--tls [--tls-certificate good|expired|wrong-name|self-signed] [--tls-versions 1.2|1.3|both]
                   [--tls-handshake whole|stall|close|reset] [--tls-client-certificate] [--tls-alpn NAME,NAME]
                   [--tls-rude] [--tls-dribble] [--tls-rekey N] [--tls-pem DIR]]
                  [--freeze-ms MS [--freeze-every-ms MS] [--freeze-first-ms MS]] [--ignore-stdin]
  loadlens-origin floor --port PORT [--connections 1] [--seconds 1] [--post]
  loadlens-origin bad

Prints {\"port\", \"control_port\", \"pid\"} when it listens; ends when stdin ends, or on TERM.
--behaviour is another name for --root: what requests for / are answered as, such as /mm1?mean_ms=2
--tls speaks TLS with a certificate made at the start; --tls-pem writes ca.pem, client.pem and client.key.
--books writes the counts to FILE at the end. While it runs: GET /books, GET /log, POST /books/reset on
the control port.
floor  sends and receives, and does nothing else: the least that a generator can cost.
bad    lists the misbehaviours that are served at /bad/NAME.
";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let verb = match words.first().map(String::as_str) {
        Some("floor" | "bad") => words.remove(0),
        _ => "serve".to_owned(),
    };
    let done = match verb.as_str() {
        "bad" => list(),
        "floor" => Options::read(words).and_then(run_floor),
        _ => Options::read(words).and_then(serve),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("loadlens-origin: {why}");
            ExitCode::from(2)
        }
    }
}

/// Options of the command line.
#[derive(Default)]
struct Options {
    config: Config,
    counts: Option<String>,
    pem_dir: Option<String>,
    ignores_stdin: bool,
    freeze_ms: Option<f64>,
    freeze_every_ms: f64,
    freeze_first_ms: Option<f64>,
    connections: usize,
    seconds: f64,
    is_post: bool,
}

impl Options {
    fn read(words: Vec<String>) -> Result<Options, String> {
        let mut options = Options {
            connections: 1,
            seconds: 1.0,
            ..Options::default()
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            options.take(&word, &mut || {
                words.next().ok_or(format!("{word} needs a value"))
            })?;
        }
        if let Some(len_ms) = options.freeze_ms {
            options.config.freeze = Some(Freeze {
                first_ns: ns(options.freeze_first_ms.unwrap_or(options.freeze_every_ms)),
                len_ns: ns(len_ms),
                every_ns: ns(options.freeze_every_ms),
            });
        }
        Ok(options)
    }

    fn take(
        &mut self,
        word: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        let config = &mut self.config;
        match word {
            "--port" => config.port = number(&value()?)?,
            "--address" => config.address = address(&value()?)?,
            "--threads" => config.threads = number(&value()?)?,
            "--cpus" => config.cpus = value()?.split(',').map(number).collect::<Result<_, _>>()?,
            "--root" | "--behaviour" => config.root = Some(target(value()?)?),
            "--log-rows" => config.log_rows = number(&value()?)?,
            "--backlog" => config.backlog = number(&value()?)?,
            "--max-connections" => config.max_connections = Some(number(&value()?)?),
            "--admission" => config.admission = choice(&value()?)?,
            "--tls" => {
                config.tls.get_or_insert_default();
            }
            "--tls-pem" => self.pem_dir = Some(value()?),
            _ if word.starts_with("--tls-") => {
                tls_option(config.tls.get_or_insert_default(), word, value)?;
            }
            "--books" => self.counts = Some(value()?),
            "--ignore-stdin" => self.ignores_stdin = true,
            "--freeze-ms" => self.freeze_ms = Some(number(&value()?)?),
            "--freeze-every-ms" => self.freeze_every_ms = number(&value()?)?,
            "--freeze-first-ms" => self.freeze_first_ms = Some(number(&value()?)?),
            "--connections" => self.connections = number(&value()?)?,
            "--seconds" => self.seconds = number(&value()?)?,
            "--post" => self.is_post = true,
            _ => return Err(format!("unknown option {word}\n\n{HELP}")),
        }
        Ok(())
    }
}

fn tls_option(
    tls: &mut TlsConfig,
    word: &str,
    value: &mut dyn FnMut() -> Result<String, String>,
) -> Result<(), String> {
    match word {
        "--tls-certificate" => tls.certificate = choice(&value()?)?,
        "--tls-versions" => tls.versions = choice(&value()?)?,
        "--tls-handshake" => tls.handshake = choice(&value()?)?,
        "--tls-client-certificate" => tls.wants_certificate = true,
        "--tls-alpn" => tls.alpn = value()?.split(',').map(str::to_owned).collect(),
        "--tls-rude" => tls.ends_rudely = true,
        "--tls-dribble" => tls.dribbles = true,
        "--tls-rekey" => tls.rekeys_every = number(&value()?)?,
        _ => return Err(format!("unknown option {word}\n\n{HELP}")),
    }
    Ok(())
}

fn write_pem(dir: &str, pem: &Pem) -> std::io::Result<()> {
    let dir = std::path::Path::new(dir);
    std::fs::write(dir.join("ca.pem"), &pem.ca)?;
    std::fs::write(dir.join("client.pem"), &pem.client)?;
    std::fs::write(dir.join("client.key"), &pem.client_key)
}

/// Reads the name of a variant.
fn choice<T: FromStr + VariantNames>(name: &str) -> Result<T, String> {
    name.parse()
        .map_err(|_| format!("{name} is none of {}", T::VARIANTS.join(", ")))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

fn address(text: &str) -> Result<Ipv4Addr, String> {
    text.parse()
        .map_err(|_| format!("not an IPv4 address: {text}"))
}

fn target(text: String) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text)
    } else {
        Err(format!("a target begins with /: {text}"))
    }
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

fn list() -> Result<(), String> {
    println!("{}", bad::list());
    Ok(())
}

fn run_floor(options: Options) -> Result<(), String> {
    let port = options.config.port;
    let request = floor::request(port, options.is_post);
    let duration = Duration::from_secs_f64(options.seconds.clamp(0.0, 3600.0));
    sys::raise_descriptor_limit();
    let done = floor::run(port, options.connections, duration, &request)
        .map_err(|error| error.to_string())?;
    println!(
        "{}",
        serde_json::to_string(&done).map_err(|error| error.to_string())?
    );
    Ok(())
}

fn serve(options: Options) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    sys::raise_descriptor_limit();
    if options.ignores_stdin {
        sys::end_with_parent();
    }
    let signals = sys::termination_signals().map_err(text)?;
    let origin = Origin::start(options.config).map_err(|error| format!("cannot start: {error}"))?;
    if let (Some(dir), Some(pem)) = (&options.pem_dir, &origin.pem) {
        write_pem(dir, pem).map_err(|error| format!("cannot write into {dir}: {error}"))?;
    }
    let hello = serde_json::json!({
        "port": origin.port, "control_port": origin.control_port, "pid": std::process::id()
    });
    println!("{hello}");
    std::io::stdout().flush().map_err(text)?;

    let on_line: Option<&dyn Fn()> = if options.ignores_stdin {
        None
    } else {
        Some(&|| ())
    };
    sys::wait_for_the_end(signals.as_raw_fd(), on_line);

    if let Some(path) = options.counts {
        let counts =
            serde_json::to_string_pretty(&origin.counts()).map_err(|error| error.to_string())?;
        std::fs::write(&path, counts + "\n")
            .map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    Ok(())
}
