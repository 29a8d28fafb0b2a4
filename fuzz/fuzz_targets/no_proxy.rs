//! NO_PROXY is whatever the environment says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::no_proxy::NoProxy;

fuzz_target!(|input: (&str, &str, u16)| {
    let (list, host, port) = input;
    let direct = NoProxy::parse(list).matches(host, port);
    // More entries can only take more hosts off the proxy.
    assert!(!direct || NoProxy::parse(&format!("{list},other.example")).matches(host, port));
    assert!(NoProxy::parse(&format!("{list},*")).matches(host, port));
});
