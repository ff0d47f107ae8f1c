//! What of a run stands where in the JSON.
//!
//! Values that follow from others (rates, percentiles) are written for those who read the file,
//! and not read back. Fields that are not known are left alone; missing ones are errors.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::super::compare::turns::{ValueRatio, effects};
use super::super::histogram::histogram;
use super::super::{
    AgreedTls, ComparedSide, Errors, Judged, LoadKind, MeasuredTurn, Moment, Results, RunStats,
    Spread, StatusCounts, TlsStats, Turns,
};
use super::fields::{MapFields, list, named, number, text, truth, whole};
use super::{Json, WHOLE_MAX, parse};

/// What the field `format` says of this form.
const FORMAT: &str = "weir load 1";
/// And of that of two servers that took turns.
const FORMAT_OF_TURNS: &str = "weir load against 1";

/// One run as an object, several as a list of objects.
pub fn write(runs: &[Results]) -> String {
    match runs {
        [run] => format!("{}\n", run_to(run)),
        runs => {
            let runs: Vec<String> = runs.iter().map(|run| run_to(run).to_string()).collect();
            format!("[{}]\n", runs.join(",\n"))
        }
    }
}

/// Reads what [`write`] has written. An error says where in the file and what.
pub fn read(text: &[u8]) -> Result<Vec<Results>, String> {
    match parse::parse(text)? {
        Json::List(runs) => (1..)
            .zip(&runs)
            .map(|(n, run)| run_from(run).map_err(|what| format!("run {n}: {what}")))
            .collect(),
        run => Ok(vec![run_from(&run)?]),
    }
}

/// Two servers that took turns, as an object.
pub fn write_turns(turns: &Turns) -> String {
    let [a, b] = turns.sides.each_ref().map(run_to);
    let effect = |ValueRatio { name, ratio }: ValueRatio| {
        let ratio = ratio.map(|[ratio, low, high]| {
            Json::map([("ratio", ratio.into()), ("low", low.into()), ("high", high.into())])
        });
        (name.into(), ratio.into())
    };
    let all = turns.blocks.iter().zip(1_u64..);
    let all = all.flat_map(|(block, number)| block.turns.iter().map(move |turn| (turn, number)));
    let json = Json::map([
        ("format", FORMAT_OF_TURNS.into()),
        ("turn_s", turns.turn.as_secs_f64().into()),
        ("a", a),
        ("b", b),
        ("effect", Json::Map(effects(turns).map(effect).into())),
        ("turns", all.map(|(turn, number)| turn_to(turn, number)).collect()),
    ]);
    format!("{json}\n")
}

fn turn_to(turn: &MeasuredTurn, block: u64) -> Json {
    let mut json = Json::map([
        ("server", (if turn.side == ComparedSide::A { "a" } else { "b" }).into()),
        ("block", block.into()),
        ("replies_per_s", turn.rate.into()),
    ]);
    if let Json::Map(fields) = moment_to(&turn.moment) {
        fields.into_iter().for_each(|(name, value)| json.push(name, value));
    }
    json
}

fn run_to(run: &Results) -> Json {
    let tally = &run.tally;
    let mut json = Json::map([
        ("format", FORMAT.into()),
        ("urls", run.urls.iter().map(|url| url.as_str().into()).collect()),
        ("threads", run.threads.into()),
        ("connections", run.connections.into()),
        ("duration_s", run.duration.map(|time| time.as_secs_f64()).into()),
        ("pace", pace_to(run.pace)),
        ("began_unix_ms", run.began_unix_ms.into()),
        ("elapsed_s", run.elapsed.as_secs_f64().into()),
        ("interrupted", run.interrupted.into()),
        ("busiest_thread", run.busiest_thread.into()),
        ("cpu_s", run.cpu.as_secs_f64().into()),
        ("replies", tally.replies.into()),
        ("replies_per_s", run.replies_per_second().into()),
        ("bytes", tally.bytes.into()),
        ("statuses", tally.statuses.classes().into_iter().map(Json::from).collect()),
        ("status_codes", codes_to(&tally.statuses)),
        ("unsent", tally.unsent.into()),
        ("errors", Json::map(tally.errors.named().map(|(name, count)| (name, count.into())))),
        ("latency_us", histogram_to(&tally.latency_us)),
        ("lateness_us", histogram_to(&tally.lateness_us)),
        ("thread_rate", histogram_to(&tally.rate)),
        ("seconds", run.seconds.iter().map(moment_to).collect()),
    ]);
    if !tally.tls.agreed.is_empty() {
        json.push("tls", tls_to(&tally.tls));
    }
    if !run.judged.is_empty() {
        json.push("expectations", run.judged.iter().map(judged_to).collect());
    }
    json
}

fn run_from(json: &Json) -> Result<Results, String> {
    let run = MapFields::of(json).map_err(|what| what.trim_start_matches(": ").to_owned())?;
    if run.is("format", FORMAT_OF_TURNS).is_ok() {
        return Err(format!(
            ".format is \"{FORMAT_OF_TURNS}\": this file already contains a comparison, in .effect"
        ));
    }
    run.is("format", FORMAT)?;
    Ok(Results {
        urls: run.read("urls", |json| list(json, text))?,
        threads: run.read("threads", whole)?,
        connections: run.read("connections", whole)?,
        duration: run.read("duration_s", |json| match json {
            Json::Null => Ok(None),
            seconds => time(seconds).map(Some),
        })?,
        pace: run.read("pace", pace_from)?,
        began_unix_ms: run.read("began_unix_ms", whole)?,
        elapsed: run.read("elapsed_s", time)?,
        tally: RunStats {
            replies: run.read("replies", whole)?,
            bytes: run.read("bytes", whole)?,
            statuses: statuses_from(&run)?,
            latency_us: run.read("latency_us", histogram_from)?,
            rate: run.read("thread_rate", histogram_from)?,
            lateness_us: run.read("lateness_us", histogram_from)?,
            unsent: run.read("unsent", whole)?,
            errors: run.read("errors", errors_from)?,
            tls: TlsStats::default(),
        },
        seconds: run.read("seconds", |json| list(json, moment_from))?,
        cpu: run.read("cpu_s", time)?,
        busiest_thread: run.read("busiest_thread", number)?,
        interrupted: run.read("interrupted", truth)?,
        judged: Vec::new(),
    })
}

fn tls_to(tls: &TlsStats) -> Json {
    let agreed = |agreed: &AgreedTls| {
        Json::map([
            ("what", agreed.what.as_str().into()),
            ("full", agreed.full.into()),
            ("resumed", agreed.resumed.into()),
        ])
    };
    Json::map([
        ("agreed", tls.agreed.iter().map(agreed).collect()),
        ("connect_us", histogram_to(&tls.connect_us)),
    ])
}

fn judged_to(judged: &Judged) -> Json {
    Json::map([
        ("expectation", judged.expectation.as_str().into()),
        ("kept", judged.kept.into()),
        ("measured", judged.measured.into()),
    ])
}

fn codes_to(statuses: &StatusCounts) -> Json {
    let code = |(status, count): &(u16, u64)| (status.to_string().into(), (*count).into());
    Json::Map(statuses.codes().iter().map(code).collect())
}

/// Files of the first version have classes alone.
fn statuses_from(run: &MapFields<'_>) -> Result<StatusCounts, String> {
    let mut statuses = StatusCounts::default();
    let codes = run.optional("status_codes", |json| {
        named(json, |name, count| {
            let status = name.parse::<u16>().ok().filter(|code| (1..=999).contains(code));
            // Only as it is written, so that none is there twice.
            let status = status.filter(|status| status.to_string() == name);
            let status = status.ok_or_else(|| ": expected a status".to_owned())?;
            Ok((status, whole(count)?))
        })
    })?;
    for (status, count) in codes.unwrap_or_default() {
        statuses.add(status, count);
    }
    let classes: [u64; 6] = run.read("statuses", |json| {
        list(json, whole)?.try_into().map_err(|_| ": expected six numbers".to_owned())
    })?;
    for ((class, all), known) in (0..).zip(classes).zip(statuses.classes()) {
        let rest = all.checked_sub(known);
        let rest =
            rest.ok_or_else(|| ".status_codes: more responses than in .statuses".to_owned())?;
        statuses.add_class(class, rest);
    }
    Ok(statuses)
}

fn pace_to(pace: LoadKind) -> Json {
    match pace {
        LoadKind::Closed => "closed".into(),
        LoadKind::Open { from, to } => Json::map([("from", from.into()), ("to", to.into())]),
    }
}

fn pace_from(json: &Json) -> Result<LoadKind, String> {
    if *json == Json::from("closed") {
        return Ok(LoadKind::Closed);
    }
    let rates = MapFields::of(json).map_err(|_| " is neither \"closed\" nor a map".to_owned())?;
    Ok(LoadKind::Open { from: rates.read("from", number)?, to: rates.read("to", number)? })
}

fn errors_from(json: &Json) -> Result<Errors, String> {
    let fields = MapFields::of(json)?;
    let mut errors = Errors::default();
    for (name, count) in errors.named_mut() {
        *count = match name {
            // Older files lack it.
            "handshake" => fields.optional(name, whole)?.unwrap_or_default(),
            _ => fields.read(name, whole)?,
        };
    }
    Ok(errors)
}

fn histogram_to(histogram: &Histogram<u64>) -> Json {
    let Spread { mean, stdev, .. } = Spread::of(histogram);
    let at = |quantile| histogram.value_at_quantile(quantile).into();
    let pair = |value: u64, count: u64| [value, count].into_iter().map(Json::from).collect();
    let counts = histogram.iter_recorded();
    Json::map([
        ("mean", mean.into()),
        ("stdev", stdev.into()),
        ("p50", at(0.5)),
        ("p75", at(0.75)),
        ("p90", at(0.9)),
        ("p99", at(0.99)),
        ("p99.9", at(0.999)),
        ("p99.99", at(0.9999)),
        ("max", histogram.max().into()),
        (
            "counts",
            counts.map(|step| pair(step.value_iterated_to(), step.count_at_value())).collect(),
        ),
    ])
}

fn histogram_from(json: &Json) -> Result<Histogram<u64>, String> {
    let mut histogram = histogram();
    let counts =
        MapFields::of(json)?.read("counts", |json| list(json, |json| list(json, whole)))?;
    for pair in counts {
        let [value, count] = pair[..] else {
            return Err(".counts: expected [value, count]".to_owned());
        };
        if count == 0 || histogram.len() + count > WHOLE_MAX {
            return Err(".counts: invalid count".to_owned());
        }
        histogram.record_n(value, count).map_err(|error| format!(".counts: {error}"))?;
    }
    Ok(histogram)
}

fn moment_to(moment: &Moment) -> Json {
    Json::map([
        ("at", moment.at.into()),
        ("replies", moment.replies.into()),
        ("errors", moment.errors.into()),
        ("mean_us", moment.mean_us.into()),
        ("p50_us", moment.p50_us.into()),
        ("p99_us", moment.p99_us.into()),
        ("max_us", moment.max_us.into()),
    ])
}

fn moment_from(json: &Json) -> Result<Moment, String> {
    let moment = MapFields::of(json)?;
    Ok(Moment {
        at: moment.read("at", number)?,
        replies: moment.read("replies", whole)?,
        errors: moment.read("errors", whole)?,
        mean_us: moment.read("mean_us", number)?,
        p50_us: moment.read("p50_us", whole)?,
        p99_us: moment.read("p99_us", whole)?,
        max_us: moment.read("max_us", whole)?,
        packed: Vec::new(),
    })
}

fn time(json: &Json) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(json)?).map_err(|_| " is too long".to_owned())
}

#[cfg(test)]
mod tests;
