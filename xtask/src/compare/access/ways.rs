//! How a request gets into a location.

use super::contents::CellContent;

/// One way: `RULE` and `CONTENT` stand in the location it leads to.
pub(super) struct WayIn {
    pub(super) name: &'static str,
    pub(super) locations: &'static str,
    pub(super) target: &'static str,
}

impl WayIn {
    /// Whether the configuration is one with this content.
    pub(super) fn takes(&self, content: &CellContent) -> bool {
        let in_if = self.name.starts_with("if");
        let by_index = self.name == "index";
        (content.in_if || !in_if) && !(by_index && content.tail.is_empty())
    }
}

const fn way(name: &'static str, locations: &'static str) -> WayIn {
    WayIn { name, locations, target: "/CELL/TAIL" }
}

pub(super) const WAYS: &[WayIn] = &[
    way("prefix", "location /CELL/ { RULE CONTENT }"),
    way("preferred prefix", "location ^~ /CELL/ { RULE CONTENT }"),
    way("exact", "location = /CELL/TAIL { RULE CONTENT }"),
    way("regex", "location ~ ^/CELL/ { RULE CONTENT }"),
    way("nested", "location /CELL { location /CELL/ { RULE CONTENT } }"),
    way("nested regex", "location /CELL { location ~ /x?$ { RULE CONTENT } }"),
    way("rule around nested", "location /CELL { RULE location /CELL/ { CONTENT } }"),
    way("rule around regex", "location /CELL { RULE location ~ /x?$ { CONTENT } }"),
    way("if", "location /CELL/ { RULE if ($uri) { CONTENT } }"),
    way("if beside content", "location /CELL/ { RULE if ($uri) { set $a 1; } CONTENT }"),
    way(
        "try_files to a name",
        "location /CELL/ { try_files /none @CELL; } location @CELL { RULE CONTENT }",
    ),
    way(
        "try_files to a URI",
        "location /CELL/ { try_files /none /in/CELL/TAIL?$args; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way("try_files here", "location /CELL/ { RULE try_files /none $uri $uri/ =404; CONTENT }"),
    way(
        "error_page to a name",
        "location /CELL/ { error_page 418 = @CELL; return 418; } location @CELL { RULE CONTENT }",
    ),
    way(
        "error_page to a URI",
        "location /CELL/ { error_page 418 /in/CELL/TAIL?$args; return 418; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "error_page with =",
        "location /CELL/ { error_page 418 = /in/CELL/TAIL?$args; return 418; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "error_page of a backend",
        "location /CELL/ { proxy_intercept_errors on; error_page 404 = @CELL; \
         proxy_pass http://127.0.0.1:%%PORT2%%/404/; } location @CELL { RULE CONTENT }",
    ),
    way(
        "error_page of a refusal",
        "location /CELL/ { error_page 403 = @CELL; deny all; root %%DIR%%/html; } \
         location @CELL { RULE CONTENT }",
    ),
    way(
        "own error_page",
        "location /CELL/ { error_page 401 403 503 = @CELL; RULE CONTENT } \
         location @CELL { CONTENT }",
    ),
    way(
        "rewrite last",
        "location /CELL/ { rewrite ^/(.*) /in/$1 last; } location /in/CELL/ { RULE CONTENT }",
    ),
    way("rewrite break", "location /CELL/ { rewrite ^/(.*) /in/$1 break; RULE CONTENT }"),
    way("index", "location /CELL/ { index x; } location = /CELL/x { RULE CONTENT }").to("/CELL/"),
    way(
        "X-Accel-Redirect to a URI",
        "location /CELL/ { proxy_pass http://127.0.0.1:%%PORT2%%/accel/in/CELL/TAIL?$args; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "X-Accel-Redirect to a name",
        "location /CELL/ { proxy_pass http://127.0.0.1:%%PORT2%%/accel@CELL; } \
         location @CELL { RULE CONTENT }",
    ),
    way(
        "auth_request",
        "location /CELL/ { auth_request /in/CELL/TAIL; proxy_pass http://127.0.0.1:%%PORT2%%; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "mirror",
        "location /CELL/ { mirror /in/CELL/TAIL; proxy_pass http://127.0.0.1:%%PORT2%%; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "rule beside mirror",
        "location /CELL/ { RULE mirror /in/CELL/TAIL; CONTENT } \
         location /in/CELL/ { internal; return 200; }",
    ),
    way(
        "post_action",
        "location /CELL/ { post_action /in/CELL/TAIL; proxy_pass http://127.0.0.1:%%PORT2%%; } \
         location /in/CELL/ { RULE CONTENT }",
    ),
    way(
        "rewrite, then a name",
        "location /CELL/ { rewrite ^/(.*) /in/$1 last; } \
         location /in/CELL/ { try_files /none @CELL; } location @CELL { RULE CONTENT }",
    ),
    way(
        "a name, then a URI",
        "location /CELL/ { try_files /none @CELL; } \
         location @CELL { rewrite ^/(.*) /in/$1 last; } location /in/CELL/ { RULE CONTENT }",
    ),
];

impl WayIn {
    const fn to(self, target: &'static str) -> WayIn {
        WayIn { target, ..self }
    }
}
