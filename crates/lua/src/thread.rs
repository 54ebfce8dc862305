//! A thread as scripts see it: `wrk.thread` in its own state, the argument of `setup` in the main one.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use mlua::{Error, Lua, Result, UserData, UserDataFields, UserDataMethods, Value};
use parking_lot::Mutex;

use crate::address::{address_in, Address};
use crate::transfer::copy;

/// State that the two sides of a thread share.
#[derive(Debug, Default)]
pub struct Shared {
    address: Mutex<Option<SocketAddr>>,
    is_running: AtomicBool,
    is_stopped: AtomicBool,
}

impl Shared {
    /// Address that it connects to.
    pub fn address(&self) -> Option<SocketAddr> {
        *self.address.lock()
    }

    /// The running phase begins or ends.
    pub fn set_running(&self, is_running: bool) {
        self.is_running.store(is_running, Ordering::Relaxed);
    }

    /// True if the script has asked for the end of the thread.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// One thread in the hands of a script.
pub struct Thread {
    shared: Arc<Shared>,
    /// The state of the thread; none: the one that asks.
    state: Option<Lua>,
}

impl Thread {
    /// The thread as its own state sees it.
    pub fn own(shared: &Arc<Shared>) -> Thread {
        Thread {
            shared: shared.clone(),
            state: None,
        }
    }

    /// The thread as the main state sees it.
    pub fn of(shared: &Arc<Shared>, state: &Lua) -> Thread {
        Thread {
            shared: shared.clone(),
            state: Some(state.clone()),
        }
    }

    fn global(&self, lua: &Lua, name: &mlua::String) -> Result<Value> {
        match &self.state {
            None => lua.globals().get(name),
            Some(state) => {
                let name = state.create_string(&*name.as_bytes())?;
                copy(&state.globals().get(name)?, lua)
            }
        }
    }

    fn set_global(&self, lua: &Lua, name: &mlua::String, value: &Value) -> Result<()> {
        let state = self.state.as_ref().unwrap_or(lua);
        let name = state.create_string(&*name.as_bytes())?;
        state.globals().set(name, copy(value, state)?)
    }
}

impl UserData for Thread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, this| Ok(this.shared.address().map(Address)));
        fields.add_field_method_set("addr", |_, this, address: Value| {
            if this.shared.is_running.load(Ordering::Relaxed) {
                let what =
                    "thread.addr cannot be set once requests are sent: set it in setup or init";
                return Err(Error::runtime(what));
            }
            let address = match address {
                Value::Nil => None,
                given => Some(address_in(&given)?),
            };
            *this.shared.address.lock() = address;
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: mlua::String| {
            this.global(lua, &name)
        });
        methods.add_method("set", |lua, this, (name, value): (mlua::String, Value)| {
            this.set_global(lua, &name, &value)
        });
        // As in wrk it means something only while requests are sent.
        methods.add_method("stop", |_, this, ()| {
            if this.shared.is_running.load(Ordering::Relaxed) {
                this.shared.is_stopped.store(true, Ordering::Relaxed);
            }
            Ok(())
        });
    }
}
