//! What the limit towards a backend is worth: one that gets slower the more it has to do at once,
//! behind a server with and without the limit, in turn.
//!
//! The measurement of the document that asked for the limit: 200, 300 and 500 clients. Not a
//! measurement of the server's own cost, which is `bench`.

mod report;
mod variant;

use std::path::{Path, PathBuf};

use processes::server::{MeasuredServer, raise_descriptors};

use super::{ProofFolder, ProofVerdict, free_port};
use crate::args::Args;
use crate::weir_backend::WeirBackend;
use crate::{packages, wrk};
use report::{LimitReport, LimitRun};
use variant::{CLIENTS, LIMITED, NGINX, Variant, WEIR};

/// A request that is alone takes 25 ms. With 150 in progress it takes twice as long: requests per
/// second are the most there, and half as many with nearly four times the requests. It sleeps, so
/// it costs no CPU worth the name.
const BACKEND: [&str; 2] = ["--slow", "25ms,150"];

/// The backend does not notice that a client has gone, as few do: the request is still in progress
/// there, and is so here. Without that it has more than the limit when wrk ends.
const CONF: &str = "worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 100000000;
    {http lines}
    upstream backend {
        server 127.0.0.1:{backend};
        {upstream lines}
        keepalive 800; keepalive_requests 100000000;
    }
    server {
        listen 127.0.0.1:{port} backlog=4096;
        location / {
            proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_ignore_client_abort on;
        }
    }
}
";

struct LimitPlan {
    weir: PathBuf,
    nginx: Option<PathBuf>,
    folder: ProofFolder,
    seconds: u64,
}

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let rounds: usize = args.parsed("--rounds", 1)?;
    let seconds = args.parsed("--seconds", 5)?;
    args.end()?;
    if packages::find("wrk").is_none() {
        return Ok(ProofVerdict::Skipped("wrk is not installed (apt-get install wrk)".into()));
    }
    raise_descriptors()?;
    let (folder, nginx) = (ProofFolder::new("limit")?, packages::find("nginx"));
    let plan = LimitPlan { weir: weir.into(), nginx, folder, seconds };
    let report = plan.measure(rounds)?;
    print!("{}", report.table(&plan.variants()));
    let verdict = report.verdict(&LIMITED).map_err(|why| format!("limit: {why}"));
    verdict.map(|()| ProofVerdict::Right)
}

impl LimitPlan {
    fn variants(&self) -> Vec<&'static Variant> {
        let nginx = self.nginx.iter().map(|_| &NGINX);
        nginx.chain([&WEIR, &LIMITED]).collect()
    }

    /// Every variant with every number of clients, one after the other, and again.
    fn measure(&self, rounds: usize) -> Result<LimitReport, String> {
        let mut report = LimitReport::default();
        for _ in 0..rounds {
            for clients in CLIENTS {
                for variant in self.variants() {
                    report.0.push(self.run(variant, clients)?);
                }
            }
        }
        Ok(report)
    }

    fn run(&self, variant: &'static Variant, clients: usize) -> Result<LimitRun, String> {
        let backend = WeirBackend::start(&self.weir, 0, &BACKEND)?;
        let port = free_port()?;
        let text = CONF
            .replace("{http lines}", variant.http)
            .replace("{upstream lines}", variant.upstream)
            .replace("{d}", &self.folder.0.to_string_lossy())
            .replace("{backend}", &backend.port.to_string())
            .replace("{port}", &port.to_string());
        let conf = self.folder.write("nginx.conf", &text)?;
        let _server = MeasuredServer::start(self.binary(variant), &conf, port)?;
        let url = format!("http://127.0.0.1:{port}/");
        let summary = wrk::run(&url, clients, self.seconds)?;
        Ok(LimitRun { variant, clients, summary, highest: backend.highest()? })
    }

    fn binary(&self, variant: &Variant) -> &Path {
        match &self.nginx {
            Some(nginx) if *variant == NGINX => nginx,
            _ => &self.weir,
        }
    }
}
