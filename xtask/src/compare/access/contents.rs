//! What a location of the table answers with, and what its backend says.

pub(super) struct CellContent {
    pub(super) name: &'static str,
    pub(super) directives: &'static str,
    /// What the URI of a request ends with.
    pub(super) tail: &'static str,
    /// Whether it may stand in `if`.
    pub(super) in_if: bool,
    /// The lines of a case that tell the backend what to answer.
    pub(super) script: &'static str,
}

const NONE: CellContent =
    CellContent { name: "", directives: "", tail: "x", in_if: true, script: "" };

pub(super) const CONTENTS: &[CellContent] = &[
    CellContent { name: "return", directives: "return 200 in;", ..NONE },
    CellContent { name: "file", directives: "root %%DIR%%/html;", ..NONE },
    CellContent {
        name: "proxy_pass",
        directives: "proxy_pass http://127.0.0.1:%%BACKEND%%;",
        script: "=head\n= HTTP/1.1 200 OK\n= Connection: close\n=\n= in\\\n=close\n",
        ..NONE
    },
    CellContent {
        name: "fastcgi_pass",
        directives: "fastcgi_pass 127.0.0.1:%%BACKEND%%;",
        script: "=until \\x01\\x05\\0\\x01\\0\\0\\0\\0\n\
            = \\x01\\x06\\0\\x01\\0\\x0a\\0\\0X-A: b\\r\\n\\r\\n\\x01\\x06\\0\\x01\\0\\0\\0\\0\
            \\x01\\x03\\0\\x01\\0\\x08\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\\n=close\n",
        ..NONE
    },
    CellContent {
        name: "scgi_pass",
        directives: "scgi_pass 127.0.0.1:%%BACKEND%%;",
        script: "=until \\0,\n= Status: 200 OK\n=\n= in\\\n=close\n",
        ..NONE
    },
    CellContent {
        name: "uwsgi_pass",
        directives: "uwsgi_pass 127.0.0.1:%%BACKEND%%;",
        script: "=until end\n= HTTP/1.1 200 OK\n=\n= in\\\n=close\n",
        ..NONE
    },
    CellContent {
        name: "memcached_pass",
        directives: "memcached_pass 127.0.0.1:%%BACKEND%%;",
        script: "=until \\r\\n\n= VALUE key 0 2\n= in\n= END\n=close\n",
        ..NONE
    },
    CellContent { name: "stub_status", directives: "stub_status;", in_if: false, ..NONE },
    CellContent { name: "autoindex", directives: "autoindex on;", tail: "", in_if: false, ..NONE },
    CellContent { name: "empty_gif", directives: "empty_gif;", in_if: false, ..NONE },
];
