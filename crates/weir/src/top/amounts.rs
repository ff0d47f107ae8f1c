//! Numbers for people.

const NONE: &str = "-";

pub(super) fn count(n: Option<f64>) -> String {
    let Some(mut n) = n else { return NONE.to_owned() };
    if n < 10.0 && n.fract() != 0.0 {
        return format!("{n:.1}");
    }
    if n < 9999.5 {
        return format!("{n:.0}");
    }
    let mut unit = "";
    for next in ["k", "M", "G", "T"] {
        n /= 1000.0;
        unit = next;
        if n < 999.5 {
            break;
        }
    }
    if n < 99.95 { format!("{n:.1}{unit}") } else { format!("{n:.0}{unit}") }
}

pub(super) fn bytes(n: Option<f64>) -> String {
    match n {
        Some(n) if n < 9999.5 => format!("{n:.0}B"),
        n => format!("{}B", count(n)).replace("-B", NONE),
    }
}

pub(super) fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return NONE.to_owned() };
    if seconds >= 60.0 {
        return "60s+".to_owned();
    }
    let (n, unit) = match seconds {
        _ if seconds < 0.9995e-3 => (seconds * 1e6, "us"),
        _ if seconds < 0.9995 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = if n < 9.995 { 2 } else { usize::from(n < 99.95) };
    format!("{n:.digits$}{unit}")
}

pub(super) fn percent(share: Option<f64>) -> String {
    match share {
        None => NONE.to_owned(),
        Some(share) if share > 0.0 && share < 0.0995 => format!("{:.1}%", share * 100.0),
        Some(share) => format!("{:.0}%", share * 100.0),
    }
}

pub fn span(ms: f64) -> String {
    let seconds = (ms / 1000.0).max(0.0);
    match seconds {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        _ if seconds < 90.0 * 60.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 36.0 * 3600.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} days", seconds / 86400.0),
    }
}
