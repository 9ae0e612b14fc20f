//! Stock DataFusion as a reference, and what to make of it where it contradicts itself.
//!
//! An optimizer rule must not change rows. So where stock DataFusion answers otherwise than Nectarine, it is asked again with each of
//! its rules left out in turn, and with each of those put in that mend a known fault of its plans: if it then gives Nectarine's rows,
//! its own answers differ and the rule, or what is mended, is at fault. If it never does, nobody but Nectarine has these rows, and the
//! difference counts.

use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use nectarine_engine::{Mend, Rules};

use super::Rows;

/// Stock DataFusion, still without tables.
pub fn stock_context() -> SessionContext {
    // It pushes these filters to the wrong column where two have one name (apache/datafusion 25244).
    let config = ["join", "topk", "aggregate"].into_iter().fold(SessionConfig::new(), |config, of| {
        config.set_bool(&format!("datafusion.optimizer.enable_{of}_dynamic_filter_pushdown"), false)
    });
    SessionContext::new_with_config(config)
}

/// What stock DataFusion answers.
pub(super) async fn answer(stock: &SessionContext, sql: &str) -> Result<Rows, String> {
    let frame = stock.sql(sql).await.map_err(|error| error.to_string())?;
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let schema = batches.first().map_or(schema, |batch| batch.schema());
    Rows::new(schema, &batches)
}

/// With or without which rule stock DataFusion gives these rows.
pub(super) async fn rule_at_fault(stock: &SessionContext, sql: &str, expected: &Rows) -> Option<String> {
    for (name, context) in without_each_rule(stock).into_iter().chain(with_each_mend(stock)) {
        let sql = sql.to_owned();
        let answered = tokio::spawn(async move { answer(&context, &sql).await }).await;
        // A statement that needs the rule fails or panics without it, and says nothing.
        if let Ok(Ok(found)) = answered
            && found.same_rows(expected)
        {
            return Some(name);
        }
    }
    None
}

/// Contexts over the same tables, each without one rule.
fn without_each_rule(stock: &SessionContext) -> Vec<(String, SessionContext)> {
    let state = stock.state();
    let mut contexts = vec![];
    for left_out in 0..state.optimizers().len() {
        let mut rules = state.optimizers().to_vec();
        let name = format!("without {}", rules.remove(left_out).name());
        let builder = SessionStateBuilder::new_from_existing(stock.state()).with_optimizer_rules(rules);
        contexts.push((name, SessionContext::new_with_state(builder.build())));
    }
    for left_out in 0..state.physical_optimizers().len() {
        let mut rules = state.physical_optimizers().to_vec();
        let name = format!("without {}", rules.remove(left_out).name());
        let builder = SessionStateBuilder::new_from_existing(stock.state()).with_physical_optimizer_rules(rules);
        contexts.push((name, SessionContext::new_with_state(builder.build())));
    }
    contexts
}

/// Contexts over the same tables, each with one mend.
fn with_each_mend(stock: &SessionContext) -> impl Iterator<Item = (String, SessionContext)> {
    Mend::ALL.into_iter().map(|mend| {
        let state = stock.state();
        let mut rules = Rules {
            analyzer: state.analyzer().rules.clone(),
            optimizer: state.optimizers().to_vec(),
            physical: state.physical_optimizers().to_vec(),
        };
        mend.put_into(&mut rules);
        let builder = SessionStateBuilder::new_from_existing(state)
            .with_analyzer_rules(rules.analyzer)
            .with_optimizer_rules(rules.optimizer)
            .with_physical_optimizer_rules(rules.physical);
        (format!("with {mend:?}"), SessionContext::new_with_state(builder.build()))
    })
}
