//! [`Engine`]: one open home, shared by all its sessions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::TrackConsumersPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::optimizer::{Analyzer, Optimizer};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use nectarine_catalog::store::{MetadataStore, SqliteStore};
use nectarine_catalog::{Clock, ExtentTracker, ObjectStores, SystemClock};
use nectarine_executor::{Cluster, CsvFilesFactory, LowerExtentScans, NameScannedFiles, Stoppable, UnbundleFiles};
use nectarine_planner::reuse::ReusePrefixes;
use nectarine_planner::{
    BoundedPlans, CountedSets, DistinctOnKeys, ExactDecimals, HonestKeys, NullableValues, PlainAntiJoins, TruthTests,
    UnionNulls,
};

use crate::access::Who;
use crate::catalog_view::CatalogCache;
use crate::home::Home;
use crate::job::{ActiveJobs, Jobs};
use crate::memory::SharedMemory;
use crate::mended_functions::mend_functions;
use crate::mends::{Mend, Rules};
use crate::only_views::OnlyViews;
use crate::query_log::QueryLog;
use crate::report::{ActiveRuns, Reports};
use crate::reuse::{self, CacheAdmin, Reuse};
use crate::session::Session;
use crate::settings::{NectarineExtension, NectarineOptions, SPILL_FILE_BYTES, Settings, parse_size};
use crate::shielded::Shielded;
use crate::stores::StoreRegistry;
use crate::trace::Tracer;
use crate::{EngineError, ErrorKind, Result, machine, sweep};

/// Consumers that an out-of-memory error names.
const CONSUMERS_NAMED: usize = 5;

/// One open home. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What all sessions of a home have in common.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn MetadataStore>,
    pub(crate) object_stores: ObjectStores,
    pub(crate) tracker: ExtentTracker,
    pub(crate) catalog: CatalogCache,
    pub(crate) log: QueryLog,
    pub(crate) reuse: Reuse,
    pub(crate) settings: Settings,
    /// Executors that come to this process, once it listens for them.
    pub(crate) cluster: OnceLock<Cluster>,
    /// Runs of reports that this process is at.
    pub(crate) active_runs: ActiveRuns,
    /// Jobs that this process is at.
    pub(crate) active_jobs: ActiveJobs,
    /// What every session starts from.
    pub(crate) template: Shielded<SessionState>,
    /// Last, so that the temporary folder goes after all who write to it.
    pub(crate) home: Home,
}

/// Collects what an engine is made of.
#[derive(Default)]
pub struct EngineBuilder {
    home: Option<PathBuf>,
    settings: Option<Settings>,
    catalog_name: Option<String>,
    clock: Option<Arc<dyn Clock>>,
    cost_min: Duration,
    part_bytes: Option<usize>,
    extend: Option<Box<dyn FnOnce(SessionStateBuilder) -> SessionStateBuilder + Send>>,
}

impl Engine {
    /// Starts to build an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// A new client.
    pub fn session(&self) -> Session {
        self.session_for(Who::Owner)
    }

    /// A new client who acts for a user: whoever calls this knows that it is him. Without such a user, all it does is denied.
    pub fn session_as(&self, user: &str) -> Session {
        self.session_for(Who::User(Arc::from(user)))
    }

    /// A new client who acts for somebody.
    pub(crate) fn session_for(&self, who: Who) -> Session {
        Session::new(Arc::clone(&self.shared), who)
    }

    /// What all sessions have in common.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The folder it lives in.
    pub fn home(&self) -> &Path {
        self.shared.home.root()
    }

    /// The cache of this home, for those who look after it.
    pub fn cache(&self) -> CacheAdmin {
        CacheAdmin::new(self.shared.reuse.clone())
    }

    /// The reports of this home, for those who run them.
    pub fn reports(&self) -> Reports {
        Reports::new(Arc::clone(&self.shared))
    }

    /// The jobs of this home, for those who run them.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(Arc::clone(&self.shared))
    }

    /// Writes down what is still in memory and closes the home. Running statements fail.
    pub async fn shutdown(&self) {
        self.shared.reuse.flush().await;
        self.shared.log.flush().await;
        self.shared.log.flush_traces().await;
        self.shared.store.close().await;
        self.shared.home.clear();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("home", &self.home()).finish()
    }
}

impl EngineBuilder {
    /// Where everything durable lives; made if it is not there.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// A home that vanishes with the engine.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.home = None;
        self
    }

    /// Settings from file, environment and flags.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// The name of the one catalog, `nectarine` unless said otherwise.
    #[must_use]
    pub fn catalog_name(mut self, name: impl Into<String>) -> Self {
        self.catalog_name = Some(name.into());
        self
    }

    /// Tells how old cached results are and when reports are due; the machine's clock unless said otherwise.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes every computation to have taken at least this long, when it is weighed whether to keep and to read its result.
    /// For tests: what is reused then does not depend on how fast the machine is.
    #[must_use]
    pub fn cost_min(mut self, cost_min: Duration) -> Self {
        self.cost_min = cost_min;
        self
    }

    /// Keeps results in parts of about so many bytes. For tests: small results then have several parts, as large ones do.
    #[must_use]
    pub fn part_bytes(mut self, part_bytes: usize) -> Self {
        self.part_bytes = Some(part_bytes);
        self
    }

    /// Adds functions, planners or types to what every session starts from.
    #[must_use]
    pub fn extend(mut self, extend: impl FnOnce(SessionStateBuilder) -> SessionStateBuilder + Send + 'static) -> Self {
        self.extend = Some(Box::new(extend));
        self
    }

    /// Opens the home.
    pub async fn open(self) -> Result<Engine> {
        let home = match &self.home {
            Some(root) => Home::open(root)?,
            None => Home::ephemeral()?,
        };
        let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::open(&home.metadata()).await?);
        let settings = self.settings.unwrap_or_default();
        let config = session_config(&settings, self.catalog_name.as_deref().unwrap_or("nectarine"))?;
        let object_stores = ObjectStores::new();
        let runtime = runtime(&home, config.options(), &object_stores)?;

        let mut rules = Rules {
            analyzer: Analyzer::new().rules,
            optimizer: HonestKeys::guard(Optimizer::new().rules),
            physical: PhysicalOptimizer::new().rules,
        };
        ExactDecimals::around(&mut rules.analyzer);
        for mend in Mend::ALL {
            mend.put_into(&mut rules);
        }
        let Rules { mut analyzer, mut optimizer, mut physical } = rules;
        analyzer.push(Arc::new(TruthTests));
        analyzer.push(Arc::new(CountedSets));
        analyzer.push(Arc::new(DistinctOnKeys));
        analyzer.push(Arc::new(NullableValues));
        analyzer.push(Arc::new(OnlyViews));
        BoundedPlans::guard(&mut analyzer);
        analyzer.push(Arc::new(HonestKeys));
        optimizer.push(Arc::new(UnionNulls));
        // First entries are looked up, then plans are mended, then extents become files.
        physical.insert(0, Arc::new(ReusePrefixes));
        physical.insert(1, Arc::new(PlainAntiJoins));
        physical.insert(3, Arc::new(LowerExtentScans::new(Arc::clone(&runtime))));
        physical.push(Arc::new(NameScannedFiles));
        physical.push(Arc::new(UnbundleFiles));
        physical.push(Arc::new(Stoppable));
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_analyzer_rules(analyzer)
            .with_optimizer_rules(optimizer)
            .with_relation_planners(vec![Arc::new(HonestKeys)])
            .with_physical_optimizer_rules(physical);
        if let Some(extend) = self.extend {
            builder = extend(builder);
        }
        let mut template = builder.build();
        mend_functions(&mut template)?;
        template.register_file_format(Arc::new(CsvFilesFactory::default()), true)?;

        let tracker = ExtentTracker::new(Arc::clone(&store), object_stores.clone(), Arc::new(SystemClock));
        let ours = options(template.config_options());
        let tracer = Tracer::start(&ours.trace_endpoint)?;
        let log = QueryLog::start(Arc::clone(&store), ours.query_log_keep, &home.process(), tracer);
        sweep::spawn(home.tables(), Arc::clone(&store));
        let catalog = CatalogCache::new(Arc::clone(&store), home.tables());
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let reuse = Reuse::open(&home, Arc::clone(&store), object_stores.clone(), &ours, clock).await?;
        let reuse = Reuse { cost_min: self.cost_min, part_bytes: self.part_bytes, ..reuse };
        let template = Shielded(template);
        let (active_runs, active_jobs) = (ActiveRuns::default(), ActiveJobs::default());
        let cluster = OnceLock::<Cluster>::new();
        let shared = Arc::new(Shared {
            store,
            object_stores,
            tracker,
            catalog,
            log,
            reuse,
            settings,
            cluster,
            active_runs,
            active_jobs,
            template,
            home,
        });
        reuse::follow(Arc::downgrade(&shared));
        Ok(Engine { shared })
    }
}

/// Nectarine's settings in a configuration.
pub(crate) fn options(config: &ConfigOptions) -> NectarineOptions {
    config.extensions.get::<NectarineExtension>().map(|extension| extension.0.clone()).unwrap_or_default()
}

fn session_config(settings: &Settings, catalog_name: &str) -> Result<SessionConfig> {
    let mut config = SessionConfig::new().with_option_extension(NectarineExtension::default());
    let options = config.options_mut();
    options.catalog.default_catalog = catalog_name.to_string();
    options.catalog.create_default_catalog_and_schema = false;
    options.catalog.information_schema = true;
    // Errors point at the position in the statement.
    options.sql_parser.collect_spans = true;
    options.set(SPILL_FILE_BYTES, "1").map_err(EngineError::from)?;
    settings.apply(options)?;
    fit_to_memory(settings, options)?;
    Ok(config)
}

/// With little memory, sorts must be able to merge what they spilled: smaller batches and reservations, unless the user
/// chose them.
fn fit_to_memory(settings: &Settings, config: &mut ConfigOptions) -> Result<()> {
    let memory = parse_size("nectarine.memory_limit", &options(config).memory_limit, machine::memory_bytes())?;
    let n_partitions = config.execution.target_partitions.max(1) as u64;
    let chosen = |name: &str| settings.source(name) != "default";
    let share = memory / n_partitions;
    if share < 256 << 20 && !chosen("datafusion.execution.sort_spill_reservation_bytes") {
        config.execution.sort_spill_reservation_bytes = (share / 64).min(10 << 20) as usize;
    }
    if share < 64 << 20 && !chosen("datafusion.execution.batch_size") {
        config.set("datafusion.execution.batch_size", "1024").map_err(EngineError::from)?;
    }
    Ok(())
}

fn runtime(home: &Home, config: &ConfigOptions, object_stores: &ObjectStores) -> Result<Arc<RuntimeEnv>> {
    let ours = options(config);
    let memory = parse_size("nectarine.memory_limit", &ours.memory_limit, machine::memory_bytes())?;
    let spill = parse_size("nectarine.spill_limit", &ours.spill_limit, machine::free_disk_bytes(home.root()))?;
    let consumers = std::num::NonZeroUsize::new(CONSUMERS_NAMED).unwrap_or(std::num::NonZeroUsize::MIN);
    let pool = TrackConsumersPool::new(SharedMemory::new(memory as usize), consumers);
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![home.spill()]))
        .with_max_temp_directory_size(spill);
    std::fs::create_dir_all(home.spill()).map_err(|error| {
        EngineError::new(ErrorKind::Configuration, format!("cannot create \"{}\"", home.spill().display()))
            .with_source(error)
    })?;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(disk)
        .with_object_store_registry(Arc::new(StoreRegistry::new(object_stores.clone())))
        // Extents are pinned by our own snapshots; a listing that never expires would hide new files.
        .with_object_list_cache_limit(0)
        .build_arc()?;
    Ok(runtime)
}
