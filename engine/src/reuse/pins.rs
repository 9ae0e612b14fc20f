//! [`Pins`]: the pin of a materialized view goes with the newest result of its program.
//!
//! ```text
//!   a statement reads a view over other extents than the pinned result has
//!     its result is there             the pin moves at once
//!     the statement makes it          the pin moves in the transaction that publishes it
//! ```
//!
//! Costs nothing where no view is read. Which views have pins is read when the catalog has changed; pinning changes it.

use std::collections::HashMap;
use std::sync::Arc;

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{Fingerprint, Pin, PinMove, PinMoves, PinSubject, Result, TableId, ViewCache};
use nectarine_planner::reuse::NamedPrefix;
use parking_lot::Mutex;

use crate::catalog_view::CatalogView;

/// Pins of one home; clones share what is known.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    pub(crate) store: Arc<dyn MetadataStore>,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug)]
struct Known {
    /// The version of the catalog that this is of.
    version: i64,
    /// What each view's pin has, or should have had: one that could not move is not tried again.
    views: HashMap<TableId, (Fingerprint, Fingerprint)>,
}

impl Pins {
    pub(crate) fn new(store: Arc<dyn MetadataStore>) -> Self {
        // No committed version is negative, so the first statement loads.
        Self { store, known: Arc::new(Mutex::new(Known { version: -1, views: HashMap::new() })) }
    }

    /// All pins, from the store.
    pub(crate) async fn all(&self) -> Result<Vec<Pin>> {
        self.store.pins().await
    }

    /// Moves the pins of views to results that are there, and returns those whose results are yet to come.
    pub(crate) async fn follow(
        &self,
        cache: &ViewCache,
        view: &CatalogView,
        named: &[NamedPrefix],
        bytes_max: u64,
    ) -> PinMoves {
        let none = PinMoves { moves: vec![], bytes_max };
        if named.is_empty() {
            return none;
        }
        let moves = match self.moves(view, named).await {
            Ok(moves) => moves,
            Err(error) => {
                tracing::debug!(%error, "cannot read what is pinned");
                return none;
            }
        };
        let (there, coming): (Vec<_>, Vec<_>) = moves.into_iter().partition(|moved| cache.lookup(&moved.key).is_some());
        if !there.is_empty() {
            let moves = PinMoves { moves: there, bytes_max };
            match self.store.move_pins(&moves).await {
                Ok(()) => self.moved(&moves),
                Err(error) => tracing::debug!(%error, "cannot move the pin of a view"),
            }
        }
        PinMoves { moves: coming, ..none }
    }

    /// These were tried.
    pub(crate) fn moved(&self, moves: &PinMoves) {
        let mut known = self.known.lock();
        for moved in &moves.moves {
            known.views.insert(moved.view, (moved.program, moved.key));
        }
    }

    async fn moves(&self, view: &CatalogView, named: &[NamedPrefix]) -> Result<Vec<PinMove>> {
        if self.known.lock().version != view.version {
            let pins = self.all().await?;
            let views = pins.into_iter().filter_map(|pin| match pin.subject {
                PinSubject::View(table) => Some((table, (pin.program, pin.key))),
                PinSubject::Entry(_) | PinSubject::Query(_) => None,
            });
            *self.known.lock() = Known { version: view.version, views: views.collect() };
        }
        let known = self.known.lock();
        let moved = |one: &NamedPrefix| {
            let id = view.tables.get(&one.name)?.id;
            let (program, key) = known.views.get(&id)?;
            let is_other = *program == one.program && *key != one.key;
            is_other.then_some(PinMove { view: id, program: one.program, key: one.key })
        };
        Ok(named.iter().filter_map(moved).collect())
    }
}
