//! Whether the extents that derived tables hold are still there.
//!
//! An extent is looked for where it was: among today's extents of its table, or in its file. Only those that a plan reads
//! are looked for: what is read from the cache needs no file.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use nectarine_catalog::{Extent, Fingerprint, TableDef, TableKind, TableName, plain_location};

use crate::statement::{StatementCatalog, look};
use crate::{EngineError, ErrorKind, Result};

/// Files that an error names.
const FILES_NAMED: usize = 10;

/// What a derived table reads of a stream.
#[derive(Clone, Debug)]
pub(crate) struct FrozenScan {
    pub(crate) derived: TableName,
    pub(crate) table: Arc<TableDef>,
    pub(crate) extents: Arc<[Arc<Extent>]>,
}

/// Fails if an extent that is about to be read is gone, or another. `scanned` are those that the plan reads; all of them
/// without it. What is there will be looked at again in the end.
pub(crate) async fn still_there(catalog: &StatementCatalog, scanned: Option<&HashSet<Fingerprint>>) -> Result<()> {
    for scan in catalog.take_frozen_scans() {
        let is_read = |extent: &&Arc<Extent>| scanned.is_none_or(|scanned| scanned.contains(&extent.fingerprint));
        let wanted: Vec<Arc<Extent>> = scan.extents.iter().filter(is_read).cloned().collect();
        let n_extents = wanted.len();
        let (found, gone) = find(catalog, &scan.table, wanted).await;
        if !gone.is_empty() {
            return Err(lost(&scan.derived, n_extents, &gone));
        }
        if matches!(scan.table.kind, TableKind::External(_)) && !found.is_empty() {
            catalog.looks_again_at(found.into());
        }
    }
    Ok(())
}

/// The extents as they are today, and the files of those that are gone.
async fn find(
    catalog: &StatementCatalog,
    table: &Arc<TableDef>,
    wanted: Vec<Arc<Extent>>,
) -> (Vec<Arc<Extent>>, BTreeSet<String>) {
    let (mut found, mut gone) = (vec![], BTreeSet::new());
    if wanted.is_empty() {
        return (found, gone);
    }
    let mut today = BTreeMap::new();
    if matches!(table.kind, TableKind::External(_)) {
        // Where a location can not be listed any more its files are looked for one by one.
        if let Ok(extents) = look(Arc::clone(&catalog.shared), Arc::clone(table)).await {
            today = extents.iter().map(|extent| (extent.fingerprint, Arc::clone(extent))).collect();
        }
    }
    for extent in wanted {
        match today.get(&extent.fingerprint) {
            Some(extent) => found.push(Arc::clone(extent)),
            None => match catalog.shared.tracker.find_again(&extent, table.kind.own_files().is_some()).await {
                Some(extent) => found.push(Arc::new(extent)),
                None => _ = gone.insert(plain_location(&extent.location).into_owned()),
            },
        }
    }
    (found, gone)
}

/// The files of a derived table that are gone, and how many extents it has.
pub(crate) async fn gone(catalog: &StatementCatalog, table: &TableDef) -> Result<(usize, BTreeSet<String>)> {
    let TableKind::Derived(derived) = &table.kind else { return Ok((0, BTreeSet::new())) };
    if derived.pinned.is_some() {
        return Ok((0, BTreeSet::new()));
    }
    let extents = catalog.shared.catalog.frozen_extents(table.id).await?;
    let mut all = BTreeSet::new();
    for (relation, list) in super::lists(catalog, derived, &extents)? {
        if let nectarine_catalog::Frozen::Stream(stream) = &relation.what {
            let table = TableDef { kind: stream.kind.clone(), schema: Arc::clone(&stream.schema), ..table.clone() };
            all.extend(find(catalog, &Arc::new(table), list.to_vec()).await.1);
        }
    }
    Ok((extents.len(), all))
}

fn lost(derived: &TableName, n_extents: usize, files: &BTreeSet<String>) -> EngineError {
    let message = format!(
        "the rows of derived table \"{}\" are not kept any more and cannot be computed again: files that it was made from \
         are gone or changed",
        derived.name
    );
    let mut names: Vec<String> = files.iter().take(FILES_NAMED).map(|file| format!("\"{file}\"")).collect();
    if files.len() > FILES_NAMED {
        names.push(format!("and {} more", files.len() - FILES_NAMED));
    }
    EngineError::new(ErrorKind::Data, message)
        .with_detail(format!("of {n_extents} extents: {}", names.join(", ")))
        .with_hint(format!(
            "bring the files back as they were, or drop it; ALTER DERIVED TABLE {derived} SET PINNED would have kept a copy"
        ))
}
