#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ingress::fuzz::ingress_plan(input));
