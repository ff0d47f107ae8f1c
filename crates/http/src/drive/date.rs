//! The date of replies.

use std::cell::RefCell;

/// Calls `take` with the text of the `Date` field, which is formatted once a second.
pub(crate) fn with_date<T>(take: impl FnOnce(&[u8]) -> T) -> T {
    DATE.with_borrow_mut(|date| {
        let second = net::clock::unix_ms() / 1000;
        if date.second != second {
            *date = DateText { second, text: wire::date::http(second as i64) };
        }
        take(&date.text)
    })
}

thread_local! {
    static DATE: RefCell<DateText> = const { RefCell::new(DateText { second: 0, text: [0; 29] }) };
}

struct DateText {
    second: u64,
    text: [u8; 29],
}
