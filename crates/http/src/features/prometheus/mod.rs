//! `prometheus`: the program's state for Prometheus, in families of its own or by a template.

mod families;
mod page;
mod template;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::status::StatusBook;
use ::session::status::shapes::{Shape, own};
use conf::{Directive, Load, Result, Template, Value};
use wire::Method;

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;
use crate::status_page::{self, WrittenPage};
use crate::variables::{BuiltIn, VariableTable};
use page::{FamiliesPage, MetricsFormat};
use template::{PrometheusTemplate, TemplateValue};

conf::directives! {
    declare {
        /// Defines metrics by name, for `prometheus NAME`. A line has the metric with its labels,
        /// its value, and parameters:
        /// - `path=PATH`, `path=~REGEX`: the values of Angie's tree that it shows; groups of the
        ///   expression are `$1` and so on, and `$p8s_value` is the value
        /// - `type=counter | gauge | ...`
        /// - `help=TEXT`
        ///
        /// Without a path, the metric has one value, in which any variables can be used.
        ///
        /// Syntax: NAME
        /// Differs: not in nginx's sources; as in Angie.
        ///
        /// ```nginx
        /// prometheus_template zones {
        ///     'requests_total{zone="$1"}' $p8s_value
        ///         path=~^/http/server_zones/([^/]+)/requests/total$
        ///         type=counter
        ///         'help=Requests of a zone.';
        /// }
        /// ```
        prometheus_template(1..=1) {} in MAIN => template::declare;
    }

    in LOCATION;

    /// Answers with the program's state for Prometheus: in text format, or as OpenMetrics to those
    /// who accept it. Without a name, the page has what nginx-prometheus-exporter shows
    /// (`nginx_*`), and what Weir knows (`weir_*`); with a name, the metrics of that
    /// `prometheus_template`.
    ///
    /// Syntax: [NAME]
    /// Differs: not in nginx's sources; as in Angie. Without a name, it is Weir's own.
    ///
    /// ```nginx
    /// location = /metrics {
    ///     prometheus;
    ///     allow 127.0.0.1;
    ///     deny all;
    /// }
    /// ```
    prometheus + IF_IN_LOCATION: Option<PrometheusLine>,
}

/// The line, with the name of a template.
#[derive(Clone)]
pub struct PrometheusLine {
    template: Option<(Box<[u8]>, Directive)>,
    /// The header field of that name.
    accept: Template,
}

impl Value for PrometheusLine {
    const ARGS: RangeInclusive<usize> = 0..=1;
    const INHERITED: conf::Inherited = conf::Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        load.own.of::<StatusBook>().show();
        let template = from.args.first().map(|name| (name.text.clone(), from.clone()));
        let accept = Template::from_bytes(b"$http_accept", &from.name, from, load)?;
        Ok(Self { template, accept })
    }
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_prometheus_module",
    &[BuiltIn::fresh(
        "p8s_value",
        "In a `prometheus_template`, the value that is shown.",
        |x, out| {
            let value = x.states.find::<TemplateValue>().and_then(TemplateValue::get);
            value.is_some_and(|value| {
                out.extend_from_slice(value);
                true
            })
        },
    )],
);

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(PrometheusLine { template, accept }) = conf.prometheus.clone() else {
        return Ok(());
    };
    match &template {
        None => location.exclusive("prometheus", move |x| families(x, &accept)),
        Some((name, from)) => {
            let template = PrometheusTemplate::find(name, from, location.load)?;
            location.exclusive("prometheus", move |x| match is_read(x) {
                true => template.answer(x),
                false => Flow::Status(405),
            });
        }
    }
    Ok(())
}

/// The type of the page in Prometheus's text format.
pub(crate) const TEXT_TYPE: &[u8] = b"text/plain; version=0.0.4; charset=utf-8";

/// The page in Prometheus's text format.
pub(crate) fn text() -> Vec<u8> {
    let mut page = FamiliesPage::new(own(b"", Shape::default()), MetricsFormat::Text);
    let mut text = Vec::new();
    while page.write_piece(&mut text) {}
    text
}

fn families(x: &mut Exchange, accept: &Template) -> Flow {
    if !is_read(x) {
        return Flow::Status(405);
    }
    let (format, content_type): (MetricsFormat, &[u8]) = match accepts_open_metrics(x, accept) {
        true => (
            MetricsFormat::OpenMetrics,
            b"application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        false => (MetricsFormat::Text, TEXT_TYPE),
    };
    let tree = own(b"", Shape::default());
    status_page::answer(x, content_type, FamiliesPage::new(tree, format))
}

fn is_read(x: &Exchange) -> bool {
    matches!(x.request.head.method, Method::Get | Method::Head)
}

fn accepts_open_metrics(x: &mut Exchange, accept: &Template) -> bool {
    const TYPE: &[u8] = b"application/openmetrics-text";
    let mut accepted = Vec::new();
    accept.render(x, &mut accepted);
    accepted.windows(TYPE.len()).any(|part| part.eq_ignore_ascii_case(TYPE))
}
