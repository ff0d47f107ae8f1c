//! Short words for messages to the main log.

/// The configuration, or something the server cannot do without, cannot be used.
macro_rules! emerg {
    ($($text:tt)*) => { observe::log(observe::Level::Emerg, format_args!($($text)*)) };
}

/// Something that must not happen did.
macro_rules! alert {
    ($($text:tt)*) => { observe::log(observe::Level::Alert, format_args!($($text)*)) };
}

/// Something to know of although all is well.
macro_rules! notice {
    ($($text:tt)*) => { observe::log(observe::Level::Notice, format_args!($($text)*)) };
}

pub(crate) use {alert, emerg, notice};

/// A panic costs what panicked, and a line here: most often one connection.
pub fn panics_are_alerts() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("panicked");
        alert!("{what}, in {place}");
    }));
}
