use crate::testing::{TestAnswer, refusal, site};

fn page(title: &str) -> String {
    format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
         <center><h1>{title}</h1></center>\r\n<hr><center>{}</center>\r\n</body>\r\n</html>\r\n",
        crate::identity::token()
    )
}

/// The reply to `return STATUS`.
fn built_in(status: u16, fields: &str) -> TestAnswer {
    let site = site(&format!("server {{ location / {{ return {status}; }} }}"));
    site.get_with("/", fields)
}

#[test]
fn built_in_pages() {
    for (status, title) in [
        (301, "301 Moved Permanently"),
        (302, "302 Found"),
        (400, "400 Bad Request"),
        (401, "401 Authorization Required"),
        (404, "404 Not Found"),
        (421, "421 Misdirected Request"),
        (498, "404 Not Found"),
        (507, "507 Insufficient Storage"),
    ] {
        let answer = built_in(status, "");
        assert_eq!((answer.status(), answer.body()), (status, page(title)));
        assert_eq!(answer.field("content-type").unwrap(), "text/html");
    }
}

#[test]
fn statuses_without_a_page_have_an_empty_body() {
    for status in [418, 430, 493, 506, 508, 599] {
        let answer = built_in(status, "");
        assert_eq!((answer.status(), answer.body().as_str()), (status, ""));
        assert_eq!(answer.head(), ["Content-Length: 0"], "{status}");
    }
}

#[test]
fn statuses_408_444_and_499_have_no_reply() {
    for status in [408, 444, 499] {
        assert!(!built_in(status, "").replied, "{status}");
    }
}

#[test]
fn statuses_of_invalid_requests_are_sent_as_400() {
    for (status, detail) in [
        (494, "Request Header Or Cookie Too Large"),
        (495, "The SSL certificate error"),
        (496, "No required SSL certificate was sent"),
        (497, "The plain HTTP request was sent to HTTPS port"),
    ] {
        let answer = built_in(status, "");
        assert_eq!(answer.status(), 400);
        assert!(answer.body().contains(&format!("<title>400 {detail}</title>")));
        let lines = format!("<h1>400 Bad Request</h1></center>\r\n<center>{detail}</center>\r\n");
        assert!(answer.body().contains(&lines));
    }
}

#[test]
fn some_statuses_close_the_connection() {
    for status in [400, 413, 414, 495, 496, 497, 500, 501] {
        assert!(!built_in(status, "").x.keeps_connection(), "{status}");
    }
    for status in [301, 403, 404, 405, 416, 502, 503] {
        assert!(built_in(status, "").x.keeps_connection(), "{status}");
    }
}

#[test]
fn pages_are_padded_for_browsers_that_show_their_own() {
    let padded = |agent: &str, status| {
        let body = built_in(status, &format!("User-Agent: {agent}\n")).body();
        body.matches("<!-- a padding to disable MSIE and Chrome friendly").count()
    };
    assert_eq!(padded("Mozilla/5.0 (KHTML, like Gecko) Chrome/120.0 Safari/537.36", 404), 6);
    assert_eq!(padded("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT)", 503), 6);
    assert_eq!(padded("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT)", 302), 0);
    assert_eq!(padded("Mozilla/4.0 (compatible; MSIE 6.0) Opera 7", 404), 0);
    assert_eq!(padded("MSIE 6", 404), 0);
    assert_eq!(padded("Gecko/20100101 Chrome/1", 404), 0);
    assert_eq!(padded("curl/8", 404), 0);
    let off = site("server { msie_padding off; location / { return 404; } }");
    assert_eq!(off.get_with("/", "User-Agent: Chrome/1\n").body(), page("404 Not Found"));
}

#[test]
fn msie_is_sent_a_page_that_refreshes() {
    let site = site(
        "server { msie_refresh on; \
         location /other { error_page 404 =307 http://example.org/; return 404; } }",
    );
    site.file("dir/index.html", "");
    let ask = |uri| site.get_with(uri, "User-Agent: MSIE 6.0;\n");
    let page = |url| {
        format!(
            "<html><head><meta http-equiv=\"Refresh\" content=\"0; URL={url}\"></head>\
             <body></body></html>\r\n"
        )
    };
    assert_eq!((ask("/dir").status(), ask("/dir").body()), (200, page("/dir/")));
    assert_eq!(ask("/dir").field("location"), None);
    assert_eq!((ask("/other").status(), ask("/other").body()), (200, page("http://example.org/")));
    assert_eq!(site.get("/dir").status(), 301);
}

#[test]
fn the_target_of_a_path() {
    let site = site(
        "server { \
         error_page 404 /err?code=404; \
         error_page 405 = /err; \
         error_page 403 =200 /err; \
         error_page 497 /err; \
         location /404 { return 404; } location /405 { return 405; } \
         location /403 { return 403; } location /497 { return 497; } \
         location /err { return 418 'uri:$uri args:$args'; } }",
    );
    let answer = site.get("/404?x=1");
    assert_eq!((answer.status(), answer.body().as_str()), (404, "uri:/err args:code=404"));
    assert!(answer.x.internal);
    let answer = site.get("/405?x=1");
    assert_eq!((answer.status(), answer.body().as_str()), (418, "uri:/err args:"));
    assert_eq!(site.get("/403").status(), 200);
    assert_eq!(site.get("/497").status(), 400);
}

#[test]
fn a_path_may_have_variables() {
    let site = site(
        "server { error_page 404 /err$uri?was=$args; location / { return 404; } \
         location /err { return 200 '$uri $args'; } }",
    );
    assert_eq!(site.get("/a?b").body(), "/err/a was=b");
}

#[test]
fn the_method_becomes_get_for_a_path_only() {
    let site = site(
        "server { error_page 404 /path; error_page 403 @named; \
         location /404 { return 404; } location /403 { return 403; } \
         location /path { return 200; } location @named { return 200; } }",
    );
    let method = |request: &str| site.send(request).x.request.head.method;
    assert_eq!(method("POST /404 HTTP/1.0\n\n"), wire::Method::Get);
    assert_eq!(method("HEAD /404 HTTP/1.0\n\n"), wire::Method::Head);
    assert_eq!(method("POST /403 HTTP/1.0\n\n"), wire::Method::Post);
}

#[test]
fn named_locations() {
    let site = site(
        "server { error_page 404 @here; error_page 403 =201 @here; error_page 405 @nowhere; \
         location /404 { return 404; } location /403 { return 403; } \
         location /405 { return 405; } \
         location @here { return 200 'here $uri'; } }",
    );
    let answer = site.get("/404");
    assert_eq!((answer.status(), answer.body().as_str()), (404, "here /404"));
    assert_eq!(site.get("/403").status(), 201);
    assert_eq!(site.get("/405").status(), 500);
}

#[test]
fn urls() {
    let site = site(
        "server { \
         error_page 404 http://example.org$uri; error_page 403 =301 https://example.org/; \
         error_page 301 http://example.org/; error_page 405 =200 elsewhere; \
         location /404 { return 404; } location /403 { return 403; } \
         location /405 { return 405; } }",
    );
    site.file("dir/index.html", "");
    for (uri, status, location) in [
        ("/404", 302, "http://example.org/404"),
        ("/403", 301, "https://example.org/"),
        ("/dir", 302, "http://example.org/"),
        ("/405", 302, "elsewhere"),
    ] {
        let answer = site.get(uri);
        assert_eq!(
            (answer.status(), answer.field("location").unwrap().as_str()),
            (status, location)
        );
    }
    assert_eq!(site.get("/404").body(), page("302 Found"));
}

#[test]
fn a_second_error_is_answered_by_the_built_in_page_unless_recursive() {
    let lines = "error_page 404 /one; error_page 403 /two; \
                 location / { return 404; } \
                 location /one { return 403; } location /two { return 200 two; }";
    let answer = site(&format!("server {{ {lines} }}")).get("/");
    assert_eq!((answer.status(), answer.body()), (403, page("403 Forbidden")));
    let answer = site(&format!("server {{ recursive_error_pages on; {lines} }}")).get("/");
    assert_eq!((answer.status(), answer.body().as_str()), (403, "two"));
}

#[test]
fn cyclic_error_pages_end() {
    let circle = |target: &str| {
        let text = format!(
            "server {{ recursive_error_pages on; error_page 404 500 {target}; \
             location / {{ return 404; }} location @here {{ return 404; }} }}"
        );
        site(&text).get("/").status()
    };
    assert_eq!(circle("/again"), 500);
    assert_eq!(circle("@here"), 500);
    assert_eq!(circle("@nowhere"), 500);
}

#[test]
fn error_pages_are_inherited_as_a_whole() {
    let site = site(
        "error_page 404 /main; server { \
         location / { return 404; } \
         location /own { error_page 403 /own; return 404; } \
         location /main { return 200 main; } }",
    );
    assert_eq!(site.get("/").body(), "main");
    assert_eq!(site.get("/own").body(), page("404 Not Found"));
}

#[test]
fn invalid_directives_are_refused() {
    let refused = |line: &str| refusal(&format!("server {{ {line} }}"));
    assert_eq!(
        refused("error_page 404;"),
        "invalid number of arguments in \"error_page\" directive:1"
    );
    assert_eq!(refused("error_page = /x;"), "invalid value \"=\":1");
    assert_eq!(refused("error_page 404 =x /x;"), "invalid value \"=x\":1");
    assert_eq!(refused("error_page 499 /x;"), "invalid value \"499\":1");
    assert_eq!(refused("error_page abc /x;"), "invalid value \"abc\":1");
    assert_eq!(refused("error_page 200 /x;"), "value \"200\" must be between 300 and 599:1");
    assert_eq!(refused("error_page 600 /x;"), "value \"600\" must be between 300 and 599:1");
}
