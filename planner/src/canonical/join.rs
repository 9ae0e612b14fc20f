//! Joins, whatever algorithm was chosen: a hash join and a merge join of the same inputs give the same rows.

use datafusion::common::{JoinType, NullEquality};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, JoinOn, NestedLoopJoinExec, SortMergeJoinExec};

use datafusion::physical_plan::joins::utils::JoinFilter;

use super::Uncacheable;
use super::encoder::{Encoder, Tag};
use super::expr::ExprContext;

/// What an equijoin means.
struct EquiJoin<'a> {
    on: &'a [JoinOnPair],
    filter: Option<&'a JoinFilter>,
    join_type: JoinType,
    null_equality: NullEquality,
    null_aware: bool,
    projection: Option<&'a [usize]>,
}

type JoinOnPair = <JoinOn as IntoIterator>::Item;

impl ExprContext<'_> {
    pub(super) fn hash_join(&self, join: &HashJoinExec) -> Result<Vec<u8>, Uncacheable> {
        self.equi_join(&EquiJoin {
            on: join.on(),
            filter: join.filter(),
            join_type: *join.join_type(),
            null_equality: join.null_equality(),
            null_aware: join.null_aware,
            projection: join.projection.as_ref().map(|columns| columns.as_ref()),
        })
    }

    pub(super) fn merge_join(&self, join: &SortMergeJoinExec) -> Result<Vec<u8>, Uncacheable> {
        self.equi_join(&EquiJoin {
            on: join.on(),
            filter: join.filter().as_ref(),
            join_type: join.join_type(),
            null_equality: join.null_equality(),
            null_aware: false,
            projection: None,
        })
    }

    pub(super) fn nested_loop_join(&self, join: &NestedLoopJoinExec) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(Tag::NestedLoopJoin);
        encoder.text(&format!("{:?}", join.join_type()));
        self.optional_filter(&mut encoder, join.filter())?;
        optional_projection(&mut encoder, join.projection().as_ref().map(|columns| columns.as_ref()));
        Ok(encoder.into_bytes())
    }

    pub(super) fn cross_join(&self, _join: &CrossJoinExec) -> Vec<u8> {
        Encoder::new(Tag::CrossJoin).into_bytes()
    }

    fn equi_join(&self, join: &EquiJoin<'_>) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(Tag::Join);
        encoder.text(&format!("{:?}", join.join_type)).text(&format!("{:?}", join.null_equality)).flag(join.null_aware);
        let mut pairs = vec![];
        for (left, right) in join.on {
            let mut pair = Encoder::new(Tag::Equality);
            pair.bytes(&self.expr(left)?).bytes(&self.expr(right)?);
            pairs.push(pair.into_bytes());
        }
        encoder.set(pairs);
        self.optional_filter(&mut encoder, join.filter)?;
        optional_projection(&mut encoder, join.projection);
        Ok(encoder.into_bytes())
    }

    fn optional_filter(&self, encoder: &mut Encoder, filter: Option<&JoinFilter>) -> Result<(), Uncacheable> {
        match filter {
            Some(filter) => encoder.tag(Tag::Some).bytes(&self.join_filter(filter)?),
            None => encoder.tag(Tag::None),
        };
        Ok(())
    }
}

fn optional_projection(encoder: &mut Encoder, projection: Option<&[usize]>) {
    match projection {
        Some(columns) => encoder.tag(Tag::Some).numbers(columns),
        None => encoder.tag(Tag::None),
    };
}
