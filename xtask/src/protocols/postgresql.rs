//! PostgreSQL: a transaction of psql that goes on while Weir reloads, and a large result.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::command::{bounded, printed};
use super::server::ProtocolServer;
use crate::prove::{ProofFolder, free_port};
use crate::stream_server::ServedStream;
use crate::{packages, project};

/// Reloads in the middle of the transaction.
const RELOADS: usize = 5;
/// Rows of the large result.
const ROWS: usize = 500_000;

pub(super) fn run(weir: &Path) -> Result<String, String> {
    let programs = programs()?;
    let (folder, port) = (ProofFolder::new("postgresql")?, free_port()?);
    let _database = start(&programs, &folder, port)?;
    let lines = format!(
        "upstream database {{ server 127.0.0.1:{port}; }}
         server {{
             listen LISTEN; proxy_pass database; proxy_timeout 10m;
             health_check mandatory interval=1s;
         }}"
    );
    let server = ServedStream::start(weir, "", &lines)?;
    server.await_log("peer is healthy while connecting to upstream")?;
    transaction(&server)?;
    let mut command = bounded("psql");
    let select = format!("COPY (SELECT generate_series(1, {ROWS})) TO STDOUT");
    let rows = printed(command.args(words(server.port)).args(["-c", &select]))?;
    let expected: String = (1..=ROWS).map(|number| format!("{number}\n")).collect();
    if rows != expected {
        return Err(format!("COPY gives {} bytes, of {}", rows.len(), expected.len()));
    }
    Ok(format!("a transaction over {RELOADS} reloads, COPY of {ROWS} rows"))
}

/// Where Debian keeps the programs of a version.
fn programs() -> Result<PathBuf, String> {
    let find = || {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let folders = versions.map(|version| version.path().join("bin"));
        folders.filter(|folder| folder.join("postgres").exists()).max()
    };
    packages::need(&[("psql", "postgresql-client")])?;
    if let Some(programs) = find() {
        return Ok(programs);
    }
    packages::install(&["postgresql"])?;
    find().ok_or_else(|| "apt-get did not install postgresql".into())
}

/// A database in the folder. It refuses to run as root.
fn start(programs: &Path, folder: &ProofFolder, port: u16) -> Result<ProtocolServer, String> {
    let run_as = |program: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        if packages::is_root() {
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        }
        command.arg(programs.join(program)).arg("-D").arg(folder.join("data"));
        command.current_dir("/");
        command
    };
    if packages::is_root() {
        project::succeed(Command::new("chown").arg("postgres").arg(&folder.0))?;
    }
    printed(run_as("initdb").args(["-A", "trust", "-U", "postgres", "--no-sync"]))?;
    let mut postgres = run_as("postgres");
    postgres.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", "fsync=off", "-k"]);
    ProtocolServer::start(postgres.arg(&folder.0), port)
}

/// psql's arguments for plain rows of whatever comes through Weir.
fn words(port: u16) -> Vec<String> {
    let port = port.to_string();
    let words = [
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "postgres",
        "-h",
        "127.0.0.1",
        "-p",
    ];
    words.into_iter().map(str::to_owned).chain([port]).collect()
}

/// A psql that is told one line after the other.
struct PsqlSession {
    child: Child,
    input: ChildStdin,
    rows: Lines<BufReader<ChildStdout>>,
}

impl PsqlSession {
    fn start(port: u16) -> Result<Self, String> {
        let mut command = Command::new("timeout");
        command.args(["60", "psql"]).args(words(port));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|err| format!("psql: {err}"))?;
        let input = child.stdin.take().expect("it is piped");
        let rows = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Ok(Self { child, input, rows })
    }

    /// The one row that a line of SQL gives.
    fn row(&mut self, sql: &str) -> Result<String, String> {
        writeln!(self.input, "{sql}").map_err(|err| format!("psql: {err}"))?;
        match self.rows.next() {
            Some(Ok(row)) => Ok(row),
            other => Err(format!("psql says {other:?} to {sql}")),
        }
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.input);
        let status = self.child.wait().map_err(|err| format!("psql: {err}"))?;
        if status.success() { Ok(()) } else { Err(format!("psql: {status}")) }
    }
}

/// Rows that are inserted between reloads are all there once the transaction is committed.
fn transaction(server: &ServedStream) -> Result<(), String> {
    let mut psql = PsqlSession::start(server.port)?;
    let first = psql.row("CREATE TABLE t (n int); BEGIN; INSERT INTO t VALUES (0) RETURNING n;")?;
    if first != "0" {
        return Err(format!("the first row is {first}"));
    }
    for number in 1..=RELOADS {
        server.reload()?;
        let row = psql.row(&format!("INSERT INTO t VALUES ({number}) RETURNING n;"))?;
        if row != number.to_string() {
            return Err(format!("after {number} reloads: {row}"));
        }
    }
    let committed = psql.row("COMMIT; SELECT count(*) FROM t;")?;
    psql.end()?;
    if committed != (RELOADS + 1).to_string() {
        return Err(format!("{committed} rows are committed"));
    }
    Ok(())
}
