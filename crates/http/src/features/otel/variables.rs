//! The variables.

use wire::trace_context::write_hex;

use super::context::ids;
use crate::variables::{BuiltIn, VariableTable, some};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_otel_module",
    &[
        BuiltIn::fresh(
            "otel_trace_id",
            "The trace of the request, in 32 hexadecimal digits: with `otel_trace_context \
             extract`, the one that its fields name.",
            |x, out| hex(&ids(x).trace_id, out),
        ),
        BuiltIn::fresh(
            "otel_span_id",
            "The span of the request, in 16 hexadecimal digits.",
            |x, out| hex(&ids(x).span_id, out),
        ),
        BuiltIn::fresh(
            "otel_parent_id",
            "The span that caused the request, as its fields name it, in 16 hexadecimal digits.",
            |x, out| ids(x).parent.is_some_and(|parent| hex(&parent, out)),
        ),
        BuiltIn::fresh(
            "otel_parent_sampled",
            "`1` if the fields of the request say that its trace is sampled, otherwise `0`.",
            |x, out| some(out, if ids(x).parent_sampled { b"1" } else { b"0" }),
        ),
    ],
);

fn hex(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    write_hex(bytes, &mut out[start..]);
    true
}
