//! `weir top`: the state of a running server in a terminal, from the same data as the dashboard.
//!
//! ```text
//! source: URL -> JSON -> growth: two snapshots -> figures: rows and rates -> view: lines
//!                                       screen: keys, size, signals, one view after the other
//! ```
//!
//! It reads the tree of Weir and of Angie as it is; NGINX Plus's is brought into the same form.

mod amounts;
mod arguments;
mod figures;
mod growth;
mod keys;
mod plus;
mod rows;
mod screen;
mod source;
#[cfg(test)]
mod tests;
mod view;
mod warnings;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::messages::{Reported, code, complain, print};
use arguments::TopArguments;
use figures::TopFigures;
use growth::TopSnapshot;
use source::TopSource;
use view::TopView;

pub use amounts::span;
pub use arguments::HELP;

pub fn run(words: &[OsString]) -> ExitCode {
    let arguments = match TopArguments::parse(words) {
        Ok(arguments) => arguments,
        Err(Reported) => return ExitCode::FAILURE,
    };
    let source = match TopSource::new(&arguments) {
        Ok(source) => source,
        Err(why) => return code(Err(complain(format_args!("top: {why}")))),
    };
    if arguments.once {
        return code(print_once(source, &arguments));
    }
    screen::run(source, &arguments).unwrap_or_else(|why| {
        complain(format_args!("top: {why}"));
        ExitCode::FAILURE
    })
}

/// Prints what two snapshots say.
fn print_once(mut source: TopSource, arguments: &TopArguments) -> Result<(), Reported> {
    let delay = arguments.delay;
    let two = net::run(async move {
        let first = TopSnapshot::of(source.fetch().await?);
        net::sleep(delay).await;
        Ok::<_, String>([first, TopSnapshot::of(source.fetch().await?)])
    });
    let two = two.map_err(|error| error.to_string()).and_then(|two| two);
    let [first, second] = two.map_err(|why| complain(format_args!("top: {why}")))?;
    let figures = TopFigures::new(&second, Some(&first));
    print(TopView::plain(&figures))
}
