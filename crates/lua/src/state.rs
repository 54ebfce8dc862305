//! A Lua state with the table `wrk` and the script in it.

use std::time::Duration;

use mlua::{Function, Lua, Result, Table, Value};

use crate::address::{self, LastFailure};
use crate::fault::Fault;
use crate::session::Asked;

const WRK: &str = include_str!("wrk.lua");
/// Folders where distributions put modules written in Lua, besides LuaJIT's own search path.
const MORE_MODULES: &str = ";/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua";

/// A Lua state.
pub struct State {
    /// The state itself.
    pub lua: Lua,
    /// The table `wrk`.
    pub wrk: Table,
    /// The functions through which a running script is called.
    pub calls: Table,
    last_failure: LastFailure,
}

impl State {
    /// Creates the state as it is before the first phase; the script has been run.
    pub fn new(asked: &Asked) -> std::result::Result<State, Fault> {
        // SAFETY: a script is the program of the user who runs it, as under wrk: it may do all that LuaJIT can.
        let lua = unsafe { Lua::unsafe_new() };
        let (wrk, calls) = lua.load(WRK).set_name("=wrk").call::<(Table, Table)>(())?;
        let state = State {
            lua,
            wrk,
            calls,
            last_failure: LastFailure::default(),
        };
        state.prepare(asked)?;
        if let Some(path) = &asked.script {
            state.run_file(path)?;
        }
        Ok(state)
    }

    fn prepare(&self, asked: &Asked) -> Result<()> {
        let globals = self.lua.globals();
        globals.set("wrk", &self.wrk)?;
        let package: Table = globals.get("package")?;
        package.get::<Table>("loaded")?.set("wrk", &self.wrk)?;
        let path = package.get::<String>("path")?;
        package.set("path", path + MORE_MODULES)?;
        // The control plane writes to the same standard output: a line that was printed is seen at once.
        self.lua.load("io.stdout:setvbuf('line')").exec()?;
        let patience = Duration::from_nanos(asked.timeout_ns.max(1));
        address::add_to(&self.wrk, &self.lua, patience, &self.last_failure)?;
        self.wrk.set("scheme", asked.scheme.as_str())?;
        self.wrk.set("host", asked.host.as_str())?;
        self.wrk.set("port", asked.port.as_deref())?;
        self.wrk.set("path", asked.path.as_str())?;
        let headers: Table = self.wrk.get("headers")?;
        for (name, value) in &asked.headers {
            headers.set(name.as_str(), value.as_str())?;
        }
        Ok(())
    }

    /// As `luaL_dofile` does: a first line that begins with `#` is passed over.
    fn run_file(&self, path: &str) -> std::result::Result<(), Fault> {
        let loadfile: Function = self.lua.globals().get("loadfile")?;
        match loadfile.call::<(Option<Function>, Option<String>)>(path)? {
            (Some(chunk), _) => Ok(chunk.call::<()>(())?),
            (None, why) => Err(Fault::new(
                why.unwrap_or_else(|| format!("cannot load {path}")),
            )),
        }
    }

    /// A function of the table `wrk`, which a script may have replaced.
    pub fn of_wrk(&self, name: &str) -> Result<Function> {
        self.wrk.get(name)
    }

    /// A global function; none: the script has none of that name.
    pub fn global(&self, name: &str) -> Result<Option<Function>> {
        Ok(match self.lua.globals().get(name)? {
            Value::Function(function) => Some(function),
            _ => None,
        })
    }

    /// Reason why the last connect failed.
    pub fn last_failure(&self) -> String {
        let last = self.last_failure.lock().clone();
        last.unwrap_or_else(|| "it has no address".to_owned())
    }

    /// Lets go of what scripts have printed without the end of a line.
    pub fn flush(&self) -> Result<()> {
        self.lua.load("io.stdout:flush()").exec()
    }
}
