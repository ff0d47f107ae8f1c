//! The `upstream` block: its lines, and the groups that they make.
//!
//! HTTP mounts it at its own `upstream {}`, streams will at theirs. Blocks are kept as they were
//! read until the whole configuration is; then [`Groups::build`] makes the groups.

mod check;
mod groups;
mod keepalive;
mod limit;
mod method;
mod server;
mod state;
mod sticky;
#[cfg(test)]
mod tests;
mod zone;

use std::sync::Arc;

use conf::lacking::Class;
use conf::{Bounded, Directive, Error, Load, Milliseconds, Number, Result, Size, Value};

use crate::balance::{Balance, RoundRobin};
use crate::resolver::NameServers;
use crate::sticky::Sticky;
use crate::waiting::GroupLimit;

use check::HttpSend;
pub use check::{Alive, CheckKind, CheckLine, ServerCheck};
pub use groups::Groups;
pub use keepalive::{KeepaliveCount, KeepaliveSettings};
use limit::LimitLines;
pub use limit::{LimitConn, LimitLogLevel, QueueLine};
pub use method::BalanceMethod;
pub use server::ServerLine;
use state::KeptServers;
pub use state::StateFile;
pub use zone::GroupZone;

conf::directives! {
    declare {
        /// Defines a zone for `limit_upstream_conn`. Groups that name the same zone share the count
        /// of requests in progress at each server address.
        ///
        /// Syntax: NAME SIZE
        /// Differs: not in nginx's sources; as in the module nginx-limit-upstream. The size is
        /// checked but has no effect. See docs/limit.md.
        ///
        /// ```nginx
        /// limit_upstream_zone backends 1m;
        ///
        /// upstream app {
        ///     server 127.0.0.1:8001;
        ///     limit_upstream_conn zone=backends limit=100;
        /// }
        /// ```
        limit_upstream_zone(2..=2) in MAIN => limit::declare_zone;
        /// Binds connections to servers to those of clients.
        ///
        /// Refused: connections to servers are not bound to clients.
        ntlm(0..=0) in UPSTREAM => refuse_ntlm;
        /// The size of the memory for the state of the checks.
        ///
        /// Syntax: SIZE
        /// Differs: not in nginx's sources; as in Tengine. Checked, but has no effect: memory is
        /// allocated as needed.
        check_shm_size(1..=1) in MAIN => read_size;
    }
    also {
        /// Chooses the server with the fewest requests in progress, by weight.
        ///
        /// Differs: the count is exact over all workers, with or without `zone`.
        ///
        /// ```nginx
        /// upstream app {
        ///     least_conn;
        ///     server 127.0.0.1:8001;
        ///     server 127.0.0.1:8002 weight=2;
        /// }
        /// ```
        least_conn(0..=0) in UPSTREAM => method;
        /// Chooses the server by the client's address, so that a client always gets the same
        /// server.
        ///
        /// ```nginx
        /// upstream app {
        ///     ip_hash;
        ///     server 127.0.0.1:8001;
        ///     server 127.0.0.1:8002;
        /// }
        /// ```
        ip_hash(0..=0) in UPSTREAM => method;
        /// Chooses the server by a hash of a text. With `consistent`, few texts change their server
        /// when servers are added or removed.
        ///
        /// Syntax: STRING [consistent]
        ///
        /// ```nginx
        /// upstream cache {
        ///     hash $request_uri consistent;
        ///     server 127.0.0.1:8001;
        ///     server 127.0.0.1:8002;
        /// }
        /// ```
        hash(1..=2) in UPSTREAM => method;
        /// Chooses a server at random, by weight. With `two`, chooses two at random and uses the
        /// better one, with fewer requests in progress or a lower average time.
        ///
        /// Syntax: [two [least_conn | least_time=header | least_time=last_byte]]
        /// Differs: in `stream {}`, `least_time=` has the values `connect`, `first_byte` and
        /// `last_byte`.
        ///
        /// ```nginx
        /// upstream app {
        ///     random two least_conn;
        ///     server 127.0.0.1:8001;
        ///     server 127.0.0.1:8002;
        /// }
        /// ```
        random(0..=2) in UPSTREAM => method;
        /// Chooses the server with the lowest average time until the response header (`header`) or
        /// the end of the response (`last_byte`); in `stream {}`, until the connection (`connect`),
        /// the server's first byte (`first_byte`) or the end of the session (`last_byte`). With
        /// `inflight`, unfinished requests or sessions count, too.
        ///
        /// Syntax: header | connect | first_byte | last_byte [inflight]
        ///
        /// ```nginx
        /// upstream app {
        ///     least_time header;
        ///     server 127.0.0.1:8001;
        ///     server 127.0.0.1:8002;
        /// }
        /// ```
        least_time(1..=2) in UPSTREAM => method;
    }
    slots {
        /// How servers are chosen.
        method: Option<BalanceMethod>,
    }

    in UPSTREAM;

    /// A server of the group: an address and port, a name, or a Unix socket. A name with several
    /// addresses counts as several servers.
    /// - `weight=NUMBER`: its share of the requests; 1
    /// - `max_conns=NUMBER`: the largest number of requests in progress; 0, no limit
    /// - `max_fails=NUMBER`, `fail_timeout=TIME`: after this many failures within this time, the
    ///   server is not used for the same time; 1 and 10s
    /// - `slow_start=TIME`: how long a recovered server takes to reach its full weight; 0
    /// - `backup`: used only while no other server is available
    /// - `down`: never used; `drain`: used only for requests bound to it by `sticky`
    /// - `resolve`: its name is resolved again at run time; `service=NAME`: by SRV records
    /// - `route=TEXT`, or `sid=TEXT`: its name for `sticky route`
    ///
    /// Syntax: ADDRESS [weight=NUMBER] [max_conns=NUMBER] [max_fails=NUMBER] [fail_timeout=TIME]
    /// [slow_start=TIME] [backup] [down | drain] [resolve] [service=NAME] [route=TEXT]
    /// Differs: `slow_start` is in NGINX Plus, but not in nginx's sources. All workers share one
    /// exact count and state. A name that cannot be resolved does not prevent a start (see
    /// `upstream_host_not_found`).
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001 weight=2 max_fails=3 fail_timeout=30s;
    ///     server 127.0.0.1:8002 slow_start=1m;
    ///     server unix:/run/app.sock backup;
    /// }
    /// ```
    server: Vec<ServerLine>,
    /// The file that keeps the servers of the group, as `server` lines. It is read with the
    /// configuration, and written by the master process whenever the API changes the servers. If it
    /// does not exist, the group begins without servers.
    ///
    /// Syntax: FILE
    /// Differs: not in nginx's sources; as in NGINX Plus. `zone` is not required. A relative name
    /// is relative to the prefix. See docs/runtime-api.md.
    ///
    /// ```nginx
    /// upstream app {
    ///     state /var/lib/weir/app.conf;
    /// }
    /// ```
    state: Option<StateFile>,
    /// Limits the requests in progress at each server of the group, exactly and over all workers.
    /// Requests above the limit are queued, and the one that has waited longest is next.
    /// - `zone=NAME`: a zone of `limit_upstream_zone`
    /// - `limit=NUMBER`: requests in progress at each server; of `limit=NUMBER/nodes`, each node
    ///   enforces its part (see `nodes`)
    /// - `backlog=NUMBER`: maximum number of queued requests per server, over all workers; 1000
    /// - `timeout=TIME`: how long a request is queued before it is answered with 408; the value of
    ///   `proxy_read_timeout`
    /// - `nodelay`: no queue; requests above the limit are answered with 502
    ///
    /// Syntax: zone=NAME limit=NUMBER[/nodes] [backlog=NUMBER] [timeout=TIME] [nodelay]
    /// Differs: not in nginx's sources; as in the module nginx-limit-upstream, but exact.
    /// `instant_hook` has no effect. See docs/limit.md.
    ///
    /// ```nginx
    /// limit_upstream_zone backends 1m;
    ///
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     server 127.0.0.1:8002;
    ///     limit_upstream_conn zone=backends limit=200 backlog=1000 timeout=3s;
    /// }
    /// ```
    limit_upstream_conn: Option<LimitConn>,
    /// The level of messages about requests that are queued, resumed, rejected or timed out in the
    /// queue.
    ///
    /// Differs: not in nginx's sources; as in the module nginx-limit-upstream. See docs/limit.md.
    ///
    /// ```nginx
    /// limit_upstream_log_level info;
    /// ```
    limit_upstream_log_level + MAIN: LimitLogLevel = "notice",
    /// Queues up to this many requests while every server of the group has reached its `max_conns`.
    /// A request that has been queued for `timeout=` (60s), or finds the queue full, is answered
    /// with 502.
    ///
    /// Syntax: NUMBER [timeout=TIME]
    /// Differs: not in nginx's sources; as in NGINX Plus. See docs/limit.md.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001 max_conns=100;
    ///     server 127.0.0.1:8002 max_conns=100;
    ///     queue 500 timeout=5s;
    /// }
    /// ```
    queue: Option<QueueLine>,
    /// The name servers for resolving the names of servers with `resolve`. The parameters are those
    /// of `resolver` in http.
    ///
    /// Syntax: ADDRESS[:PORT]... [valid=TIME] [ipv4=on|off] [ipv6=on|off]
    ///
    /// ```nginx
    /// upstream app {
    ///     resolver 127.0.0.1:53 valid=30s;
    ///     server app.example.com:8080 resolve;
    /// }
    /// ```
    resolver: Option<NameServers>,
    /// How long resolving a name may take.
    ///
    /// Default: 30s
    resolver_timeout: Option<Milliseconds>,
    /// Binds a client's requests to the server that answered its first one.
    /// - `cookie`: by a cookie that the proxy sets
    /// - `route`: by the first of these variables that is not empty; its value is a server's
    ///   `route=`
    /// - `learn`: by a session that a response starts (`create=`) and later requests refer to
    ///   (`lookup=`)
    ///
    /// Syntax: cookie NAME [expires=TIME|max] [domain=NAME] [path=PATH] [httponly] [secure]
    /// [samesite=strict|lax|none]
    /// Syntax: route $VARIABLE...
    /// Syntax: learn create=$VARIABLE lookup=$VARIABLE zone=NAME:SIZE [timeout=TIME] [header]
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     server 127.0.0.1:8002;
    ///     sticky cookie srv expires=1h path=/;
    /// }
    /// ```
    sticky: Option<Sticky>,
    /// Defines shared memory for the state of the group.
    ///
    /// Syntax: NAME [SIZE]
    /// Differs: checked, but has no effect: all workers always share the state of every group.
    ///
    /// ```nginx
    /// upstream app {
    ///     zone app 64k;
    ///     server 127.0.0.1:8001;
    /// }
    /// ```
    zone: Option<GroupZone>,
    /// How many idle connections to the servers of the group each worker keeps open. 0 keeps none.
    /// With `local`, each location has its own connections.
    ///
    /// Syntax: NUMBER [local]
    /// Differs: connections that have been idle for less than a second do not count.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     keepalive 64;
    /// }
    /// ```
    keepalive: KeepaliveCount = "32 local",
    /// The largest number of requests sent over one connection to a server.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     keepalive_requests 10000;
    /// }
    /// ```
    keepalive_requests: Number = "1000",
    /// How long requests are sent over one connection to a server.
    keepalive_time: Milliseconds = "1h",
    /// How long an idle connection to a server is kept open.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     keepalive_timeout 30s;
    /// }
    /// ```
    keepalive_timeout: Milliseconds = "60s",
    /// Checks every server of the group periodically, and does not use servers that fail. All
    /// values are plain numbers; times are in milliseconds.
    /// - `interval=NUMBER`: the time between two checks; 30000
    /// - `fall=NUMBER`, `rise=NUMBER`: consecutive failures or passes that change a server's state;
    ///   5 and 2
    /// - `timeout=NUMBER`: the maximum duration of a check; 1000
    /// - `default_down=true|false`: whether a server is unused until it has passed; `true`
    /// - `type=tcp|http`: whether to connect, or to send `check_http_send`; `tcp`
    /// - `port=NUMBER`: the port to connect to; the server's own
    ///
    /// Syntax: [interval=NUMBER] [fall=NUMBER] [rise=NUMBER] [timeout=NUMBER]
    /// [default_down=true|false] [type=tcp|http] [port=NUMBER]
    /// Differs: not in nginx's sources; as in Tengine. The types `ssl_hello`, `mysql`, `ajp` and
    /// `fastcgi` are rejected. See docs/health.md.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     server 127.0.0.1:8002;
    ///     check interval=3000 rise=2 fall=5 timeout=1000 type=http;
    ///     check_http_send "GET /health HTTP/1.0\r\n\r\n";
    ///     check_http_expect_alive http_2xx;
    /// }
    /// ```
    check: Option<CheckLine>,
    /// The exact bytes of the request of a check with `type=http`.
    ///
    /// Syntax: TEXT
    /// Default: "GET / HTTP/1.0\r\n\r\n"
    /// Differs: not in nginx's sources; as in Tengine, but it may precede `check`.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     check type=http;
    ///     check_http_send "HEAD /health HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n";
    /// }
    /// ```
    check_http_send: Option<HttpSend>,
    /// The classes of statuses that pass a check with `type=http`.
    ///
    /// Syntax: http_1xx | http_2xx | http_3xx | http_4xx | http_5xx ...
    /// Differs: not in nginx's sources; as in Tengine.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     check type=http;
    ///     check_http_expect_alive http_2xx;
    /// }
    /// ```
    check_http_expect_alive: Alive = "http_2xx http_3xx",
    /// How many checks are made over one connection.
    ///
    /// Differs: not in nginx's sources; as in Tengine.
    ///
    /// ```nginx
    /// upstream app {
    ///     server 127.0.0.1:8001;
    ///     check type=http;
    ///     check_http_send "GET /health HTTP/1.1\r\nHost: app\r\nConnection: keep-alive\r\n\r\n";
    ///     check_keepalive_requests 100;
    /// }
    /// ```
    check_keepalive_requests: Bounded<1, { u32::MAX as u64 }> = "1",
    /// What to do if the name of a server cannot be resolved at start. `down`: the server is down,
    /// with a warning, and Weir resolves its name every five seconds until it succeeds. `refuse`:
    /// the configuration is rejected.
    ///
    /// Differs: only Weir has this directive; nginx always rejects the configuration.
    ///
    /// ```nginx
    /// upstream_host_not_found refuse;
    /// ```
    upstream_host_not_found + MAIN: HostNotFound = "down",
}

conf::words! {
    /// What is made of a server whose name is not found.
    pub enum HostNotFound {
        /// A warning.
        Down = "down",
        /// An error.
        Refuse = "refuse",
    }
}

impl Conf {
    fn keepalive(&self) -> KeepaliveSettings {
        KeepaliveSettings {
            connections: self.keepalive.connections,
            local: self.keepalive.local,
            requests: self.keepalive_requests.0,
            time_ms: self.keepalive_time.0,
            timeout_ms: self.keepalive_timeout.0,
        }
    }

    fn server_check(&self) -> Result<Option<Arc<ServerCheck>>> {
        ServerCheck::of(
            self.check.as_ref(),
            self.check_http_send.as_ref(),
            self.check_http_expect_alive,
            self.check_keepalive_requests.0,
        )
    }

    fn limit(&self, group: u64, from: &Directive, load: &mut Load<'_>) -> Result<GroupLimit> {
        let lines = LimitLines {
            conn: self.limit_upstream_conn.as_ref(),
            queue: self.queue,
            level: self.limit_upstream_log_level,
        };
        lines.limit(group, from, load)
    }

    fn balance(&self) -> Arc<dyn Balance> {
        match &self.method {
            Some(method) => method.balance.clone(),
            None => Arc::new(RoundRobin),
        }
    }
}

impl Layer {
    /// Reads the state file, if there is one. The method that the block names is known.
    fn kept(&self, load: &mut Load<'_>) -> Result<Option<KeptServers>> {
        let Some(state) = self.state.as_ref().and_then(Option::as_ref) else { return Ok(None) };
        if self.server.is_some() {
            let why = "cannot be used together with \"server\"";
            return Err(state.from.refuse(why));
        }
        state.read(load).map(Some)
    }

    /// Refuses a block without servers, at its end as nginx does. Where the text breaks off before
    /// that end, it is not known to be one.
    fn check(&self, from: &Directive) -> Result<()> {
        match (&self.server, &self.state, from.close) {
            (None, None, Some(end)) => Err(Error::at(end, "no servers are inside upstream")),
            _ => Ok(()),
        }
    }
}

fn refuse_ntlm(from: &Directive, _: &mut Load<'_>) -> Result<()> {
    let why = "is not supported, because connections to servers are not bound to clients";
    Err(from.refuse(why).lacks(Class::Behavior))
}

fn read_size(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    Size::parse(from, load).map(|_| ())
}
