use std::io;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

type Line = BufStream<TcpStream>;

/// Client of the climate station: one line asks, one line answers.
pub struct Climate {
    port: u16,
    idle: Mutex<Vec<Line>>,
}

impl Climate {
    pub fn new(port: u16) -> Self {
        Climate { port, idle: Mutex::new(Vec::new()) }
    }

    pub async fn humidity(&self, bench: usize) -> io::Result<u8> {
        let idle = self.idle.lock().unwrap().pop();
        let mut line = match idle {
            Some(line) => line,
            None => BufStream::new(TcpStream::connect(("127.0.0.1", self.port)).await?),
        };
        line.write_all(format!("{bench}\n").as_bytes()).await?;
        line.flush().await?;
        let mut answer = String::new();
        line.read_line(&mut answer).await?;
        self.idle.lock().unwrap().push(line);
        answer.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

async fn answer(stream: TcpStream, delay: Duration) -> io::Result<()> {
    let mut line = BufStream::new(stream);
    let mut question = String::new();
    while line.read_line(&mut question).await? > 0 {
        let bench: u32 = question.trim().parse().unwrap_or(0);
        question.clear();
        tokio::time::sleep(delay).await;
        line.write_all(format!("{}\n", 55 + bench * 7 % 30).as_bytes()).await?;
        line.flush().await?;
    }
    Ok(())
}

/// Stands for the climate station.
pub fn serve_station(port: u16, delay: Duration) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime starts");
        runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("station port is free");
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, delay));
                }
            }
        })
    });
}
