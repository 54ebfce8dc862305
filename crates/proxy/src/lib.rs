//! The fault proxy: it sits in front of a service (or between two) and delays, breaks or admits requests as its
//! settings say, by chance with a seed. Its own counts are served on a separate port.
//!
//! HTTP/1.1 on one thread and one epoll: heads are passed on byte for byte but for the fields of one
//! connection, bodies as they are, and what the service does wrong arrives as it was. A general HTTP library
//! would repair much of that, and could not break an answer off in its middle.

mod admission;
mod answers;
mod connection;
mod counts;
mod draws;
mod exchange;
mod head;
mod pace;
pub mod settings;
mod wire;
mod worker;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

pub use settings::Settings;

use loadlens_sys as sys;
use worker::Worker;

/// A proxy whose ports are bound; it serves no client until [`Proxy::serve`].
pub struct Proxy {
    settings: Settings,
    listener: OwnedFd,
    control: OwnedFd,
    /// The port that clients come to.
    pub port: u16,
    /// Port on which its counts are read.
    pub control_port: u16,
}

/// A port that cannot be had.
#[derive(Debug)]
pub struct PortTaken {
    /// Address that it was to listen on.
    pub address: SocketAddrV4,
    /// Error of the system.
    pub error: io::Error,
}

impl std::fmt::Display for PortTaken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "cannot listen on {}: {}", self.address, self.error)
    }
}

impl Proxy {
    /// Takes the ports.
    pub fn bind(settings: Settings) -> Result<Proxy, PortTaken> {
        let listen = |address: SocketAddrV4| {
            let bound = sys::bind(address).and_then(|(socket, port)| {
                sys::listen(socket.as_raw_fd(), 4096)?;
                Ok((socket, port))
            });
            bound.map_err(|error| PortTaken { address, error })
        };
        let (listener, port) = listen(settings.listen)?;
        let (control, control_port) = listen(settings.control)?;
        Ok(Proxy {
            settings,
            listener,
            control,
            port,
            control_port,
        })
    }

    /// Serves on this thread until one of `ends` can be read or is closed.
    pub fn serve(self, ends: &[RawFd]) -> io::Result<()> {
        sys::raise_descriptor_limit();
        Worker::new(self.settings, self.listener, self.control)?.run(ends)
    }
}
