//! `done(summary, latency, requests)`, and the last two of its arguments.

use hdrhistogram::Histogram;
use mlua::{
    Function, Lua, MetaMethod, Result, Table, UserData, UserDataFields, UserDataMethods, Value,
};

use super::error::{kind, refuse};
use crate::script::ScriptSummary;

/// Calls the script's `done`.
pub(super) fn done(
    lua: &Lua,
    summary: &ScriptSummary,
    latency: &Histogram<u64>,
    requests: &Histogram<u64>,
) -> Result<()> {
    let done: Function = lua.globals().raw_get("done")?;
    done.call((table(lua, summary)?, Statistics::of(latency), Statistics::of(requests)))
}

fn table(lua: &Lua, summary: &ScriptSummary) -> Result<Table> {
    let number = |count: u64| count as f64;
    let errors = lua.create_table_from([
        ("connect", number(summary.connect)),
        ("read", number(summary.read)),
        ("write", number(summary.write)),
        ("status", number(summary.status)),
        ("timeout", number(summary.timeout)),
    ])?;
    let table = lua.create_table_from([
        ("duration", number(summary.duration.as_micros() as u64)),
        ("requests", number(summary.requests)),
        ("bytes", number(summary.bytes)),
    ])?;
    table.raw_set("errors", errors)?;
    Ok(table)
}

/// A histogram as scripts hold it.
struct Statistics {
    histogram: Histogram<u64>,
    /// Each value that was seen, and how often.
    values: Vec<(u64, u64)>,
}

impl Statistics {
    fn of(histogram: &Histogram<u64>) -> Self {
        let values = histogram.iter_recorded();
        let values = values.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        Self { histogram: histogram.clone(), values }
    }

    /// wrk's is that of a sample; the histogram's is that of a population.
    fn stdev(&self) -> f64 {
        match self.histogram.len() {
            0 | 1 => 0.0,
            count => self.histogram.stdev() * (count as f64 / (count - 1) as f64).sqrt(),
        }
    }

    fn percentile(&self, percentile: f64) -> u64 {
        match self.histogram.is_empty() {
            true => 0,
            false => self.histogram.value_at_quantile((percentile / 100.0).clamp(0.0, 1.0)),
        }
    }

    /// The value at a place, from 1 on, and how often it was seen.
    fn at(&self, index: f64) -> (u64, u64) {
        let place = (index >= 1.0).then(|| index as usize - 1);
        place.and_then(|place| self.values.get(place)).copied().unwrap_or_default()
    }
}

impl UserData for Statistics {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.histogram.min() as f64));
        fields.add_field_method_get("max", |_, this| Ok(this.histogram.max() as f64));
        fields.add_field_method_get("mean", |_, this| Ok(this.histogram.mean()));
        fields.add_field_method_get("stdev", |_, this| Ok(this.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |lua, this, percentile: Value| {
            Ok(this.percentile(number(lua, "percentile", percentile)?) as f64)
        });
        methods.add_meta_method(MetaMethod::Call, |lua, this, index: Value| {
            let (value, count) = this.at(number(lua, "index", index)?);
            Ok((value as f64, count as f64))
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.values.len()));
    }
}

fn number(lua: &Lua, what: &str, value: Value) -> Result<f64> {
    let wrong = kind(&value);
    lua.coerce_number(value)?.ok_or_else(|| refuse(format!("the {what} is {wrong}, not a number")))
}
