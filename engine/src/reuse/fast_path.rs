//! [`FastPath`]: the same text with the same settings over the same snapshot is not planned again.
//!
//! ```text
//!   text, settings, catalog version, user, folder --> tables it read, their extents then, the entry of its answer
//!   extents now = extents then, entry still there, rows in memory --> answer
//! ```
//!
//! Keeps true   only what depends on nothing else is remembered: no function of time or luck, no table of a session, no
//!              prepared statement. Everything that SQL can change (views, functions, tables, rights) changes the catalog version.
//!              Nobody gets the answer of another user: what he may read is seen when he plans the statement himself.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};
use moka::sync::Cache;
use nectarine_catalog::{CacheEntry, Extent, Fingerprint, FingerprintBuilder, TableDef};
use nectarine_planner::canonical::BuiltIns;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::access::Who;
use crate::named::NamedTable;

/// Statements that are remembered.
const REMEMBERED_MAX: u64 = 10_000;
/// Longer texts are planned each time.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A table and the digest of the extents that a statement read of it.
pub(crate) type Read = (Arc<TableDef>, Fingerprint);

/// The digest of a list of extents.
pub(crate) fn extents_digest(extents: &[Arc<Extent>]) -> Fingerprint {
    let mut bytes = Vec::with_capacity(extents.len() * 32);
    extents.iter().for_each(|extent| bytes.extend_from_slice(extent.fingerprint.as_bytes()));
    Fingerprint::of_bytes(&bytes)
}

/// What answered a statement.
pub(crate) struct Remembered {
    pub(crate) reads: Vec<Read>,
    /// FP_PD of the whole answer.
    pub(crate) root: Fingerprint,
    /// Its columns as this statement names them.
    pub(crate) schema: SchemaRef,
    /// Extents that it is about.
    pub(crate) n_extents: usize,
    /// Names the statement in the program store.
    pub(crate) source: Option<Fingerprint>,
    /// The entry, once somebody asked for it.
    pub(crate) entry: OnceCell<Option<Arc<CacheEntry>>>,
}

impl Remembered {
    pub(crate) fn new(
        reads: Vec<Read>,
        root: Fingerprint,
        schema: SchemaRef,
        n_extents: usize,
        source: Option<Fingerprint>,
    ) -> Self {
        Self { reads, root, schema, n_extents, source, entry: OnceCell::new() }
    }
}

/// Statements of all sessions and what answered them.
#[derive(Clone)]
pub(crate) struct FastPath {
    statements: Cache<Fingerprint, Arc<Remembered>>,
}

impl Default for FastPath {
    fn default() -> Self {
        Self { statements: Cache::new(REMEMBERED_MAX) }
    }
}

impl FastPath {
    pub(crate) fn get(&self, statement: &Fingerprint) -> Option<Arc<Remembered>> {
        self.statements.get(statement)
    }

    pub(crate) fn remember(&self, statement: Fingerprint, remembered: Remembered) {
        self.statements.insert(statement, Arc::new(remembered));
    }

    pub(crate) fn forget(&self, statement: &Fingerprint) {
        self.statements.invalidate(statement);
    }

    /// Forgets all statements.
    pub(crate) fn clear(&self) {
        self.statements.invalidate_all();
    }
}

/// The digest of a session's settings, computed when they change.
#[derive(Default)]
pub(crate) struct SettingsDigest {
    known: Mutex<Option<(Arc<ConfigOptions>, Fingerprint)>>,
}

impl SettingsDigest {
    pub(crate) fn of(&self, config: &Arc<ConfigOptions>) -> Fingerprint {
        let mut known = self.known.lock();
        if let Some((same, digest)) = known.as_ref()
            && Arc::ptr_eq(same, config)
        {
            return *digest;
        }
        let mut entries = config.entries();
        entries.sort_by(|one, two| one.key.cmp(&two.key));
        let digest = entries.iter().fold(FingerprintBuilder::new("settings"), |builder, entry| {
            builder.field(&entry.key, b"").optional("value", entry.value.as_deref().map(str::as_bytes))
        });
        let digest = digest.finish();
        *known = Some((Arc::clone(config), digest));
        digest
    }
}

/// Names a statement; `None` for those that are too long to remember.
pub(crate) fn statement_key(
    text: &str,
    settings: &Fingerprint,
    catalog_version: i64,
    who: &Who,
) -> Option<Fingerprint> {
    let user = match who {
        Who::Owner => None,
        Who::User(name) => Some(name.as_bytes()),
    };
    // Paths in the text begin where the process is.
    let folder = std::env::current_dir().ok()?;
    (text.len() <= TEXT_BYTES_MAX).then(|| {
        FingerprintBuilder::new("statement")
            .optional("user", user)
            .field("folder", folder.as_os_str().as_encoded_bytes())
            .field("text", text.trim().as_bytes())
            .field("settings", settings.as_bytes())
            .field("catalog", &catalog_version.to_le_bytes())
            .finish()
    })
}

/// Whether a plan depends on its text and its tables alone.
pub(crate) fn is_timeless(plan: &LogicalPlan, built_ins: &BuiltIns, config: &ConfigOptions) -> bool {
    let mut timeless = true;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(inner) = scan.source.get_logical_plan()
        {
            timeless &= is_timeless(&inner, built_ins, config);
        }
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && let Some(named) = provider.downcast_ref::<NamedTable>()
        {
            timeless &= is_timeless(named.query(), built_ins, named.state().config_options());
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                timeless &= match expr {
                    Expr::ScalarFunction(call) => built_ins.is_immutable(&call.func, config),
                    Expr::ScalarVariable(..) | Expr::Placeholder(_) => false,
                    _ => true,
                };
                Ok(if timeless { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })?;
        Ok(if timeless { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    timeless && visited.is_ok()
}
