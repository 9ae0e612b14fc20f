//! [`CatalogView`]: all tables, schemas and functions at one moment; what a statement plans against.
//!
//! Taken at the start of a statement. As long as nobody committed anything, in this process or another, the same view
//! serves again: one cheap read tells.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::ScalarUDF;
use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{Access, CatalogError, Extent, Function, Result, TableDef, TableId, TableName};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use url::Url;

use crate::functions::plan_functions;

/// How old a view may be that serves to see who asks.
const RECENT: Duration = Duration::from_millis(50);

/// Everything that has a name.
#[derive(Debug, Default)]
pub(crate) struct CatalogView {
    pub(crate) version: i64,
    pub(crate) schemas: Vec<String>,
    pub(crate) tables: BTreeMap<TableName, Arc<TableDef>>,
    pub(crate) functions: Vec<Function>,
    /// Users, roles and rights.
    pub(crate) access: Arc<Access>,
    /// The functions, planned at their first use.
    planned: OnceCell<Vec<Arc<ScalarUDF>>>,
}

impl CatalogView {
    /// What there was at an earlier moment, as far as somebody needs it.
    pub(crate) fn frozen(
        version: i64,
        schemas: Vec<String>,
        tables: BTreeMap<TableName, Arc<TableDef>>,
        functions: Vec<Function>,
    ) -> Self {
        Self { version, schemas, tables, functions, access: Arc::default(), planned: OnceCell::new() }
    }

    /// The functions, ready to be called.
    pub(crate) async fn functions(&self, template: &SessionState) -> &[Arc<ScalarUDF>] {
        self.planned.get_or_init(|| plan_functions(&self.functions, template)).await
    }

    pub(crate) fn table(&self, schema: &str, name: &str) -> Option<&Arc<TableDef>> {
        self.tables.get(&TableName::new(schema, name))
    }

    /// Whether rights, and whose tables are, are the same as they were. What came or went since has nothing to do with it.
    pub(crate) fn allows_as(&self, before: &Self) -> bool {
        let owners: HashMap<TableId, &Option<String>> =
            self.tables.values().map(|table| (table.id, &table.owner)).collect();
        let is_same = |table: &Arc<TableDef>| owners.get(&table.id).is_none_or(|owner| **owner == table.owner);
        self.access == before.access && before.tables.values().all(is_same)
    }

    pub(crate) fn has_schema(&self, name: &str) -> bool {
        self.schemas.iter().any(|schema| schema == name)
    }
}

/// Extents of one managed table as of one catalog version.
type Pinned = (i64, Arc<[Arc<Extent>]>);

/// When the view was last known to be the newest, and when this process last changed users or rights.
#[derive(Clone, Copy, Debug)]
struct Looked {
    at: Option<Instant>,
    changed: Instant,
}

/// The newest view, kept for the next statement.
#[derive(Debug)]
pub(crate) struct CatalogCache {
    store: Arc<dyn MetadataStore>,
    /// The folder of all managed tables.
    folder: PathBuf,
    view: Mutex<Arc<CatalogView>>,
    looked: Mutex<Looked>,
    extents: Mutex<HashMap<TableId, Pinned>>,
    /// Those that derived tables hold, which never change.
    frozen: Mutex<HashMap<TableId, Arc<[Arc<Extent>]>>>,
}

impl CatalogCache {
    /// `folder` is the one that holds the folders of managed tables.
    pub(crate) fn new(store: Arc<dyn MetadataStore>, folder: PathBuf) -> Self {
        // No committed version is negative, so the first statement loads.
        let none = CatalogView { version: -1, ..CatalogView::default() };
        let view = Mutex::new(Arc::new(none));
        let looked = Mutex::new(Looked { at: None, changed: Instant::now() });
        Self { store, folder, view, looked, extents: Mutex::default(), frozen: Mutex::default() }
    }

    /// What was committed a moment ago; what this process changed of users and rights is always in it. Statements use [`Self::view`].
    pub(crate) async fn recent_view(&self) -> Result<Arc<CatalogView>> {
        let is_recent = {
            let Looked { at, changed } = *self.looked.lock();
            at.is_some_and(|at| at > changed && at.elapsed() < RECENT)
        };
        match is_recent {
            true => Ok(Arc::clone(&self.view.lock())),
            false => self.view().await,
        }
    }

    /// Users or rights have just been changed.
    pub(crate) fn forget_recent(&self) {
        self.looked.lock().changed = Instant::now();
    }

    /// What is committed now.
    pub(crate) async fn view(&self) -> Result<Arc<CatalogView>> {
        let begun = Instant::now();
        let view = self.view_at(self.store.catalog_version().await?).await?;
        self.saw(begun);
        Ok(view)
    }

    /// What is committed now, and how many purges there were before.
    pub(crate) async fn view_and_purges(&self) -> Result<(Arc<CatalogView>, i64)> {
        let begun = Instant::now();
        let versions = self.store.versions().await?;
        let view = self.view_at(versions.catalog).await?;
        self.saw(begun);
        Ok((view, versions.purges))
    }

    /// The view that is kept is as of then, or later.
    fn saw(&self, begun: Instant) {
        let mut looked = self.looked.lock();
        looked.at = looked.at.max(Some(begun));
    }

    async fn view_at(&self, version: i64) -> Result<Arc<CatalogView>> {
        let known = Arc::clone(&self.view.lock());
        if known.version == version {
            return Ok(known);
        }
        // Read after the version: the view may be newer than its version says, never older, and then it is read again.
        let schemas = self.store.schemas().await?;
        let tables = self.store.tables().await?;
        let functions = self.store.functions().await?;
        let access = Arc::new(self.store.access().await?);
        let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect();
        let view = Arc::new(CatalogView { version, schemas, tables, functions, access, planned: OnceCell::new() });
        let is_there = |id: &TableId| view.tables.values().any(|table| table.id == *id);
        self.extents.lock().retain(|id, _| is_there(id));
        self.frozen.lock().retain(|id, _| is_there(id));
        let mut newest = self.view.lock();
        // Another may have come later and been faster.
        if newest.version <= version {
            *newest = Arc::clone(&view);
        }
        Ok(view)
    }

    /// The extents that a derived table holds.
    pub(crate) async fn frozen_extents(&self, id: TableId) -> Result<Arc<[Arc<Extent>]>> {
        let known = self.frozen.lock().get(&id).cloned();
        if let Some(extents) = known {
            return Ok(extents);
        }
        let extents: Arc<[Arc<Extent>]> = self.store.extents(id).await?.into_iter().map(Arc::new).collect();
        self.frozen.lock().insert(id, Arc::clone(&extents));
        Ok(extents)
    }

    /// The extents of a managed table, as of now, or as of the version that the statement began with if those are known: nobody
    /// had changed anything then since they were read.
    pub(crate) async fn extents(&self, id: TableId, began_with: i64) -> Result<Arc<[Arc<Extent>]>> {
        let known = |version| {
            let known = self.extents.lock().get(&id).cloned();
            known.filter(|(known_version, _)| *known_version == version).map(|(_, extents)| extents)
        };
        if let Some(extents) = known(began_with) {
            return Ok(extents);
        }
        let version = self.store.catalog_version().await?;
        if let Some(extents) = known(version) {
            return Ok(extents);
        }
        let folder = self.folder.join(id.to_string());
        let stored = self.store.extents(id).await?;
        let extents: Arc<[Arc<Extent>]> = stored.into_iter().map(|extent| Arc::new(here(extent, &folder))).collect();
        // No extents may mean no rows, or that the table was dropped since the statement began.
        if extents.is_empty() {
            let view = self.view.lock().tables.values().find(|table| table.id == id).cloned();
            let name = view.map_or_else(|| TableName::new("", id.to_string()), |table| table.name.clone());
            if !self.store.tables().await?.iter().any(|table| table.id == id) {
                return Err(CatalogError::TableNotFound { name });
            }
        }
        self.extents.lock().insert(id, (version, Arc::clone(&extents)));
        Ok(extents)
    }
}

/// The extent where it is now: its home may have been moved, or copied, since it was written.
pub(crate) fn here(mut extent: Extent, folder: &Path) -> Extent {
    let name = extent.location.rsplit('/').next().unwrap_or_default();
    if let Ok(location) = Url::from_file_path(folder.join(name))
        && location.as_str() != &*extent.location
    {
        extent.location = Arc::from(location.as_str());
    }
    extent
}
