//! [`Salt`]: what is not in a plan but decides about its rows.
//!
//! Versions of the encoding, of Nectarine and of its libraries; and every setting that is not known to leave rows alone.
//! A setting that is not listed counts: unknown means another key, never a wrong row.

use datafusion::config::ConfigOptions;
use nectarine_catalog::Fingerprint;

use super::ENCODING;
use super::encoder::{Encoder, Tag};

/// Settings that act before there is a plan, on how it is printed, or on how fast it runs.
const HARMLESS: [&str; 41] = [
    "datafusion.catalog.create_default_catalog_and_schema",
    "datafusion.catalog.default_catalog",
    "datafusion.catalog.default_schema",
    "datafusion.catalog.information_schema",
    "datafusion.catalog.location",
    "datafusion.catalog.format",
    "datafusion.execution.batch_size",
    "datafusion.execution.perfect_hash_join_small_build_threshold",
    "datafusion.execution.perfect_hash_join_min_key_density",
    "datafusion.execution.coalesce_batches",
    "datafusion.execution.collect_statistics",
    "datafusion.execution.target_partitions",
    "datafusion.execution.planning_concurrency",
    "datafusion.execution.spill_compression",
    "datafusion.execution.sort_spill_reservation_bytes",
    "datafusion.execution.sort_in_place_threshold_bytes",
    "datafusion.execution.sort_pushdown_buffer_capacity",
    "datafusion.execution.max_spill_file_size_bytes",
    "datafusion.execution.meta_fetch_concurrency",
    "datafusion.execution.minimum_parallel_output_files",
    "datafusion.execution.soft_max_rows_per_output_file",
    "datafusion.execution.max_buffered_batches_per_output_file",
    "datafusion.execution.split_file_groups_by_statistics",
    "datafusion.execution.keep_partition_by_columns",
    "datafusion.execution.enable_file_stream_work_stealing",
    "datafusion.execution.skip_partial_aggregation_probe_ratio_threshold",
    "datafusion.execution.skip_partial_aggregation_probe_rows_threshold",
    "datafusion.execution.use_row_number_estimates_to_optimize_partitioning",
    "datafusion.execution.enforce_batch_size_in_joins",
    "datafusion.execution.objectstore_writer_buffer_size",
    "datafusion.execution.hash_join_buffering_capacity",
    "datafusion.execution.parquet.enable_page_index",
    "datafusion.execution.parquet.pruning",
    "datafusion.execution.parquet.metadata_size_hint",
    "datafusion.execution.parquet.pushdown_filters",
    "datafusion.execution.parquet.reorder_filters",
    "datafusion.execution.parquet.force_filter_selections",
    "datafusion.execution.parquet.bloom_filter_on_read",
    "datafusion.execution.parquet.max_predicate_cache_size",
    "datafusion.execution.parquet.max_in_list_size",
    "datafusion.execution.enable_migration_aggregate",
];

/// Groups of which all are harmless: parsing and optimizing act before the key is taken or change no rows; printing and
/// explaining act after; our own settings decide what is kept, never what is computed.
const HARMLESS_GROUPS: [&str; 6] = [
    "datafusion.sql_parser.",
    "datafusion.optimizer.",
    "datafusion.explain.",
    "datafusion.format.",
    "datafusion.runtime.",
    "nectarine.",
];

/// Whether a setting may decide about the rows of a plan that is made.
pub fn changes_rows(key: &str) -> bool {
    !HARMLESS.contains(&key) && !HARMLESS_GROUPS.iter().any(|group| key.starts_with(group))
}

/// What computes: an entry that another build made is another entry.
#[derive(Clone, Copy)]
struct Versions {
    /// Of the encoding.
    encoding: u32,
    nectarine: &'static str,
    datafusion: &'static str,
    arrow: &'static str,
    /// Hashes and sketches may differ between kinds of machines.
    machine: &'static str,
}

const VERSIONS: Versions = Versions {
    encoding: ENCODING,
    nectarine: env!("CARGO_PKG_VERSION"),
    datafusion: datafusion::DATAFUSION_VERSION,
    arrow: arrow::ARROW_VERSION,
    machine: std::env::consts::ARCH,
};

/// The fingerprint of everything around a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salt(Fingerprint);

impl Salt {
    /// The salt of plans made with `config`.
    pub fn new(config: &ConfigOptions) -> Self {
        Self::of(&VERSIONS, config)
    }

    fn of(versions: &Versions, config: &ConfigOptions) -> Self {
        let mut encoder = Encoder::new(Tag::Salt);
        encoder
            .number(u64::from(versions.encoding))
            .text(versions.nectarine)
            .text(versions.datafusion)
            .text(versions.arrow)
            .text(versions.machine);
        let mut settings = vec![];
        for entry in config.entries() {
            if changes_rows(&entry.key) {
                let mut setting = Encoder::default();
                setting.text(&entry.key);
                match &entry.value {
                    Some(value) => setting.tag(Tag::Some).text(value),
                    None => setting.tag(Tag::None),
                };
                settings.push(setting.into_bytes());
            }
        }
        encoder.set(settings);
        Self(encoder.finish())
    }

    /// The versions that count, for people.
    pub fn versions() -> String {
        let Versions { encoding, nectarine, datafusion, arrow, machine } = VERSIONS;
        format!("{nectarine} (datafusion {datafusion}, arrow {arrow}, encoding {encoding}, {machine})")
    }

    pub(super) fn fingerprint(&self) -> &Fingerprint {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_counts() {
        let config = ConfigOptions::default();
        let base = Salt::new(&config);
        assert_eq!(base, Salt::of(&VERSIONS, &config));
        for (what, other) in [
            ("encoding", Versions { encoding: VERSIONS.encoding + 1, ..VERSIONS }),
            ("nectarine", Versions { nectarine: "0.0.0", ..VERSIONS }),
            ("datafusion", Versions { datafusion: "0.0.0", ..VERSIONS }),
            ("arrow", Versions { arrow: "0.0.0", ..VERSIONS }),
            ("machine", Versions { machine: "pdp11", ..VERSIONS }),
        ] {
            assert_ne!(base, Salt::of(&other, &config), "{what}");
        }
    }
}
