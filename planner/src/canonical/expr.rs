//! Scalar expressions.
//!
//! ```text
//!   b > 3 AND a = 1          AND { a = 1, 3 < b }         conjuncts sorted, comparisons point one way
//!   x IN (2, 1)              x IN { 1, 2 }
//!   t.a AS total             column 0
//! ```
//!
//! Hidden state   where a field of an expression can not be read, the expression is built again from what can, and must
//!                equal the original.

use datafusion::common::{JoinSide, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Operator, physical_planning_context::ScalarSubqueryResults};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr, TryCastExpr,
};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;
use nectarine_catalog::Fingerprint;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::encoder::{Encoder, Tag};
use super::prefix::{Exactness, Input};
use super::{BuiltIns, Uncacheable, types};

/// What stands for a scalar subquery where its value is used.
pub(super) struct SubqueryValue {
    /// FP_PD.
    pub(super) key: Fingerprint,
    /// How alike two computations of it are.
    pub(super) exactness: Exactness,
    /// All that it reads.
    pub(super) inputs: Vec<Input>,
}

/// The uncorrelated scalar subqueries that expressions of one plan level may refer to by number.
pub(super) struct SubqueryScope {
    pub(super) results: ScalarSubqueryResults,
    /// Each subquery by its number, or why it has no key; what a number alone means is decided by its parent.
    pub(super) values: Vec<(usize, Result<SubqueryValue, Uncacheable>)>,
}

/// What expressions are encoded with.
pub(super) struct ExprContext<'a> {
    pub(super) built_ins: &'a BuiltIns,
    pub(super) config: &'a ConfigOptions,
    pub(super) scopes: Vec<SubqueryScope>,
    /// How alike two computations of the scalar subqueries are that were met since this was last set.
    pub(super) met: Cell<Exactness>,
    /// What these subqueries read. Their extents are in the key by way of its program, and an entry must tell of them as well.
    pub(super) met_inputs: RefCell<Vec<Input>>,
    /// What columns are called: by their position, or by what they are.
    pub(super) naming: RefCell<Naming>,
}

/// What columns are called in an encoding.
#[derive(Default)]
pub(super) enum Naming {
    /// By their position in the input.
    #[default]
    Position,
    /// By what they are; see `lineage`.
    Lineage(Arc<[Fingerprint]>),
    /// The same for the two sides of a join.
    Sides([Arc<[Fingerprint]>; 2]),
}

/// The columns that an expression may name.
#[derive(Clone, Copy)]
enum Columns<'a> {
    /// Those of the node's one input.
    Input,
    /// Those of a join's filter, which has a numbering of its own.
    Join(&'a JoinFilter),
}

impl ExprContext<'_> {
    /// An expression over the columns of a node's input.
    pub(super) fn expr(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Vec<u8>, Uncacheable> {
        self.encode(expr, Columns::Input)
    }

    /// Several, in order.
    pub(super) fn exprs<'e>(
        &self,
        exprs: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
    ) -> Result<Vec<Vec<u8>>, Uncacheable> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    /// The conjuncts of a predicate.
    pub(super) fn predicate(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Vec<u8>, Uncacheable> {
        self.chain(expr, Operator::And, Columns::Input)
    }

    /// The filter of a join.
    pub(super) fn join_filter(&self, filter: &JoinFilter) -> Result<Vec<u8>, Uncacheable> {
        self.chain(filter.expression(), Operator::And, Columns::Join(filter))
    }

    /// Sort keys, in order.
    pub(super) fn sort<'e>(
        &self,
        keys: impl IntoIterator<Item = &'e PhysicalSortExpr>,
    ) -> Result<Vec<Vec<u8>>, Uncacheable> {
        let one = |key: &PhysicalSortExpr| {
            let mut encoder = Encoder::new(Tag::Sort);
            encoder.bytes(&self.expr(&key.expr)?).flag(key.options.descending).flag(key.options.nulls_first);
            Ok(encoder.into_bytes())
        };
        keys.into_iter().map(one).collect()
    }

    fn encode(&self, expr: &Arc<dyn PhysicalExpr>, columns: Columns<'_>) -> Result<Vec<u8>, Uncacheable> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.column(column, columns);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return encode_literal(literal);
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return self.binary(expr, binary, columns);
        }
        if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
            self.built_ins.check_scalar(function.fun(), self.config)?;
            let mut encoder = Encoder::new(Tag::Function);
            encoder.text(function.fun().name()).bytes(&types::data_type(function.return_type()));
            encoder.list(self.all(function.args(), columns)?);
            return Ok(encoder.into_bytes());
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let mut encoder = Encoder::new(Tag::Cast);
            encoder.bytes(&self.encode(cast.expr(), columns)?).bytes(&types::data_type(cast.cast_type()));
            // Every option: whether errors become NULL, and how dates and times are written.
            encoder.flag(cast.cast_options().safe).text(&format!("{:?}", cast.cast_options().format_options));
            return Ok(encoder.into_bytes());
        }
        if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
            let mut encoder = Encoder::new(Tag::TryCast);
            encoder.bytes(&self.encode(cast.expr(), columns)?).bytes(&types::data_type(cast.cast_type()));
            return Ok(encoder.into_bytes());
        }
        if let Some(case) = expr.downcast_ref::<CaseExpr>() {
            return self.case(case, columns);
        }
        if let Some(in_list) = expr.downcast_ref::<InListExpr>() {
            let mut encoder = Encoder::new(Tag::InList);
            encoder.bytes(&self.encode(in_list.expr(), columns)?).flag(in_list.negated());
            encoder.set(self.all(in_list.list(), columns)?);
            return Ok(encoder.into_bytes());
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            let mut encoder = Encoder::new(Tag::Like);
            encoder.flag(like.negated()).flag(like.case_insensitive());
            encoder.bytes(&self.encode(like.expr(), columns)?).bytes(&self.encode(like.pattern(), columns)?);
            return Ok(encoder.into_bytes());
        }
        if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
            return self.unary(Tag::IsNull, is_null.arg(), columns);
        }
        if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
            return self.unary(Tag::IsNotNull, is_not_null.arg(), columns);
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return self.unary(Tag::Not, not.arg(), columns);
        }
        if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
            return self.unary(Tag::Negative, negative.arg(), columns);
        }
        if let Some(subquery) = expr.downcast_ref::<ScalarSubqueryExpr>() {
            return self.scalar_subquery(subquery);
        }
        Err(Uncacheable::Expression(expr.to_string()))
    }

    fn column(&self, column: &Column, columns: Columns<'_>) -> Result<Vec<u8>, Uncacheable> {
        let unknown = || Uncacheable::Shape("an expression names a column that is not there");
        let called = |what: &Fingerprint| {
            let mut encoder = Encoder::new(Tag::Lineage);
            encoder.fingerprint(what);
            encoder.into_bytes()
        };
        match (columns, &*self.naming.borrow()) {
            (Columns::Input, Naming::Position) => {
                let mut encoder = Encoder::new(Tag::Column);
                encoder.number(column.index() as u64);
                Ok(encoder.into_bytes())
            }
            (Columns::Input, Naming::Lineage(names)) => Ok(called(names.get(column.index()).ok_or_else(unknown)?)),
            (Columns::Input, Naming::Sides(_)) => Err(unknown()),
            (Columns::Join(filter), naming) => {
                let place = filter.column_indices().get(column.index());
                let place = place.ok_or(Uncacheable::Shape("a join's filter names a column that it does not have"))?;
                let mut encoder = Encoder::new(Tag::JoinColumn);
                encoder.text(&format!("{:?}", place.side));
                match (naming, place.side) {
                    (Naming::Position, _) => encoder.number(place.index as u64),
                    (Naming::Sides([left, _]), JoinSide::Left) => {
                        encoder.bytes(&called(left.get(place.index).ok_or_else(unknown)?))
                    }
                    (Naming::Sides([_, right]), JoinSide::Right) => {
                        encoder.bytes(&called(right.get(place.index).ok_or_else(unknown)?))
                    }
                    _ => return Err(unknown()),
                };
                Ok(encoder.into_bytes())
            }
        }
    }

    fn all(&self, exprs: &[Arc<dyn PhysicalExpr>], columns: Columns<'_>) -> Result<Vec<Vec<u8>>, Uncacheable> {
        exprs.iter().map(|expr| self.encode(expr, columns)).collect()
    }

    fn unary(&self, tag: Tag, arg: &Arc<dyn PhysicalExpr>, columns: Columns<'_>) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(tag);
        encoder.bytes(&self.encode(arg, columns)?);
        Ok(encoder.into_bytes())
    }

    fn binary(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        binary: &BinaryExpr,
        columns: Columns<'_>,
    ) -> Result<Vec<u8>, Uncacheable> {
        let op = *binary.op();
        if matches!(op, Operator::And | Operator::Or) {
            return self.chain(expr, op, columns);
        }
        let mut left = self.encode(binary.left(), columns)?;
        let mut right = self.encode(binary.right(), columns)?;
        let rebuilt = || BinaryExpr::new(Arc::clone(binary.left()), op, Arc::clone(binary.right()));
        let fails_on_overflow = match binary {
            _ if *binary == rebuilt() => false,
            _ if *binary == rebuilt().with_fail_on_overflow(true) => true,
            _ => return Err(Uncacheable::Expression(expr.to_string())),
        };
        let mut encoder = match op {
            Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
                if right < left {
                    std::mem::swap(&mut left, &mut right);
                }
                Encoder::new(Tag::Equality)
            }
            _ => Encoder::new(Tag::Binary),
        };
        let op = match op {
            Operator::Gt | Operator::GtEq => {
                std::mem::swap(&mut left, &mut right);
                if op == Operator::Gt { Operator::Lt } else { Operator::LtEq }
            }
            other => other,
        };
        encoder.text(&format!("{op:?}")).flag(fails_on_overflow).bytes(&left).bytes(&right);
        Ok(encoder.into_bytes())
    }

    /// A chain of AND or OR as a set. One member is that member: `WHERE a` is `WHERE a AND a`'s shorter self only if both
    /// were written so; duplicates are kept.
    fn chain(&self, expr: &Arc<dyn PhysicalExpr>, op: Operator, columns: Columns<'_>) -> Result<Vec<u8>, Uncacheable> {
        let mut members = vec![];
        let mut rest = vec![expr];
        while let Some(expr) = rest.pop() {
            match expr.downcast_ref::<BinaryExpr>() {
                Some(binary) if *binary.op() == op => rest.extend([binary.right(), binary.left()]),
                _ => members.push(self.encode(expr, columns)?),
            }
        }
        if members.len() == 1 {
            return Ok(members.remove(0));
        }
        let mut encoder = Encoder::new(if op == Operator::And { Tag::And } else { Tag::Or });
        encoder.set(members);
        Ok(encoder.into_bytes())
    }

    fn case(&self, case: &CaseExpr, columns: Columns<'_>) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(Tag::Case);
        let optional = |encoder: &mut Encoder, expr: Option<&Arc<dyn PhysicalExpr>>| {
            match expr {
                Some(expr) => encoder.tag(Tag::Some).bytes(&self.encode(expr, columns)?),
                None => encoder.tag(Tag::None),
            };
            Ok::<_, Uncacheable>(())
        };
        optional(&mut encoder, case.expr())?;
        optional(&mut encoder, case.else_expr())?;
        encoder.number(case.when_then_expr().len() as u64);
        for (when, then) in case.when_then_expr() {
            encoder.bytes(&self.encode(when, columns)?).bytes(&self.encode(then, columns)?);
        }
        Ok(encoder.into_bytes())
    }

    /// A subquery's number means nothing by itself: what stands for it is what it computes, and on what.
    fn scalar_subquery(&self, subquery: &ScalarSubqueryExpr) -> Result<Vec<u8>, Uncacheable> {
        let scope = self.scopes.iter().rev().find(|scope| &scope.results == subquery.results());
        let scope = scope.ok_or(Uncacheable::Shape("a scalar subquery belongs to no plan that is known"))?;
        #[expect(deprecated, reason = "nothing else tells the number")]
        let index = subquery.index().as_usize();
        let known = scope.values.iter().find(|(number, _)| *number == index);
        let (_, value) = known.ok_or(Uncacheable::Shape("a scalar subquery has no plan"))?;
        let value = value.as_ref().map_err(Clone::clone)?;
        self.met.set(self.met.get().max(value.exactness));
        self.met_inputs.borrow_mut().extend(value.inputs.iter().cloned());
        let mut encoder = Encoder::new(Tag::ScalarSubquery);
        encoder.fingerprint(&value.key);
        Ok(encoder.into_bytes())
    }
}

fn encode_literal(literal: &Literal) -> Result<Vec<u8>, Uncacheable> {
    let value: &ScalarValue = literal.value();
    let unreadable = |_| Uncacheable::Expression(value.to_string());
    // Metadata of a constant (an extension type) is part of its meaning.
    let field = literal.return_field(&arrow::datatypes::Schema::empty()).map_err(unreadable)?;
    if !field.metadata().is_empty() {
        return Err(Uncacheable::Expression(value.to_string()));
    }
    super::literal::scalar(value).map_err(unreadable)
}
