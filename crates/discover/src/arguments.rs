//! The arguments of `weir discover`.

use std::path::{Path, PathBuf};

use crate::drive::{Drive, tell};
use crate::http::{HttpClient, HttpPlace, TlsIdentity};
use crate::kubernetes::ApiServerOptions;
use crate::metrics_page::MetricsPage;
use crate::sources::Source;
use crate::sources::consul::ConsulSource;
use crate::sources::docker::DockerSource;
use crate::sources::etcd::{EtcdSource, EtcdUser};
use crate::sources::files::FilesSource;
use crate::sources::kubernetes::{KubernetesServices, KubernetesSource};
use crate::sources::xds::{ClusterGroups, XdsSource, encoded_node};
use crate::wanted::GroupKey;
use crate::weir_api::WeirApi;

/// `weir discover --help` prints it, too.
pub const HELP: &str = include_str!("help.txt");

/// The control socket of the server, unless another is named.
pub const SERVER: &str = "unix:/run/weir.sock";
const DOCKER: &str = "unix:/var/run/docker.sock";
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";
const EMPTY_AFTER_MS: u64 = 30_000;

#[derive(Debug)]
pub struct DiscoverArguments {
    source: String,
    words: Vec<String>,
    server: String,
    owner: Option<String>,
    empty_after_ms: Option<u64>,
    metrics: Option<String>,
    is_once: bool,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    user: Option<String>,
    password: Option<PathBuf>,
    node: Option<String>,
    node_file: Option<PathBuf>,
    is_delta: bool,
    kube: Option<String>,
    tag: Option<String>,
    token: Option<PathBuf>,
    reads_environment: bool,
}

impl DiscoverArguments {
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut parsed = Self {
            source: String::new(),
            words: Vec::new(),
            server: SERVER.to_owned(),
            owner: None,
            empty_after_ms: Some(EMPTY_AFTER_MS),
            metrics: None,
            is_once: false,
            roots: None,
            certificate: None,
            key: None,
            user: None,
            password: None,
            node: None,
            node_file: None,
            is_delta: false,
            kube: None,
            tag: None,
            token: None,
            reads_environment: false,
        };
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{word} requires a value"));
            match &**word {
                "-s" => parsed.server = value()?,
                "-o" => parsed.owner = Some(owner(value()?)?),
                "--empty-after" => parsed.empty_after_ms = time(&value()?)?,
                "--metrics" => parsed.metrics = Some(value()?),
                "--once" => parsed.is_once = true,
                "--tag" => parsed.tag = Some(value()?),
                "--token" => parsed.token = Some(value()?.into()),
                "--virtual-host" => parsed.reads_environment = true,
                "--kube" => parsed.kube = Some(value()?),
                "--cert" => parsed.certificate = Some(value()?.into()),
                "--key" => parsed.key = Some(value()?.into()),
                "--user" => parsed.user = Some(value()?),
                "--password-file" => parsed.password = Some(value()?.into()),
                "--node" => parsed.node = Some(value()?),
                "--node-file" => parsed.node_file = Some(value()?.into()),
                "--delta" => parsed.is_delta = true,
                "--ca" => parsed.roots = Some(value()?.into()),
                _ if word.starts_with('-') => {
                    return Err(format!("unknown option \"{word}\" (weir discover --help)"));
                }
                _ if parsed.source.is_empty() => parsed.source.clone_from(word),
                _ => parsed.words.push(word.clone()),
            }
        }
        match parsed.source.is_empty() {
            true => Err("a source is missing (weir discover --help)".to_owned()),
            false => Ok(parsed),
        }
    }

    /// Makes everything that is needed to run.
    pub fn prepare(self) -> Result<(Drive, Vec<Box<dyn Source>>), String> {
        let sources = self.sources()?;
        let place = HttpPlace::parse(&self.server, self.roots(ROOTS))?;
        let owner = self.owner.unwrap_or(self.source);
        let metrics = self.metrics.map(|address| {
            MetricsPage::serve(&address).map_err(|error| format!("{address}: {error}"))
        });
        let drive = Drive {
            api: WeirApi::new(place, owner),
            empty_after_ms: self.empty_after_ms,
            metrics: metrics.transpose()?,
            is_once: self.is_once,
            log: tell,
        };
        Ok((drive, sources))
    }

    fn sources(&self) -> Result<Vec<Box<dyn Source>>, String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let client = |url: &str| self.place(url).map(HttpClient::new);
        match (&*self.source, &words[..]) {
            ("files", [_, ..]) => {
                let paths = words.iter().map(PathBuf::from).collect();
                Ok(vec![Box::new(FilesSource::new(paths))])
            }
            ("consul", [url, services @ ..]) if !services.is_empty() => {
                services.iter().map(|service| self.consul(client(url)?, service)).collect()
            }
            ("docker", [] | [_]) => {
                let client = client(words.first().unwrap_or(&DOCKER))?;
                Ok(vec![Box::new(DockerSource::new(client, self.reads_environment))])
            }
            ("etcd", [url, prefix]) => {
                let source = EtcdSource::new(client(url)?, prefix, self.etcd_user()?);
                Ok(vec![Box::new(source)])
            }
            ("kubernetes", [_, ..]) => {
                words.iter().map(|service| self.kubernetes(service)).collect()
            }
            ("xds", [url, clusters @ ..]) => Ok(vec![self.xds(url, clusters)?]),
            (known @ ("files" | "consul" | "docker" | "etcd" | "kubernetes" | "xds"), _) => {
                Err(format!("{known}: wrong arguments (weir discover --help)"))
            }
            (other, _) => Err(format!("unknown source \"{other}\" (weir discover --help)")),
        }
    }

    fn roots<'a>(&'a self, default: &'a str) -> &'a Path {
        self.roots.as_deref().unwrap_or(Path::new(default))
    }

    /// Where a source is, to which this program shows its certificate.
    fn place(&self, url: &str) -> Result<HttpPlace, String> {
        HttpPlace::parse(url, self.roots(ROOTS))?.with_identity(self.identity()?)
    }

    fn identity(&self) -> Result<Option<TlsIdentity>, String> {
        match (self.certificate.clone(), self.key.clone()) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(TlsIdentity { certificate, key })),
            _ => Err("--cert and --key belong together".to_owned()),
        }
    }

    fn etcd_user(&self) -> Result<Option<EtcdUser>, String> {
        match (self.user.clone(), self.password.clone()) {
            (None, None) => Ok(None),
            (Some(name), Some(password)) => Ok(Some(EtcdUser { name, password })),
            _ => Err("--user and --password-file belong together".to_owned()),
        }
    }

    fn xds(&self, url: &str, clusters: &[&str]) -> Result<Box<dyn Source>, String> {
        let mut groups = ClusterGroups::new();
        for word in clusters {
            let (cluster, group) = word.rsplit_once('=').unwrap_or((word, word));
            let group = GroupKey::parse(group)?;
            let is_taken = groups.values().any(|other| *other == group);
            if is_taken || groups.insert(cluster.to_owned(), group).is_some() {
                return Err(format!("\"{word}\" names a cluster or a group again"));
            }
        }
        let node = encoded_node(self.node.as_deref(), self.node_file.as_deref())?;
        let (place, token) = (self.place(url)?, self.token.clone());
        Ok(Box::new(XdsSource::new(place, groups, self.is_delta, node, token)))
    }

    fn kubernetes(&self, services: &str) -> Result<Box<dyn Source>, String> {
        let options = ApiServerOptions {
            url: self.kube.clone(),
            roots: self.roots.clone(),
            identity: self.identity()?,
            token: self.token.clone(),
        };
        let services = KubernetesServices::parse(services)?;
        Ok(Box::new(KubernetesSource::new(options.find()?, services)))
    }

    fn consul(&self, client: HttpClient, service: &str) -> Result<Box<dyn Source>, String> {
        let (service, group) = service.split_once('=').unwrap_or((service, service));
        Ok(Box::new(ConsulSource {
            client,
            path: ConsulSource::path(service, self.tag.as_deref()),
            group: GroupKey::parse(group)?,
            token: self.token.clone(),
        }))
    }
}

fn owner(text: String) -> Result<String, String> {
    let is_good = !text.is_empty() && text.len() <= 100;
    let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    (is_good && is_printable).then_some(text).ok_or_else(|| "invalid owner".to_owned())
}

/// Reads a time, such as `30s`, in milliseconds. `None`: never.
pub fn time(text: &str) -> Result<Option<u64>, String> {
    if text == "never" {
        return Ok(None);
    }
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|_| factor > 0).map(Some).ok_or_else(|| format!("invalid time \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<DiscoverArguments, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        DiscoverArguments::parse(&words)
    }

    #[test]
    fn sources_and_options_are_read() {
        let parsed = parse("files /a /b -s /run/x --empty-after 5m -o me --once").unwrap();
        assert_eq!((&*parsed.source, parsed.words.len()), ("files", 2));
        assert_eq!((parsed.empty_after_ms, parsed.is_once), (Some(300_000), true));
        assert_eq!(parsed.owner.as_deref(), Some("me"));
        assert_eq!(parse("files /a --empty-after never").unwrap().empty_after_ms, None);
        for wrong in ["", "files --x", "files /a -s", "files /a --empty-after 5d"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for good in [
            "files /a",
            "consul http://a web web=app",
            "docker",
            "etcd http://a /w/",
            "kubernetes a/b --kube http://a",
            "xds http://a",
            "xds http://a web outbound|80||web.shop=app --delta --node me",
            "kubernetes * a/*:http=x-{service} --kube http://a",
        ] {
            assert!(parse(good).unwrap().prepare().is_ok(), "{good}");
        }
        for wrong in [
            "files",
            "fiels /a",
            "files /a -s nowhere",
            "consul http://a",
            "etcd http://a",
            "etcd http://a /w/ --cert /a",
            "etcd http://a /w/ --user weir",
            "xds",
            "xds http://a web web=app",
            "xds http://a web=app api=app",
            "xds http://a --node-file /none",
        ] {
            assert!(parse(wrong).unwrap().prepare().is_err(), "{wrong}");
        }
    }
}
