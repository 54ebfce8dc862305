//! Values on their way from one Lua state to another: booleans, nil, numbers, strings, and tables of these.

use mlua::{Error, Lua, Result, Value};

/// Tables within tables; one that holds itself would have no end.
const DEEPEST: usize = 64;

/// A copy of `value` for the state `to`.
pub fn copy(value: &Value, to: &Lua) -> Result<Value> {
    copy_at(value, to, 0)
}

fn copy_at(value: &Value, to: &Lua, depth: usize) -> Result<Value> {
    match value {
        Value::Nil => Ok(Value::Nil),
        Value::Boolean(value) => Ok(Value::Boolean(*value)),
        Value::Integer(value) => Ok(Value::Integer(*value)),
        Value::Number(value) => Ok(Value::Number(*value)),
        Value::String(text) => to.create_string(&*text.as_bytes()).map(Value::String),
        Value::Table(_) if depth == DEEPEST => Err(Error::runtime(format!(
            "cannot transfer a table of more than {DEEPEST} levels to thread"
        ))),
        Value::Table(table) => {
            let copied = to.create_table()?;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                let key = copy_at(&key, to, depth + 1)?;
                copied.raw_set(key, copy_at(&value, to, depth + 1)?)?;
            }
            Ok(Value::Table(copied))
        }
        other => Err(Error::runtime(format!(
            "cannot transfer '{}' to thread",
            other.type_name()
        ))),
    }
}
