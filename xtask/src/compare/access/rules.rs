//! What decides whether a request may come, and the requests that find out.

/// One rule: directives of a location. A request is `METHOD [/?ARGS] [| FIELD]...`.
pub(super) struct TableRule {
    pub(super) name: &'static str,
    pub(super) directives: &'static str,
    pub(super) requests: &'static [&'static str],
}

const METHODS: &[&str] = &["GET", "HEAD", "DELETE"];

/// Nobody, the right user, and one with the wrong password.
const USERS: &[&str] = &[
    "GET",
    "DELETE",
    "GET | Authorization: Basic dTpw",
    "DELETE | Authorization: Basic dTpw",
    "GET | Authorization: Basic dTpx",
];

const KEYS: &[&str] =
    &["GET", "DELETE", "GET | X-Key: open", "DELETE | X-Key: open", "GET | X-Key: shut"];

pub(super) const ACCESS_RULES: &[TableRule] = &[
    TableRule { name: "none", directives: "", requests: METHODS },
    TableRule { name: "deny", directives: "deny all;", requests: METHODS },
    TableRule { name: "allow", directives: "allow 127.0.0.1; deny all;", requests: METHODS },
    TableRule {
        name: "auth_basic",
        directives: "auth_basic r; auth_basic_user_file %%DIR%%/users;",
        requests: USERS,
    },
    TableRule {
        name: "satisfy any",
        directives: "satisfy any; deny all; auth_basic r; auth_basic_user_file %%DIR%%/users;",
        requests: USERS,
    },
    TableRule {
        name: "satisfy all",
        directives: "satisfy all; allow 127.0.0.1; deny all; \
            auth_basic r; auth_basic_user_file %%DIR%%/users;",
        requests: USERS,
    },
    TableRule {
        name: "satisfy all of which one refuses",
        directives: "deny all; auth_basic r; auth_basic_user_file %%DIR%%/users;",
        requests: USERS,
    },
    TableRule { name: "auth_request", directives: "auth_request /auth;", requests: KEYS },
    TableRule {
        name: "satisfy any with auth_request",
        directives: "satisfy any; deny all; auth_request /auth;",
        requests: KEYS,
    },
    TableRule {
        name: "limit_except deny",
        directives: "limit_except GET { deny all; }",
        requests: METHODS,
    },
    TableRule {
        name: "limit_except for GET",
        directives: "limit_except DELETE { deny all; }",
        requests: METHODS,
    },
    TableRule {
        name: "limit_except auth_basic",
        directives: "limit_except GET { auth_basic r; auth_basic_user_file %%DIR%%/users; }",
        requests: USERS,
    },
    TableRule {
        name: "limit_except allow",
        directives: "deny all; limit_except GET { allow all; }",
        requests: METHODS,
    },
    TableRule {
        name: "limit_except satisfy any",
        directives: "satisfy any; limit_except GET { deny all; \
            auth_basic r; auth_basic_user_file %%DIR%%/users; }",
        requests: USERS,
    },
    TableRule { name: "internal", directives: "internal;", requests: METHODS },
    TableRule {
        name: "limit_req",
        directives: "limit_req zone=requests;",
        requests: &["GET", "GET", "DELETE"],
    },
    TableRule {
        name: "limit_conn",
        directives: "limit_conn held 1;",
        requests: &["GET | X-Held: once", "GET | X-Held: twice", "DELETE | X-Held: twice"],
    },
    TableRule {
        name: "ssl_client_verify",
        directives: "if ($ssl_client_verify != SUCCESS) { return 403; }",
        requests: METHODS,
    },
    TableRule {
        name: "secure_link",
        directives: "secure_link $arg_md5; secure_link_md5 s; \
            if ($secure_link = \"\") { return 403; }",
        requests: &["GET", "GET /?md5=A8fArOOV2AGC2weuLDDwNA", "GET /?md5=B8fArOOV2AGC2weuLDDwNA"],
    },
    TableRule {
        name: "method by if",
        directives: "if ($request_method = DELETE) { return 403; }",
        requests: METHODS,
    },
];
