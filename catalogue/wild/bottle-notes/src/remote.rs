use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

type Line = BufStream<TcpStream>;

/// A remote desk that is asked with one line and answers with one line.
pub struct Desk {
    port: u16,
    idle: Mutex<Vec<Line>>,
}

impl Desk {
    pub fn new(port: u16) -> Self {
        Desk { port, idle: Mutex::new(Vec::new()) }
    }

    pub async fn ask(&self, question: &str) -> io::Result<String> {
        let idle = self.idle.lock().unwrap().pop();
        let mut line = match idle {
            Some(line) => line,
            None => BufStream::new(TcpStream::connect(("127.0.0.1", self.port)).await?),
        };
        line.write_all(format!("{question}\n").as_bytes()).await?;
        line.flush().await?;
        let mut answer = String::new();
        if line.read_line(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.idle.lock().unwrap().push(line);
        Ok(answer.trim_end().to_owned())
    }
}

async fn serve(stream: TcpStream, seats: Arc<Semaphore>, delay: Duration, reply: fn(&str) -> String) -> io::Result<()> {
    let mut line = BufStream::new(stream);
    let mut question = String::new();
    while line.read_line(&mut question).await? > 0 {
        let seat = seats.acquire().await.expect("never closed");
        tokio::time::sleep(delay).await;
        drop(seat);
        line.write_all(format!("{}\n", reply(question.trim_end())).as_bytes()).await?;
        line.flush().await?;
        question.clear();
    }
    Ok(())
}

/// Stands for a remote desk.
pub fn stand_in(port: u16, seats: usize, delay: Duration, reply: fn(&str) -> String) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime starts");
        runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("port is free");
            let seats = Arc::new(Semaphore::new(seats));
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, seats.clone(), delay, reply));
                }
            }
        })
    });
}

pub fn note_of(wine: &str) -> String {
    const FRUIT: [&str; 6] = ["black cherry", "quince", "blackcurrant", "lemon peel", "plum", "gooseberry"];
    const FINISH: [&str; 5] = ["firm tannins", "a long mineral finish", "soft oak", "a hint of clove", "fresh acidity"];
    let number: usize = wine.parse().unwrap_or(0);
    format!("{}, {}", FRUIT[number % FRUIT.len()], FINISH[number / 7 % FINISH.len()])
}

pub fn bin_of(wine: &str) -> String {
    let number: usize = wine.parse().unwrap_or(0);
    format!("{}-{}", (b'A' + (number % 14) as u8) as char, number / 14 + 1)
}
