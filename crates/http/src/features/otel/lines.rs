//! The lines of `http {}`: `otel_exporter`, `otel_service_name`, `otel_resource_attr`.

use std::os::unix::ffi::OsStringExt as _;

use ::session::status::StatusBook;
use conf::{Directive, Error, Load, Result, Word, units};
use fetch::{SYSTEM_AUTHORITIES, grpc_tls_transport, tls_transport, trust_in};
use net::tls::ServerTrust;
use session::identity;
use upstream::ResolverPolicy;

use super::encode::ExportPreamble;
use super::endpoint::OtelEndpoint;
use super::exporter::{BatchTerms, ExportTarget, OtelExporter};
use super::totals;

/// The most batches of a worker that may wait.
const BATCHES_MAX: u64 = 1024;
const SERVICE_NAME: &[u8] = b"service.name";
/// Fields that the exporter writes itself.
const OWN_FIELDS: [&[u8]; 7] = [
    b"host",
    b"connection",
    b"content-length",
    b"content-type",
    b"expect",
    b"te",
    b"transfer-encoding",
];

/// A name and its value.
type ResourceAttribute = (Box<[u8]>, Box<[u8]>);

/// What was read so far.
#[derive(Default)]
struct OtelLines {
    exporter: Option<ExporterLines>,
    service_name: Option<Box<[u8]>>,
    resource: Vec<ResourceAttribute>,
}

/// `otel_exporter`
struct ExporterLines {
    from: Directive,
    endpoint: Option<OtelEndpoint>,
    authorities: Option<Box<[u8]>>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    terms: BatchTerms,
    /// Lines that may be there once, and were.
    seen: Vec<Box<[u8]>>,
}

pub(super) fn declare_exporter(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    if load.own.of::<OtelLines>().exporter.is_some() {
        return Err(from.refuse("is duplicate"));
    }
    load.own.of::<StatusBook>().show_more(totals::show);
    let terms = BatchTerms { interval_ms: 5000, batch_size: 512, batch_count: 4 };
    let mut lines = ExporterLines {
        from: Directive { block: None, ..from.clone() },
        endpoint: None,
        authorities: None,
        fields: Vec::new(),
        terms,
        seen: Vec::new(),
    };
    from.block.iter().flatten().try_for_each(|line| lines.add(line))?;
    if lines.endpoint.is_none() {
        return Err(from.error("\"otel_exporter\" requires \"endpoint\""));
    }
    load.own.of::<OtelLines>().exporter = Some(lines);
    Ok(())
}

pub(super) fn declare_service_name(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = &mut load.own.of::<OtelLines>().service_name;
    if name.is_some() {
        return Err(from.refuse("is duplicate"));
    }
    *name = Some(from.arg(0).text.clone());
    Ok(())
}

/// The last of several attributes of a name counts.
pub(super) fn declare_resource_attribute(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let (name, value) = (&from.arg(0).text, &from.arg(1).text);
    load.own.of::<OtelLines>().set_resource(name, value);
    Ok(())
}

/// The exporter, if there is one.
pub(super) fn build(names: ResolverPolicy, load: &mut Load<'_>) -> Result<Option<OtelExporter>> {
    let mut lines = std::mem::take(load.own.of::<OtelLines>());
    let Some(mut exporter) = lines.exporter.take() else { return Ok(None) };
    let Some(mut endpoint) = exporter.endpoint.take() else { return Ok(None) };
    if endpoint.is_secure {
        let name = endpoint.server_name();
        let trust = exporter.trust(&name, load)?;
        let make = if endpoint.path.is_some() { tls_transport } else { grpc_tls_transport };
        let transport = make(&name, trust, None);
        endpoint.transport = Some(transport.map_err(|reason| exporter.from.error(reason))?);
    }
    let preamble = lines.preamble();
    let target = ExportTarget { endpoint, names, fields: exporter.fields, preamble };
    Ok(Some(OtelExporter::new(exporter.terms, target)))
}

impl OtelLines {
    fn set_resource(&mut self, name: &[u8], value: &[u8]) {
        match self.resource.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = value.into(),
            None => self.resource.push((name.into(), value.into())),
        }
    }

    fn preamble(mut self) -> ExportPreamble {
        let (program, version) = (identity::identity().name, identity::identity().version);
        let has_name = self.resource.iter().any(|(name, _)| **name == *SERVICE_NAME);
        match self.service_name.take() {
            Some(name) => self.set_resource(SERVICE_NAME, &name),
            None if has_name => {}
            None => {
                self.set_resource(SERVICE_NAME, format!("unknown_service:{program}").as_bytes());
            }
        }
        let resource = self.resource.iter().map(|(name, value)| (&**name, &**value));
        ExportPreamble::new(resource, (program, version))
    }
}

impl ExporterLines {
    fn add(&mut self, line: &Directive) -> Result<()> {
        let name = &*line.name.text;
        let count = match name {
            b"endpoint" | b"trusted_certificate" | b"interval" | b"batch_size" | b"batch_count" => {
                1
            }
            b"header" => 2,
            _ => return Err(unknown(line)),
        };
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        if line.args.len() != count {
            let message = format!("invalid number of arguments in \"{}\" directive", line.name);
            return Err(line.error(message + OF_EXPORTER));
        }
        if name != b"header" && self.seen.contains(&line.name.text) {
            return Err(refuse(line, "is duplicate"));
        }
        self.seen.push(line.name.text.clone());
        self.set(name, line)
    }

    fn set(&mut self, name: &[u8], line: &Directive) -> Result<()> {
        let (word, terms) = (line.arg(0), &mut self.terms);
        let invalid = || refuse(line, "invalid value").marked(word.span);
        let count = |most: u64| {
            let number = units::number(&word.text).filter(|number| (1..=most).contains(number));
            number.and_then(|number| usize::try_from(number).ok()).ok_or_else(invalid)
        };
        match name {
            b"endpoint" => {
                let endpoint = OtelEndpoint::parse(&word.text);
                let error = |reason| refuse(line, &format!("{reason} in \"{word}\""));
                self.endpoint = Some(endpoint.map_err(|reason| error(reason).marked(word.span))?);
            }
            b"trusted_certificate" => self.authorities = Some(word.text.clone()),
            b"interval" => {
                let time = units::milliseconds(&word.text).filter(|ms| *ms > 0);
                terms.interval_ms = time.ok_or_else(invalid)?;
            }
            b"batch_size" => terms.batch_size = count(u64::MAX)?,
            b"batch_count" => terms.batch_count = count(BATCHES_MAX)?,
            _ => self.fields.push(field(line, word, line.arg(1))?),
        }
        Ok(())
    }

    /// How the certificate of the collector of that name is verified.
    fn trust(&self, name: &str, load: &mut Load<'_>) -> Result<ServerTrust> {
        let text = match &self.authorities {
            Some(name) => {
                let path = load.conf_path(name).into_os_string().into_vec();
                let read = load.files.read(&path);
                let read = read.map_err(|error| self.from.error(error.describe(&path)));
                load.of_this_machine(read)?
            }
            None => SYSTEM_AUTHORITIES.iter().find_map(|path| load.files.read(path).ok()),
        };
        let Some(text) = text else {
            if load.checking {
                return Ok(ServerTrust::Any);
            }
            let message = "\"otel_exporter\" requires \"trusted_certificate\"";
            return Err(self.from.error(message).help("the system has no certificate authorities"));
        };
        trust_in(&text, name)
            .map_err(|error| self.from.error(format!("invalid \"trusted_certificate\": {error}")))
    }
}

const OF_EXPORTER: &str = " of \"otel_exporter\"";

fn refuse(line: &Directive, reason: &str) -> Error {
    line.error(format!("\"{}\" directive{OF_EXPORTER} {reason}", line.name))
}

fn unknown(line: &Directive) -> Error {
    const NAMES: [&str; 6] =
        ["endpoint", "trusted_certificate", "header", "interval", "batch_size", "batch_count"];
    let error = line.error(format!("unknown directive \"{}\" in \"otel_exporter\"", line.name));
    error.meant(&line.name.text, NAMES)
}

/// A field of requests to the collector. As in nginx-otel, its name is in lower case.
fn field(line: &Directive, name: &Word, value: &Word) -> Result<(Vec<u8>, Vec<u8>)> {
    let lower = name.text.to_ascii_lowercase();
    let is_in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let is_valid = !lower.is_empty() && lower.iter().all(is_in_name);
    if !is_valid || OWN_FIELDS.contains(&&lower[..]) {
        return Err(refuse(line, "has invalid header name").marked(name.span));
    }
    if !value.text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(refuse(line, "has invalid header value").marked(value.span));
    }
    Ok((lower, value.text.to_vec()))
}
