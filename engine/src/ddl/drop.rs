//! `DROP TABLE`, `DROP VIEW`, `DROP MATERIALIZED VIEW`, `DROP DERIVED TABLE`.
//!
//! All that are named or none. What a materialized view or a derived table needs stays, unless `CASCADE` says that they
//! go as well; plain views stay in any case but that one, and say what they lack when they are read.

use std::collections::BTreeSet;

use nectarine_catalog::{TableDef, TableId, TableKind};
use nectarine_planner::sql::{Drop, Relation};

use super::{check_schema, reference, table};
use crate::command::StatementRun;
use crate::dependencies::with_dependants;
use crate::{Answer, EngineError, ErrorKind, Notice, Result};

pub(crate) async fn drop(run: &StatementRun<'_>, drop: Drop) -> Result<Answer> {
    let tag = format!("DROP {}", drop.relation.keywords());
    if drop.cascade {
        // What goes as well may be other users'.
        run.rights().check_admin("drop what others made")?;
    }
    let mut notices = vec![];
    let mut own = vec![];
    let mut ids = vec![];
    for name in &drop.names {
        let name = run.table_name(&reference(name, run.state.config_options())?)?;
        check_schema(&name.schema)?;
        if run.session.has_table(&name) {
            own.push(name);
            continue;
        }
        match run.catalog.view.tables.get(&name) {
            Some(found) => {
                check_kind("DROP", drop.relation, found)?;
                run.rights().check_owns(found)?;
                ids.push(found.id);
            }
            None if drop.if_exists => {
                let message = format!("\"{}\" does not exist, skipping", name.name);
                notices.push(Notice { message, hint: None });
            }
            None => {
                let word = drop.relation.keywords().to_ascii_lowercase();
                return Err(EngineError::missing(&word, &name));
            }
        }
    }
    ids.sort();
    ids.dedup();
    if !ids.is_empty() {
        notices.extend(drop_all(run, &ids, drop.cascade).await?);
    }
    own.iter().for_each(|name| _ = run.session.forget_table(name));
    Ok(run.noticed_all(&tag, notices))
}

/// Drops tables, with all that depends on them if that is wanted; tells what that was.
async fn drop_all(run: &StatementRun<'_>, ids: &[TableId], cascade: bool) -> Result<Vec<Notice>> {
    let all = match cascade {
        true => with_dependants(&run.catalog.view, ids, &BTreeSet::new(), run.catalog.shared.template.config_options()),
        false => ids.to_vec(),
    };
    let dropped = run.catalog.shared.store.drop_tables(&all, cascade).await?;
    let others = dropped.iter().filter(|table| !ids.contains(&table.id)).map(cascaded).collect();
    dropped.into_iter().for_each(|table| table::forget_replaced(run, Some(table)));
    Ok(others)
}

/// Tells that something went with something else.
pub(super) fn cascaded(table: &TableDef) -> Notice {
    Notice { message: format!("{} \"{}\" is dropped as well", table.kind.word(), table.name.name), hint: None }
}

/// Fails if what was found is not what the statement calls it.
pub(crate) fn check_kind(verb: &str, relation: Relation, found: &TableDef) -> Result<()> {
    let fits = match relation {
        // A derived table is a table.
        Relation::Table => found.kind.as_view().is_none(),
        Relation::View => matches!(found.kind, TableKind::View { .. }),
        Relation::MaterializedView => matches!(found.kind, TableKind::MaterializedView(_)),
        Relation::DerivedTable => matches!(found.kind, TableKind::Derived(_)),
    };
    if fits {
        return Ok(());
    }
    let word = found.kind.word();
    Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" is a {word}", found.name.name))
        .with_hint(format!("use {verb} {}", word.to_ascii_uppercase())))
}
