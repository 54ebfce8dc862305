//! Addresses as scripts see them: found by name, tried, printed.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use mlua::{Error, Lua, MetaMethod, Result, Table, UserData, UserDataMethods, Value};
use parking_lot::Mutex;

/// An address of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // As wrk writes it: without brackets around IPv6.
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| {
            Ok(format!("{}:{}", this.0.ip(), this.0.port()))
        });
    }
}

/// The address in a value that a script gives.
pub fn address_in(value: &Value) -> Result<SocketAddr> {
    let address = value
        .as_userdata()
        .and_then(|value| value.borrow::<Address>().ok());
    address.map(|address| address.0).ok_or_else(|| {
        Error::runtime("not an address: wrk.lookup(host, service) and wrk.addrs have them")
    })
}

/// Reason why the last connect that a script tried failed.
pub type LastFailure = Arc<Mutex<Option<String>>>;

/// Puts `lookup` and `connect` into the table `wrk`.
pub fn add_to(wrk: &Table, lua: &Lua, patience: Duration, last: &LastFailure) -> Result<()> {
    let lookup = lua.create_function(|lua, (host, service): (String, Value)| {
        let addresses = look_up(&host, &service)?;
        let addresses = addresses.into_iter().map(Address);
        lua.create_sequence_from(addresses)
    })?;
    let last = last.clone();
    let connect = lua.create_function(move |_, address: Value| {
        let tried = TcpStream::connect_timeout(&address_in(&address)?, patience);
        let failure = tried.err().map(|error| error.to_string());
        let stands = failure.is_none();
        *last.lock() = failure;
        Ok(stands)
    })?;
    wrk.set("lookup", lookup)?;
    wrk.set("connect", connect)
}

fn look_up(host: &str, service: &Value) -> Result<Vec<SocketAddr>> {
    let service = match service {
        Value::Nil => "http".to_owned(),
        other => other.to_string()?,
    };
    let port = match service.as_str() {
        "http" => 80,
        "https" => 443,
        number => number.parse().map_err(|_| {
            Error::runtime(format!(
                "unable to resolve {host}:{service}: a service is http, https or a port"
            ))
        })?,
    };
    let resolved = (host, port).to_socket_addrs();
    let resolved = resolved
        .map_err(|error| Error::runtime(format!("unable to resolve {host}:{service}: {error}")))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in resolved {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
