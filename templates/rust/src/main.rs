use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn main() -> std::io::Result<()> {
    let port = env::var("PORT").unwrap_or_else(|_| "3000".into());
    let greeting = env::var("GREETING").unwrap_or_else(|_| "Hello from Rust".into());
    let listener = TcpListener::bind(format!("0.0.0.0:{port}"))?;
    println!("listening on port {port}");
    for stream in listener.incoming() {
        let (stream, greeting) = (stream?, greeting.clone());
        thread::spawn(move || answer(stream, &greeting));
    }
    Ok(())
}

/// Reads the request's head and answers every request alike. Use a framework such as axum for more than this.
fn answer(stream: TcpStream, greeting: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    while let Some(line) = lines.next().transpose()? {
        if line.is_empty() {
            break;
        }
    }
    let body = format!("{greeting}\n");
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
