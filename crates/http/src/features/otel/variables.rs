//! The variables.

use wire::trace_context::hex;

use super::context::ids;
use crate::variables::{BuiltIn, VariableTable, maybe, some};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_otel_module",
    &[
        BuiltIn::fresh(
            "otel_trace_id",
            "The trace of the request, in 32 hexadecimal digits: with `otel_trace_context \
             extract`, the one that its fields name.",
            |x, out| some(out, &hex::<16, 32>(&ids(x).trace_id)),
        ),
        BuiltIn::fresh(
            "otel_span_id",
            "The span of the request, in 16 hexadecimal digits.",
            |x, out| some(out, &hex::<8, 16>(&ids(x).span_id)),
        ),
        BuiltIn::fresh(
            "otel_parent_id",
            "The span that caused the request, as its fields name it, in 16 hexadecimal digits.",
            |x, out| {
                maybe(
                    out,
                    ids(x)
                        .parent
                        .map(|parent| hex::<8, 16>(&parent))
                        .as_ref()
                        .map(|digits| &digits[..]),
                )
            },
        ),
        BuiltIn::fresh(
            "otel_parent_sampled",
            "`1` if the fields of the request say that its trace is sampled, otherwise `0`.",
            |x, out| some(out, if ids(x).parent_sampled { b"1" } else { b"0" }),
        ),
    ],
);
