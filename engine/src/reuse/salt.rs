//! [`Salts`]: the salt of the settings that statements run with, worked out when they change.

use std::sync::Arc;

use datafusion::config::ConfigOptions;
use nectarine_planner::canonical::Salt;
use parking_lot::Mutex;

/// Settings and their salt.
type Known = (Arc<ConfigOptions>, Salt);

/// The salt of the last settings that were asked for: those that sessions start with, mostly.
#[derive(Clone, Default)]
pub(crate) struct Salts {
    known: Arc<Mutex<Option<Known>>>,
}

impl Salts {
    pub(crate) fn of(&self, config: &Arc<ConfigOptions>) -> Salt {
        let mut known = self.known.lock();
        if let Some((same, salt)) = known.as_ref()
            && Arc::ptr_eq(same, config)
        {
            return *salt;
        }
        let salt = Salt::new(config);
        // Held, so that no other settings can come to lie at the same address.
        *known = Some((Arc::clone(config), salt));
        salt
    }
}
