//! `xtask certbot`: `certbot --nginx` installs a certificate into a running Weir that is called
//! `nginx`, and renews it. The certificate authority is Pebble, here on the machine.

use std::fs;
use std::io::Error;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::prove::free_port;
use crate::{packages, project};

pub(crate) const HELP: &str = "certbot --nginx gets and renews a certificate in a running Weir

Usage: cargo xtask certbot [--weir PATH]

  --weir PATH   the program under test; built where none is named

Needs certbot with its plugin for nginx (installed by apt-get if that is allowed), openssl, curl and
Go, which builds the certificate authority (Pebble). Skipped where one is missing. acme.sh is in no
package registry and therefore not tried.
";

const PEBBLE: [&str; 2] = [
    "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1",
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1",
];

/// How long a program may take to start, certbot to be done, and Go to build.
const START_MAX: Duration = Duration::from_secs(20);
const CERTBOT_MAX_S: &str = "120";
const BUILD_MAX_S: &str = "300";
const LOOK: Duration = Duration::from_millis(50);

/// The name that the certificate is for; it leads to 127.0.0.1 for all who ask here.
const NAME: &str = "weir.test";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    args.end()?;
    let needed = [("certbot", "python3-certbot-nginx"), ("openssl", "openssl"), ("curl", "curl")];
    if let Err(why) = packages::need(&needed) {
        println!("skipped: {why}");
        return Ok(());
    }
    if packages::find("go").is_none() {
        println!("skipped: Go is not installed");
        return Ok(());
    }
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let site = CertbotSite::start(&weir.canonicalize().map_err(|err| err.to_string())?)?;
    let own = site.serial()?;
    let asker = Asker::default();
    thread::scope(|scope| {
        scope.spawn(|| asker.ask(site.http));
        let result = site.play(&own);
        asker.stop.store(true, Ordering::Relaxed);
        result
    })?;
    asker.verdict()
}

/// Where everybody listens, and what runs.
struct CertbotSite {
    folder: PathBuf,
    http: u16,
    https: u16,
    directory: u16,
    management: u16,
    _programs: Vec<CheckedProgram>,
}

impl CertbotSite {
    fn start(weir: &Path) -> Result<Self, String> {
        let tools = tools()?;
        let folder = std::env::temp_dir().join(format!("weir-certbot-{}", std::process::id()));
        let [http, https, directory, management, dns] =
            [free_port()?, free_port()?, free_port()?, free_port()?, free_port()?];
        let mut site = Self { folder, http, https, directory, management, _programs: Vec::new() };
        site.write(weir).map_err(|err| format!("{}: {err}", site.folder.display()))?;
        site.key_pair("own", NAME, &format!("DNS:{NAME}"))?;
        site.key_pair("directory", "localhost", "IP:127.0.0.1")?;
        let dns = format!("127.0.0.1:{dns}");
        let mut names = Command::new(tools.join("pebble-challtestsrv"));
        names.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver", &dns]);
        names.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        names.args(["-management", ""]);
        let mut pebble = Command::new(tools.join("pebble"));
        // By default it refuses one good nonce in twenty to try its clients; certbot retries once.
        pebble.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "0")]);
        pebble.args(["-dnsserver", &dns, "-config"]);
        pebble.arg(site.folder.join("pebble.json"));
        let mut server = Command::new(site.nginx());
        server.arg("-c").arg(site.conf()).args(["-g", "daemon off;"]);
        for (name, command) in [("names", names), ("pebble", pebble), ("weir", server)] {
            let program = CheckedProgram::start(name, command, &site.folder)?;
            site._programs.push(program);
        }
        site.await_ports()?;
        Ok(site)
    }

    fn nginx(&self) -> PathBuf {
        self.folder.join("sbin/nginx")
    }

    fn conf(&self) -> PathBuf {
        self.folder.join("etc/nginx.conf")
    }

    fn write(&self, weir: &Path) -> Result<(), Error> {
        for name in ["sbin", "etc"] {
            fs::create_dir_all(self.folder.join(name))?;
        }
        symlink(weir, self.nginx())?;
        let (d, http, https) = (self.folder.display(), self.http, self.https);
        let user = if packages::is_root() { "user root;" } else { "" };
        let conf = format!(
            "{user} worker_processes 2;\npid {d}/nginx.pid;\nerror_log {d}/error.log notice;\n\
             events {{ }}\nhttp {{\n    access_log off;\n    server {{\n        \
             listen 127.0.0.1:{http};\n        listen 127.0.0.1:{https} ssl;\n        \
             server_name {NAME};\n        ssl_certificate {d}/own.pem;\n        \
             ssl_certificate_key {d}/own.key;\n        \
             location / {{ return 200 \"hello\\n\"; }}\n    }}\n}}\n"
        );
        fs::write(self.conf(), conf)?;
        let (directory, management) = (self.directory, self.management);
        let pebble = format!(
            "{{ \"pebble\": {{ \"listenAddress\": \"127.0.0.1:{directory}\", \
             \"managementListenAddress\": \"127.0.0.1:{management}\", \
             \"certificate\": \"{d}/directory.pem\", \"privateKey\": \"{d}/directory.key\", \
             \"httpPort\": {http}, \"tlsPort\": {https} }} }}\n"
        );
        fs::write(self.folder.join("pebble.json"), pebble)
    }

    /// A key, and a certificate that it has signed itself.
    fn key_pair(&self, file: &str, name: &str, alternative: &str) -> Result<(), String> {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
        openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj"]);
        openssl.arg(format!("/CN={name}")).arg("-addext");
        openssl.arg(format!("subjectAltName={alternative}"));
        openssl.arg("-keyout").arg(self.folder.join(format!("{file}.key")));
        openssl.arg("-out").arg(self.folder.join(format!("{file}.pem")));
        project::output(&mut openssl).map(|_| ())
    }

    fn await_ports(&self) -> Result<(), String> {
        let end = Instant::now() + START_MAX;
        for port in [self.http, self.https, self.directory, self.management] {
            while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
                if Instant::now() > end {
                    return Err(format!("nothing listens on port {port}\n{}", self.logs()));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn play(&self, own: &str) -> Result<(), String> {
        let directory = format!("https://127.0.0.1:{}/dir", self.directory);
        let http = self.http.to_string();
        self.certbot(&[
            "--nginx",
            "--agree-tos",
            "--register-unsafely-without-email",
            "-d",
            NAME,
            "--server",
            &directory,
            "--http-01-port",
            &http,
        ])?;
        let first = self.serial()?;
        if first == own {
            return Err(format!("the certificate is still the first one\n{}", self.logs()));
        }
        self.ask_trusting()?;
        println!("certbot --nginx: installed, and trusted by curl");
        self.certbot(&["renew", "--force-renewal", "--no-random-sleep-on-renew"])?;
        if self.serial()? == first {
            return Err(format!("the certificate was not renewed\n{}", self.logs()));
        }
        self.ask_trusting()?;
        println!("certbot renew: another one, trusted by curl");
        Ok(())
    }

    fn certbot(&self, words: &[&str]) -> Result<(), String> {
        let mut certbot = Command::new("timeout");
        certbot.args([CERTBOT_MAX_S, "certbot", "-n"]).args(words);
        for (option, folder) in
            [("--config-dir", "le"), ("--work-dir", "work"), ("--logs-dir", "logs")]
        {
            certbot.arg(option).arg(self.folder.join(folder));
        }
        certbot.arg("--nginx-ctl").arg(self.nginx());
        certbot.arg("--nginx-server-root").arg(self.folder.join("etc"));
        certbot.env("REQUESTS_CA_BUNDLE", self.folder.join("directory.pem"));
        project::output(certbot.stdin(Stdio::null()))
            .map(|_| ())
            .map_err(|why| format!("{why}\n{}", self.logs()))
    }

    /// The number of the certificate that a new connection gets. A reload may need a moment.
    fn serial(&self) -> Result<String, String> {
        let script = format!(
            "openssl s_client -connect 127.0.0.1:{} -servername {NAME} </dev/null 2>/dev/null \
             | openssl x509 -noout -serial",
            self.https
        );
        let serial = project::output(Command::new("sh").args(["-c", &script]))?;
        Ok(String::from_utf8_lossy(&serial).trim().to_owned())
    }

    /// Asks as a client that trusts the authority alone.
    fn ask_trusting(&self) -> Result<(), String> {
        let root = self.folder.join("root.pem");
        let roots = format!("https://127.0.0.1:{}/roots/0", self.management);
        let mut curl = Command::new("curl");
        curl.args(["-sSf", "--cacert"]).arg(self.folder.join("directory.pem"));
        fs::write(&root, project::output(curl.arg(roots))?).map_err(|err| err.to_string())?;
        let address = format!("{NAME}:{}:127.0.0.1", self.https);
        let mut curl = Command::new("curl");
        curl.args(["-sSf", "--resolve", &address, "--cacert"]).arg(root);
        let body = project::output(curl.arg(format!("https://{NAME}:{}/", self.https)))?;
        match body == b"hello\n" {
            true => Ok(()),
            false => Err(format!("another body: {}", String::from_utf8_lossy(&body))),
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        ["error.log", "weir.out", "pebble.out", "names.out"].map(read).concat()
    }
}

impl Drop for CertbotSite {
    fn drop(&mut self) {
        self._programs.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where Go has put the authority's programs.
fn tools() -> Result<PathBuf, String> {
    let folder = project::root().join("target/backends/pebble");
    for package in PEBBLE {
        let name = package.rsplit(['/', '@']).nth(1).unwrap_or_default();
        if !folder.join(name).exists() {
            let mut go = Command::new("timeout");
            go.args([BUILD_MAX_S, "go", "install", package]).env("GOBIN", &folder);
            project::output(&mut go)?;
        }
    }
    Ok(folder)
}

/// A program that ends with the value.
struct CheckedProgram(Child);

impl CheckedProgram {
    fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self, String> {
        let fail = |err: Error| format!("{name}: {err}");
        let out = fs::File::create(folder.join(format!("{name}.out"))).map_err(fail)?;
        let err = out.try_clone().map_err(fail)?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        command.spawn().map(Self).map_err(fail)
    }
}

impl Drop for CheckedProgram {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let end = Instant::now() + START_MAX;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client that asks all the while: reloads lose no request.
#[derive(Default)]
struct Asker {
    stop: AtomicBool,
    answered: AtomicU32,
    failed: AtomicU32,
}

impl Asker {
    fn ask(&self, port: u16) {
        let url = format!("http://127.0.0.1:{port}/");
        while !self.stop.load(Ordering::Relaxed) {
            let mut curl = Command::new("curl");
            let host = format!("Host: {NAME}");
            curl.args(["-sSf", "--max-time", "10", "-H", &host, &url]);
            let answered = project::output(&mut curl).is_ok_and(|body| body == b"hello\n");
            let count = if answered { &self.answered } else { &self.failed };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn verdict(&self) -> Result<(), String> {
        let [answered, failed] = [&self.answered, &self.failed].map(|n| n.load(Ordering::Relaxed));
        println!("meanwhile {answered} requests were answered, {failed} failed");
        match failed {
            0 if answered > 0 => Ok(()),
            _ => Err(format!("{failed} requests failed while certificates were installed")),
        }
    }
}
