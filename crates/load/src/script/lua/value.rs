//! Values on their way from one Lua state to another.

use mlua::{Lua, Result, Table};

use super::error::{kind, refuse};
use crate::script::LuaValue;

/// Tables in tables. One that contains itself has no end.
const DEPTH_MAX: usize = 100;

/// Values in a table, its keys and all tables in it included.
const VALUES_MAX: usize = 1 << 20;

/// A value out of a state.
pub(super) fn from_lua(value: mlua::Value) -> Result<LuaValue> {
    Copy { values: 0 }.value(value, 0)
}

struct Copy {
    values: usize,
}

impl Copy {
    fn value(&mut self, value: mlua::Value, depth: usize) -> Result<LuaValue> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(refuse(format!(
                "a table with more than {VALUES_MAX} values cannot be passed between threads"
            )));
        }
        Ok(match value {
            mlua::Value::Nil => LuaValue::Nil,
            mlua::Value::Boolean(value) => LuaValue::Boolean(value),
            mlua::Value::Integer(value) => LuaValue::Number(value as f64),
            mlua::Value::Number(value) => LuaValue::Number(value),
            mlua::Value::String(value) => LuaValue::String(value.as_bytes().to_vec()),
            mlua::Value::Table(table) => self.table(&table, depth)?,
            other => {
                let what =
                    "between threads; only nil, booleans, numbers, strings and tables of them can";
                return Err(refuse(format!("{} cannot be passed {what}", kind(&other))));
            }
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<LuaValue> {
        if depth == DEPTH_MAX {
            let why = "or one that contains itself";
            return Err(refuse(format!(
                "a table nested {DEPTH_MAX} levels deep, {why}, cannot be passed between threads"
            )));
        }
        let mut entries = Vec::new();
        table.for_each(|key, value| {
            entries.push((self.value(key, depth + 1)?, self.value(value, depth + 1)?));
            Ok(())
        })?;
        Ok(LuaValue::Table(entries))
    }
}

pub(super) fn into_lua(lua: &Lua, value: &LuaValue) -> Result<mlua::Value> {
    Ok(match value {
        LuaValue::Nil => mlua::Value::Nil,
        LuaValue::Boolean(value) => mlua::Value::Boolean(*value),
        LuaValue::Number(value) => mlua::Value::Number(*value),
        LuaValue::String(bytes) => mlua::Value::String(lua.create_string(bytes)?),
        LuaValue::Table(entries) => {
            let table = lua.create_table()?;
            for (key, value) in entries {
                table.raw_set(into_lua(lua, key)?, into_lua(lua, value)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}
