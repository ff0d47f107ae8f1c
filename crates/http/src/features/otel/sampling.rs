//! Whether a request is sampled, as `otel_trace` says.

use conf::{Template, VariableId};
use session::Configuration as _;
use wire::trace_context::hex;

use super::context;
use super::settings::{TraceRule, TraceValue};
use crate::exchange::Exchange;

impl TraceRule {
    pub(super) fn samples(&self, x: &mut Exchange) -> bool {
        let (template, trace_id) = match &self.value {
            TraceValue::Fixed(samples) => return *samples,
            TraceValue::Computed { template, trace_id } => (template, *trace_id),
        };
        if let Some(samples) = samples_trace(template, trace_id, x) {
            return samples;
        }
        let mut value = x.scratch();
        template.render(x, &mut value);
        let samples = is_yes(&value);
        x.give_scratch(value);
        samples
    }
}

/// The decision of a variable that depends on the trace's id alone, such as one of `split_clients
/// $otel_trace_id`. The variables are not computed: the value would be the same. `None`: it depends
/// on more.
fn samples_trace(template: &Template, trace_id: VariableId, x: &mut Exchange) -> Option<bool> {
    let id = template.as_variable().filter(|id| !x.values.is_known(*id))?;
    if x.generation.variable(id).choice.as_ref()?.source() != Some(trace_id) {
        return None;
    }
    let digits = hex::<16, 32>(&context::ids(x).trace_id);
    let choice = x.generation.variable(id).choice.as_ref()?;
    Some(is_yes(choice.choose(&digits)))
}

fn is_yes(value: &[u8]) -> bool {
    matches!(value, b"on" | b"1")
}
