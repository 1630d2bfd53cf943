//! What the plans of all drop-ins have in common.

use crate::load::PlanContext;
use diskproof_model::plan::{METHOD_VERSION, Origin, PLAN_SCHEMA, Plan, Workload};

/// A plan of these workloads. Like those of the tools, their buffers lie in ordinary pages, which
/// makes large requests slower than huge pages would.
pub(crate) fn plan_of(
    tool: &str,
    context: &PlanContext<'_>,
    scratch_bytes: Option<u64>,
    mut workloads: Vec<Workload>,
) -> Plan {
    for workload in &mut workloads {
        workload.shape.ordinary_pages = true;
    }
    Plan {
        schema: PLAN_SCHEMA.to_owned(),
        method: METHOD_VERSION,
        seed: context.seed,
        targets: vec![context.target.path.clone()],
        scratch_bytes,
        workloads,
        survey: None,
        sweep: None,
        postgres: None,
        files: None,
        layers: None,
        ping: None,
        data_sheet: None,
        disk_access: None,
        like: None,
        fit_for: None,
        first_write_ns: None,
        time_limit_ns: None,
        postgres_version: None,
        skipped: Vec::new(),
        origin: Origin::Native {
            verb: format!("as {tool}"),
            argv: context.argv.to_vec(),
        },
    }
}
