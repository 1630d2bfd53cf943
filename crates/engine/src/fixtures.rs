//! What the tests of this crate start from.

use diskproof_model::plan::{Access, CachePolicy, Distribution, EngineChoice, Layout, Span, Stop, SyncPolicy, Verify, Workload};

/// Random reads of 8 KiB at depth 1, without limits.
pub fn workload(name: &str) -> Workload {
    Workload {
        name: name.to_owned(),
        read_permille: 1000,
        access: Access::Random { distribution: Distribution::Uniform },
        block_bytes: 8192,
        block_mix: Vec::new(),
        depth: 1,
        workers: 1,
        span: Span::default(),
        stop: Stop::default(),
        warmup_ns: 0,
        rate: None,
        sync: SyncPolicy::None,
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: Layout::Needed,
        verify: Verify::Off,
    }
}
