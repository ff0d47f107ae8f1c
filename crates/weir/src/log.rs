//! Macros for messages to the main log.

/// The configuration, or something that the server needs, cannot be used.
macro_rules! emerg {
    ($($text:tt)*) => { observe::log(observe::Level::Emerg, format_args!($($text)*)) };
}

/// Something happened that must not happen.
macro_rules! alert {
    ($($text:tt)*) => { observe::log(observe::Level::Alert, format_args!($($text)*)) };
}

/// An event of normal operation.
macro_rules! notice {
    ($($text:tt)*) => { observe::log(observe::Level::Notice, format_args!($($text)*)) };
}

pub(crate) use {alert, emerg, notice};

/// Logs panics. A panic ends only the task that panicked, usually one connection.
pub fn panics_are_alerts() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("panicked");
        alert!("{what}, in {place}");
    }));
}
