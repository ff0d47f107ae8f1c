//! An exchange is reused for one request after another: no request may see state of an earlier one.

use std::fmt::Write as _;

use crate::testing::{TestAnswer, TestSite, site};

const SITE: &str = r#"
    log_format all '$status $request $uri $args $is_args $host $http_x $content_type $document_root
        $request_filename $body_bytes_sent $limit_rate $remote_user $sent_http_x_a
        $sent_http_location $sent_http_content_type $upstream_status $upstream_addr $gzip_ratio
        $realip_remote_addr $remote_addr $invalid_referer $secure_link $request_completion $named
        $v $m $x $cookie_c $arg_a $request_body $https $request_id_is_there';
    map $request_id $request_id_is_there { "" no; default yes; }
    map $uri $m { ~^/map/(?<named>.*)$ $1; default none; }
    charset_map koi8-r utf-8 { C1 D0B0; }
    default_type text/plain;
    server {
        access_log main all;
        listen 80;
        set $v server;
        set $x "";
        if ($arg_x) { set $x $arg_x; }
        error_page 404 /missing.html;
        error_page 410 = @gone;
        add_header X-A "$v $m" always;
        location / { }
        location /return { return 200 "$uri $1"; }
        location /map/ { set $v $m; return 200 $named; }
        location ~ ^/r/(\d+)(.*)$ { rewrite ^/r/(.*)$ /map/$1?b=1 last; }
        location /break { rewrite ^/break(.*)$ /a.txt$1 break; }
        location /gone { return 410; }
        location @gone { add_trailer X-T "$status $v"; return 200 gone; }
        location /try { try_files $uri/none @gone; }
        location /internal { internal; return 200 inside; }
        location /private { auth_basic closed; auth_basic_user_file /dev/null; }
        location /denied { deny all; satisfy any; auth_basic off; }
        location /limited { limit_except GET { deny all; } return 204; }
        location /z/ { alias html/; gzip on; gzip_types *; gzip_min_length 0; }
        location /koi.txt { charset utf-8; source_charset koi8-r; expires epoch; limit_rate 1k; }
        location /real {
            set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; return 200 $remote_addr; }
        location /refer { valid_referers none e.example; return 200 "<$invalid_referer>"; }
        location /link {
            secure_link $arg_md5,$arg_e; secure_link_md5 $uri; return 200 "<$secure_link>"; }
        location /auth { auth_request /limited; auth_request_set $v $upstream_status; }
        location /proxy { proxy_pass http://127.0.0.1:1; error_page 502 = /return; }
        location /redirect { return 302 /elsewhere; }
        location /drop { return 444; }
        location /list/ { autoindex on; }
        location /ranges { max_ranges 0; }
        location /edited {
            more_set_input_headers 'X: edited $arg_x' 'Host: edited.example';
            more_clear_input_headers Cookie;
            more_set_headers 'Server: s' 'Date: d'; more_clear_headers Content-Length;
            try_files /a.txt =404; }
    }
    server { listen 80; server_name other.example; access_log main all; return 200 "$host $v"; }
"#;

/// Requests, each as a line of a method, a target and fields.
const REQUESTS: &[&str] = &[
    "GET /",
    "HEAD /a.txt",
    "GET /a.txt|Range: bytes=0-2",
    "GET /a.txt|Range: bytes=90-",
    "GET /a.txt|If-None-Match: *",
    "GET /a.txt|If-Match: \"x\"",
    "GET /a.txt?a=1&x=2|Cookie: c=d",
    "GET /z/a.txt|Accept-Encoding: gzip",
    "GET /koi.txt",
    "GET /none|X: y",
    "GET /return/x?a",
    "GET /map/abc",
    "GET /r/12/x?a=b",
    "GET /break",
    "GET /gone|Connection: TE",
    "GET /try",
    "GET /internal",
    "GET /private|Authorization: Basic dTpx",
    "GET /denied",
    "POST /limited",
    "DELETE /a.txt",
    "GET /real|X-Real-IP: 10.1.2.3",
    "GET /refer|Referer: http://other.example/",
    "GET /link?md5=x,1",
    "GET /auth",
    "GET /proxy?a=2",
    "GET /redirect",
    "GET /drop",
    "GET /list/",
    "GET /list",
    "GET /ranges|Range: bytes=0-1",
    "GET /edited?x=1|Cookie: c=d",
    "GET /%2e%2e/%2e%2e",
    "GET http://other.example/|Content-Type: a/b",
];

fn head(request: &str) -> String {
    let (line, fields) = request.split_once('|').unwrap_or((request, ""));
    format!(
        "{line} HTTP/1.1\nHost: localhost\n{fields}{}\n",
        if fields.is_empty() { "" } else { "\n" }
    )
}

/// Everything visible of an answer and of its log lines.
fn seen(answer: &TestAnswer, site: &TestSite) -> String {
    let mut seen = format!("{} {:?}\n", answer.status(), answer.head());
    let log = site.log("main");
    let last = log.lines().last().unwrap_or_default();
    write!(seen, "{:?} {:?}\n{last}", answer.bytes(), answer.trailers()).unwrap();
    seen
}

#[test]
fn the_next_request_of_an_exchange_sees_nothing_of_the_last() {
    let site = site(SITE);
    site.open_logs();
    site.file("a.txt", "some text, some text");
    site.file("koi.txt", b"a\xc1");
    site.file("missing.html", "missing");
    site.file("list/b.txt", "");
    let alone: Vec<String> =
        REQUESTS.iter().map(|request| seen(&site.send(&head(request)), &site)).collect();
    for first in REQUESTS {
        site.forget("main");
        for (second, alone) in REQUESTS.iter().zip(&alone) {
            let answer = site.send_again(site.send(&head(first)), &head(second));
            assert_eq!(&seen(&answer, &site), alone, "{second} after {first}");
        }
    }
}
