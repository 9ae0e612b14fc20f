//! [`StoreRegistry`]: DataFusion finds object stores where the catalog keeps them.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use nectarine_catalog::ObjectStores;
use object_store::ObjectStore;
use url::Url;

/// The catalog's object stores, seen by DataFusion.
#[derive(Debug)]
pub(crate) struct StoreRegistry {
    stores: ObjectStores,
}

impl StoreRegistry {
    pub(crate) fn new(stores: ObjectStores) -> Self {
        Self { stores }
    }
}

impl ObjectStoreRegistry for StoreRegistry {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.stores.insert(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.stores.get(url).map_err(|error| DataFusionError::External(Box::new(error)))
    }
}
