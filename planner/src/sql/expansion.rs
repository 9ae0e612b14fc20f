//! [`check`]: a bound on what CTEs stand for.
//!
//! A CTE is planned wherever it is named, and the planner walks all of it each time. A few of them, each naming the one before it twice,
//! stand for millions of tables.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DFStatement;
use sqlparser::ast::{ObjectName, Query, Visit, Visitor};

use crate::{PlannerError, Result};

/// Tables that a statement may read, those of a CTE wherever that is named.
const TABLES_MAX: usize = 10_000;

/// Fails if a statement stands for too many tables.
pub(super) fn check(statement: &DFStatement) -> Result<()> {
    let statement = match statement {
        DFStatement::Explain(explain) => return check(&explain.statement),
        DFStatement::Statement(statement) => statement,
        _ => return Ok(()),
    };
    let mut weights = Weights::default();
    match statement.visit(&mut weights) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(PlannerError::TooDeep {
            what: "tables, with those of CTEs wherever they are named",
            limit: TABLES_MAX,
            position: None,
            hint: Some("CREATE TABLE .. AS keeps the rows of a part of it".to_string()),
        }),
    }
}

/// Counts tables.
#[derive(Default)]
struct Weights {
    /// What the names of CTEs stand for, the innermost query's last.
    scopes: Vec<HashMap<String, usize>>,
    n_tables: usize,
}

impl Weights {
    fn add(&mut self, n_tables: usize) -> ControlFlow<()> {
        self.n_tables = self.n_tables.saturating_add(n_tables);
        if self.n_tables > TABLES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Visitor for Weights {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.push(HashMap::new());
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let before = self.n_tables;
            // Counted here as well as where it stands: a bound need not be exact.
            cte.query.visit(self)?;
            let weight = self.n_tables.saturating_sub(before).max(1);
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(cte.alias.name.value.to_lowercase(), weight);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.to_string().to_lowercase();
        let weight = self.scopes.iter().rev().find_map(|scope| scope.get(name.trim_matches('"')));
        self.add(weight.copied().unwrap_or(1))
    }
}
