//! [`VIEWS`]: what stands on the tables: views on views, materialized views, derived tables.
//!
//! ```text
//!   m --> shifted --> doubled --> lonely          projections on projections, and who has no partner in c
//!   m, n --> squares --> residues                 who has a partner, projected twice; those without duplicates
//!               +------> frozen --> thawed        the same of some moment
//!   e --> totals --> large                        groups, and some of them
//!   m --> moment                                  groups of some moment
//! ```
//!
//! For stock DataFusion all but derived tables are views over the same tables. Of a derived table it has the rows that its
//! query gave when it was made. Derived tables stand on managed tables only: those lose no extents, so their rows can always
//! be computed again.

use std::sync::Arc;

use datafusion::prelude::SessionContext;

use super::generator::Type;
use super::{Harness, Tables};

/// What it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    View,
    Materialized,
    Derived,
}

/// A query with a name.
pub(super) struct View {
    pub(super) name: &'static str,
    kind: Kind,
    query: &'static str,
    pub(super) columns: &'static [(&'static str, Type)],
}

/// Each behind those that it stands on. No name is part of another, or of a word of SQL.
pub(super) static VIEWS: [View; 10] = [
    View {
        name: "shifted",
        kind: Kind::View,
        query: "SELECT id AS i, k + 1 AS x, g, b FROM m",
        columns: &[("i", Type::Int), ("x", Type::Int), ("g", Type::Text), ("b", Type::Bool)],
    },
    View {
        name: "doubled",
        kind: Kind::View,
        query: "SELECT i, x * 2 AS y, g FROM shifted",
        columns: &[("i", Type::Int), ("y", Type::Int), ("g", Type::Text)],
    },
    View {
        name: "squares",
        kind: Kind::Materialized,
        query: "SELECT y * y AS z FROM \
                (SELECT t.k + t.id AS y FROM m t WHERE EXISTS (SELECT 1 FROM n u WHERE u.id = t.id))",
        columns: &[("z", Type::Int)],
    },
    View {
        name: "residues",
        kind: Kind::Materialized,
        query: "SELECT DISTINCT z % 7 AS r FROM squares",
        columns: &[("r", Type::Int)],
    },
    View {
        name: "lonely",
        kind: Kind::Materialized,
        query: "SELECT t.y - t.i AS w, t.g AS g FROM doubled t WHERE NOT EXISTS (SELECT 1 FROM c u WHERE u.id = t.i)",
        columns: &[("w", Type::Int), ("g", Type::Text)],
    },
    View {
        name: "totals",
        kind: Kind::Materialized,
        query: "SELECT k AS x, g, count(*) AS n, sum(id) AS s, max(dt) AS latest FROM e GROUP BY k, g",
        columns: &[("x", Type::Int), ("g", Type::Text), ("n", Type::Int), ("s", Type::Int), ("latest", Type::Date)],
    },
    View {
        name: "large",
        kind: Kind::View,
        query: "SELECT x, s + n AS y, latest FROM totals WHERE n > 1",
        columns: &[("x", Type::Int), ("y", Type::Int), ("latest", Type::Date)],
    },
    View {
        name: "moment",
        kind: Kind::Derived,
        query: "SELECT k AS x, id % 5 AS r, count(*) AS n, max(g) AS g FROM m GROUP BY k, id % 5",
        columns: &[("x", Type::Int), ("r", Type::Int), ("n", Type::Int), ("g", Type::Text)],
    },
    View {
        name: "frozen",
        kind: Kind::Derived,
        query: "SELECT DISTINCT z, z % 5 AS r FROM squares",
        columns: &[("z", Type::Int), ("r", Type::Int)],
    },
    View {
        name: "thawed",
        kind: Kind::View,
        query: "SELECT r + 1 AS q, z FROM frozen",
        columns: &[("q", Type::Int), ("z", Type::Int)],
    },
];

impl View {
    fn statement(&self) -> String {
        let create = match self.kind {
            Kind::View => "CREATE VIEW",
            Kind::Materialized => "CREATE MATERIALIZED VIEW",
            Kind::Derived => "CREATE OR REPLACE DERIVED TABLE",
        };
        format!("{create} {} AS {}", self.name, self.query)
    }
}

impl Tables {
    /// Makes all of them.
    pub(super) async fn make_views(&mut self, harness: &Harness) {
        for view in &VIEWS {
            harness.run(&view.statement()).await;
        }
        self.remember_snapshots(harness).await;
    }

    /// Makes the derived tables anew: they are snapshots of this moment.
    pub(super) async fn take_snapshots(&mut self, harness: &Harness) {
        for view in VIEWS.iter().filter(|view| view.kind == Kind::Derived) {
            harness.run(&view.statement()).await;
        }
        self.remember_snapshots(harness).await;
    }

    /// Now, while the tables are still what they were when the snapshots were taken.
    async fn remember_snapshots(&mut self, harness: &Harness) {
        self.snapshots.clear();
        self.stock = None;
        self.stock(harness).await;
    }

    /// Lets stock DataFusion, which has the tables, know what stands on them.
    pub(super) async fn add_views(&mut self, stock: &SessionContext) {
        for View { name, kind, query, .. } in &VIEWS {
            if *kind != Kind::Derived {
                let made = stock.sql(&format!("CREATE VIEW {name} AS {query}")).await;
                made.unwrap_or_else(|error| panic!("stock DataFusion makes {name}: {error}"));
                continue;
            }
            let snapshot = match self.snapshots.get(name) {
                Some(snapshot) => Arc::clone(snapshot),
                None => {
                    let rows = stock.sql(query).await.expect("it is planned here too").cache().await;
                    rows.expect("it is computed here too").into_view()
                }
            };
            self.snapshots.insert(*name, Arc::clone(&snapshot));
            stock.register_table(*name, snapshot).expect("a new name");
        }
    }
}
