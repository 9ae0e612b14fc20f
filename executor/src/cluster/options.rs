//! Settings that plans for the cluster are made and sent with.
//!
//! Fingerprints are taken of plans that were made without them, so they may change how rows are computed and never which.

use ballista_core::extension::SessionConfigExt;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionConfig;

/// Cores that a plan is spread over, at the most: each of its shuffles makes a file for each pair of tasks.
const PARTITIONS_MAX: usize = 256;

/// Bytes of a message between server and executors: a plan with all its files, and those of many tasks at once.
pub(super) const MESSAGE_BYTES: usize = 256 << 20;

/// Makes options those of a plan for so many cores.
pub fn planning_options(options: &mut ConfigOptions, n_cores: usize) {
    // One core has one partition to read and one to write at least.
    options.execution.target_partitions = n_cores.clamp(2, PARTITIONS_MAX);
    let optimizer = &mut options.optimizer;
    // Ballista drops it.
    optimizer.enable_round_robin_repartition = false;
    // Who makes them and who waits for them are in different stages.
    optimizer.enable_dynamic_filter_pushdown = false;
    optimizer.enable_topk_dynamic_filter_pushdown = false;
    optimizer.enable_join_dynamic_filter_pushdown = false;
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Their results are in the memory of one process.
    optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    // In which order a scan takes its files is not written down.
    optimizer.enable_sort_pushdown = false;
    // An InterleaveExec has no place in stages.
    optimizer.prefer_existing_union = true;
    // Both sides by their keys: a side that every task reads whole is one more way to count rows twice.
    optimizer.prefer_hash_join = true;
    optimizer.hash_join_single_partition_threshold = 0;
    optimizer.hash_join_single_partition_threshold_rows = 0;
}

/// Rules that are left out when a plan for the cluster is made: executors apply them, and get to see files.
pub fn stays_behind(rule: &dyn PhysicalOptimizerRule) -> bool {
    matches!(rule.name(), "name_scanned_files" | "unbundle_files" | "stoppable")
}

/// What a plan is sent with: the settings of its statement, and Ballista's.
pub(super) fn sending_config(statement: &ConfigOptions, n_cores: usize) -> Result<SessionConfig> {
    let mut config = SessionConfig::new().upgrade_for_ballista();
    let options = config.options_mut();
    for entry in statement.entries() {
        // Ours mean nothing there, and some of them nobody else should see.
        if let Some(value) = &entry.value
            && entry.key.starts_with("datafusion.")
            && !entry.key.starts_with("datafusion.runtime.")
        {
            options.set(&entry.key, value)?;
        }
    }
    planning_options(options, n_cores);
    // The scheduler optimizes stages once more: scans are split already.
    options.optimizer.repartition_file_scans = false;
    let ballista = [
        ("ballista.scheduler.max_partitions_per_task", "1".to_owned()),
        ("ballista.planner.adaptive.enabled", "false".to_owned()),
        ("ballista.optimizer.broadcast_join_threshold_bytes", "0".to_owned()),
        ("ballista.optimizer.broadcast_join_threshold_rows", "0".to_owned()),
        ("ballista.client.grpc_max_message_size", MESSAGE_BYTES.to_string()),
    ];
    for (name, value) in ballista {
        options.set(name, &value)?;
    }
    Ok(config)
}
