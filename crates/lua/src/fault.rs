//! Fault of a script, in one line: where, and Lua's message. No stack traceback.

use std::fmt;

use mlua::{Error, Function};

/// A fault of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not load, or fails.
    Script(String),
    /// Nothing takes a connection where it is to go.
    Unreachable(String),
}

impl Fault {
    /// A fault of the script itself.
    pub fn new(what: impl Into<String>) -> Fault {
        Fault::Script(what.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Script(what) | Fault::Unreachable(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Script(words(&error))
    }
}

/// Lua's message, without the traceback.
fn words(error: &Error) -> String {
    match error {
        Error::RuntimeError(text) => first_part(text).to_owned(),
        Error::SyntaxError { message, .. } => first_part(message).to_owned(),
        Error::MemoryError(text) => format!("Lua has no memory left: {}", first_part(text)),
        // Raised by one of our functions, which know no line: the first place in a script that the traceback names.
        Error::CallbackError { traceback, cause } => {
            let place = place_in(traceback).map_or_else(String::new, |place| format!("{place}: "));
            format!("{place}{}", words(cause))
        }
        Error::WithContext { cause, .. } => words(cause),
        other => first_part(&other.to_string()).to_owned(),
    }
}

fn first_part(text: &str) -> &str {
    let end = text.find("\nstack traceback:").unwrap_or(text.len());
    text[..end].trim_end()
}

/// `FILE:LINE` of the innermost function in a traceback that is one of a script.
fn place_in(traceback: &str) -> Option<&str> {
    traceback.lines().map(str::trim).find_map(|line| {
        let (file, rest) = line.split_once(':')?;
        let digits = rest.split(':').next()?;
        let is_line = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_ours = file == "wrk" || file.starts_with("__mlua") || file.starts_with('[');
        let is_script = is_line && !is_ours;
        is_script.then(|| &line[..file.len() + 1 + digits.len()])
    })
}

/// A global function as messages name it: where it is defined, and its name.
pub fn name_of(function: &Function, name: &str) -> String {
    let info = function.info();
    match (info.short_src, info.line_defined) {
        (Some(file), Some(line)) => format!("{file}:{line}: {name}()"),
        _ => format!("{name}()"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_its_place() {
        let lua = mlua::Lua::new();
        let run = |text: &str| -> String {
            let chunk = lua.load(text).set_name("@a/b.lua");
            Fault::from(chunk.exec().unwrap_err()).to_string()
        };
        let fails = lua.create_function(|_, ()| -> mlua::Result<()> {
            Err(Error::runtime("no such address"))
        });
        lua.globals().set("fails", fails.unwrap()).unwrap();

        assert_eq!(
            run("local x = 1\nx()"),
            "a/b.lua:2: attempt to call local 'x' (a number value)"
        );
        assert_eq!(run("\n\nerror('as I like')"), "a/b.lua:3: as I like");
        assert_eq!(run("x = = 1"), "a/b.lua:1: unexpected symbol near '='");
        assert_eq!(
            run("local function f()\n  fails()\nend\nf()"),
            "a/b.lua:2: no such address"
        );
    }
}
