use crate::testing::{refusal, site};

#[test]
fn values_are_checked_as_in_nginx() {
    let table = [
        ("http2_chunk_size 0;", "the http2 chunk size cannot be zero"),
        ("http2_body_preread_size 2g;", "\"http2_body_preread_size\" directive invalid value"),
        ("http2_body_preread_size 2048m;", "the maximum body preread buffer size is 2147483647"),
        ("http2_recv_buffer_size 16;", "\"http2_recv_buffer_size\" directive value is too small"),
        (
            "http2_streams_index_size 3;",
            "\"http2_streams_index_size\" directive must be a power of two",
        ),
        ("http2_pool_size 16;", "the pool size must be no less than 112"),
    ];
    for (line, expected) in table {
        assert_eq!(refusal(line).trim_end_matches(":1"), expected, "{line}");
    }
}

#[test]
fn variable_http2_is_empty_over_http_1() {
    let site = site("http2 on; server { return 200 \"[$http2]\"; }");
    assert_eq!(site.get("/").body(), "[]");
}
