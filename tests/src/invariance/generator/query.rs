//! SELECTs: joins, groups, windows, unions, subqueries, CTEs.

use super::expr::table_columns;
use super::views::reads_view;
use super::{Column, Generator, Relation, Type};
use crate::invariance::tables::NAMES;

impl Generator {
    /// A whole statement: its rows, and its text with an order or a limit.
    pub(super) fn statement(&mut self) -> (Relation, String) {
        let relation = match self.random.below(11) {
            0 => self.with_cte(),
            1 => self.set_operation(),
            2 => self.around_views(),
            _ => self.select(2),
        };
        self.perhaps_ordered(relation)
    }

    pub(super) fn perhaps_ordered(&mut self, relation: Relation) -> (Relation, String) {
        let text = match self.random.chance(40) {
            true => self.ordered(relation.clone()).text,
            false => relation.text.clone(),
        };
        // Sometimes the order and the limit are part of what later statements build upon.
        match self.random.chance(20) {
            true => (Relation { text: text.clone(), ..relation }, text),
            false => (relation, text),
        }
    }

    /// A query over an earlier one.
    pub(super) fn outer_layer(&mut self, inner: &Relation) -> (Relation, String) {
        let alias = self.name("o");
        let scope: Vec<Column> = inner.columns.iter().map(|column| through(&alias, column)).collect();
        let source = Source { text: format!("({}) {alias}", inner.text), scope };
        let relation = match self.random.below(7) {
            0 => self.windowed(source),
            1 => self.joined(source),
            2 | 3 => self.plain(source),
            4 => self.distinct(source),
            _ => self.grouped(source),
        };
        self.perhaps_ordered(relation)
    }

    /// An earlier query joined with a table.
    fn joined(&mut self, left: Source) -> Relation {
        let right = self.single(0);
        let join = *self.random.pick(&["INNER JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let on = format!("⟦{} = {}⟧", first_int(&left.scope), first_int(&right.scope));
        let text = format!("{} {join} {} ON {on}", left.text, right.text);
        self.plain(Source { text, scope: left.scope.into_iter().chain(right.scope).collect() })
    }

    fn select(&mut self, depth: usize) -> Relation {
        let source = self.source(depth);
        match self.random.below(10) {
            _ if reads_view(&source) && self.random.chance(35) => self.distinct(source),
            0..=3 => self.grouped(source),
            4 => self.windowed(source),
            5 => self.distinct(source),
            _ => self.plain(source),
        }
    }

    pub(super) fn plain(&mut self, source: Source) -> Relation {
        let n = 1 + self.random.below(4);
        let (items, columns) = self.items(&source.scope, n);
        let filter = self.filter(&source.scope);
        Relation { text: format!("SELECT {} FROM {}{filter}", items.join(", "), source.text), columns }
    }

    pub(super) fn distinct(&mut self, source: Source) -> Relation {
        let relation = self.plain(source);
        Relation { text: relation.text.replacen("SELECT ", "SELECT DISTINCT ", 1), ..relation }
    }

    fn items(&mut self, scope: &[Column], n: usize) -> (Vec<String>, Vec<Column>) {
        let mut items = vec![];
        let mut columns = vec![];
        for _ in 0..n {
            let data_type = match scope.is_empty() {
                true => Type::Int,
                false => self.random.pick(scope).data_type,
            };
            let name = self.name("c");
            items.push(format!("{} AS {name}", self.expr(data_type, scope, 2)));
            columns.push(Column { name, data_type });
        }
        (items, columns)
    }

    fn filter(&mut self, scope: &[Column]) -> String {
        match self.random.chance(65) {
            true => format!(" WHERE {}", self.condition(scope, 2)),
            false => String::new(),
        }
    }

    pub(super) fn grouped(&mut self, source: Source) -> Relation {
        let n_keys = *self.random.pick(&[0, 1, 1, 2]);
        let (keys, mut columns) = self.items(&source.scope, n_keys);
        let expressions: Vec<String> =
            keys.iter().filter_map(|key| key.rsplit_once(" AS ")).map(|(expr, _)| expr.to_owned()).collect();
        let mut items = keys.clone();
        let n_aggregates = 1 + self.random.below(3);
        for _ in 0..n_aggregates {
            let (aggregate, data_type) = self.aggregate(&source.scope);
            let name = self.name("a");
            let filter = match self.random.chance(30) {
                true => format!(" FILTER (WHERE {})", self.condition(&source.scope, 0)),
                false => String::new(),
            };
            items.push(format!("{aggregate}{filter} AS {name}"));
            columns.push(Column { name, data_type });
        }
        let filter = self.filter(&source.scope);
        let group = match (n_keys, self.random.below(8)) {
            (0, _) => String::new(),
            (2, 0) => format!(" GROUP BY ROLLUP ({})", expressions.join(", ")),
            (2, 1) => format!(" GROUP BY CUBE ({})", expressions.join(", ")),
            (2, 2) => format!(" GROUP BY GROUPING SETS (({}), ())", expressions.join(", ")),
            (1, _) => " GROUP BY 1".to_owned(),
            _ => " GROUP BY 1, 2".to_owned(),
        };
        let having = match self.random.chance(25) {
            true => {
                let alias = source.scope.iter().find(|column| column.data_type == Type::Int);
                let counted = alias.map_or("*".to_owned(), |column| column.name.clone());
                format!(" HAVING count({counted}) > {}", self.literal(0, 4))
            }
            false => String::new(),
        };
        let text = format!("SELECT {} FROM {}{filter}{group}{having}", items.join(", "), source.text);
        Relation { text, columns }
    }

    fn aggregate(&mut self, scope: &[Column]) -> (String, Type) {
        let data_type = *self.random.pick(&Type::ALL);
        let a = self.expr(data_type, scope, 1);
        match self.random.below(22) {
            0 => ("count(*)".to_owned(), Type::Int),
            1 => (format!("count({a})"), Type::Int),
            2 => (format!("count(DISTINCT {a})"), Type::Int),
            3 => (format!("sum({})", self.expr(Type::Int, scope, 1)), Type::Int),
            4 => (format!("sum({})", self.expr(Type::Float, scope, 1)), Type::Float),
            5 => (format!("sum({})", self.expr(Type::Decimal, scope, 0)), Type::Decimal),
            6 => (format!("avg({})", self.expr(Type::Int, scope, 1)), Type::Float),
            7 => (format!("bool_or({})", self.expr(Type::Bool, scope, 1)), Type::Bool),
            8 => {
                let text = self.expr(Type::Text, scope, 0);
                (format!("string_agg({text}, ',' ORDER BY {text})"), Type::Text)
            }
            9 => (format!("sum(DISTINCT {})", self.expr(Type::Int, scope, 1)), Type::Int),
            10 => (format!("stddev({})", self.expr(Type::Int, scope, 0)), Type::Float),
            11 => (format!("var_pop({})", self.expr(Type::Int, scope, 0)), Type::Float),
            // Of values that vary together, so that nothing cancels out.
            12 => {
                let x = self.expr(Type::Int, scope, 0);
                let function = *self.random.pick(&["corr", "covar_samp", "covar_pop", "regr_slope", "regr_sxy"]);
                (format!("{function}({x} * 2, {x})"), Type::Float)
            }
            13 => {
                let (x, y) = (self.expr(Type::Int, scope, 0), self.expr(Type::Int, scope, 0));
                let function = *self.random.pick(&["regr_count", "regr_avgx", "regr_sxx"]);
                (format!("CAST({function}({y}, {x}) AS DOUBLE)"), Type::Float)
            }
            14 => (format!("CAST(approx_distinct({}) AS BIGINT)", self.expr(Type::Text, scope, 0)), Type::Int),
            15 => (format!("median({})", self.expr(Type::Int, scope, 0)), Type::Int),
            16 => {
                let function = *self.random.pick(&["bit_and", "bit_or", "bit_xor"]);
                (format!("{function}({})", self.expr(Type::Int, scope, 0)), Type::Int)
            }
            17 => (format!("bool_and({})", self.expr(Type::Bool, scope, 1)), Type::Bool),
            18 => (format!("avg({})", self.expr(Type::Float, scope, 0)), Type::Float),
            _ if data_type == Type::Bool => (format!("count({a})"), Type::Int),
            _ => (format!("{}({a})", self.random.pick(&["min", "max"])), data_type),
        }
    }

    pub(super) fn windowed(&mut self, source: Source) -> Relation {
        let (mut items, mut columns) = self.items(&source.scope, 2);
        let order: Vec<String> = source.scope.iter().map(|column| column.name.clone()).collect();
        for _ in 0..1 + self.random.below(2) {
            let partition = match self.random.chance(60) {
                true => format!("PARTITION BY {} ", self.random.pick(&source.scope).name),
                false => String::new(),
            };
            // Ties have no order of their own: everything is a key.
            let start = self.random.below(order.len());
            let mut keys = order.clone();
            keys.rotate_left(start);
            if self.random.chance(50) {
                keys[0].push_str(" DESC");
            }
            let frame = *self.random.pick(&[
                "",
                "",
                " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
                " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            ]);
            let over = format!("OVER ({partition}ORDER BY {}{frame})", keys.join(", "));
            let a = self.expr(Type::Int, &source.scope, 1);
            let (function, data_type) = match self.random.below(9) {
                0 => ("row_number()".to_owned(), Type::Int),
                1 => ("rank()".to_owned(), Type::Int),
                2 => (format!("lag({a}, {})", self.literal(1, 3)), Type::Int),
                3 => (format!("lead({a})"), Type::Int),
                4 => (format!("first_value({a})"), Type::Int),
                5 => (format!("max({})", self.expr(Type::Text, &source.scope, 0)), Type::Text),
                6 => (format!("count({a})"), Type::Int),
                7 => (format!("ntile({})", self.literal(2, 5)), Type::Int),
                _ => (format!("sum({a})"), Type::Int),
            };
            let name = self.name("w");
            items.push(format!("{function} {over} AS {name}"));
            columns.push(Column { name, data_type });
        }
        let filter = self.filter(&source.scope);
        Relation { text: format!("SELECT {} FROM {}{filter}", items.join(", "), source.text), columns }
    }

    /// What a SELECT reads: tables, views, queries, joins of them.
    fn source(&mut self, depth: usize) -> Source {
        let left = self.single(depth);
        if depth == 0 || self.random.chance(60) {
            return left;
        }
        let right = self.single(depth - 1);
        let join = *self.random.pick(&[
            "INNER JOIN",
            "INNER JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT SEMI JOIN",
            "LEFT ANTI JOIN",
            "CROSS JOIN",
        ]);
        if join == "CROSS JOIN" {
            // Few rows on the other side, or there would be too many in all.
            let few = self.name("x");
            let filter = format!("SELECT * FROM {} WHERE {} = 1", right.text, first_int(&right.scope));
            let unqualified = |name: &str| name.rsplit_once('.').map_or(name, |(_, name)| name).to_owned();
            let right = right.scope.iter().map(|column| Column {
                name: format!("{few}.{}", unqualified(&column.name)),
                data_type: column.data_type,
            });
            let scope = left.scope.iter().cloned().chain(right).collect();
            return Source { text: format!("{} CROSS JOIN ({filter}) {few}", left.text), scope };
        }
        let mut on = format!("⟦{} = {}⟧", first_int(&left.scope), first_int(&right.scope));
        if self.random.chance(40) {
            let both: Vec<Column> = left.scope.iter().chain(&right.scope).cloned().collect();
            on.push_str(&format!(" AND ⟦{}⟧", self.comparison(&both)));
        }
        let text = format!("{} {join} {} ON {on}", left.text, right.text);
        let keeps_right = !join.contains("SEMI") && !join.contains("ANTI");
        let right = right.scope.into_iter().filter(|_| keeps_right);
        Source { text, scope: left.scope.into_iter().chain(right).collect() }
    }

    pub(super) fn comparison(&mut self, scope: &[Column]) -> String {
        let (a, b) = (self.expr(Type::Int, scope, 1), self.expr(Type::Int, scope, 0));
        format!("{a} {} {b}", self.random.pick(&["<", ">", "<=", "<>"]))
    }

    pub(super) fn single(&mut self, depth: usize) -> Source {
        if depth > 0 && self.random.chance(30) {
            let inner = self.select(depth - 1);
            let alias = self.name("s");
            let scope = inner.columns.iter().map(|column| through(&alias, column)).collect();
            return Source { text: format!("({}) {alias}", inner.text), scope };
        }
        if self.random.chance(20) {
            return self.view();
        }
        let alias = self.name("t");
        // The table that is never fed is rarely interesting.
        let table = match self.random.chance(4) {
            true => "z",
            false => *self.random.pick(&NAMES[..5]),
        };
        let mut scope = table_columns(&alias);
        if table == "h" {
            scope.push(Column { name: format!("{alias}.p"), data_type: Type::Int });
        }
        Source { text: format!("{table} {alias}"), scope }
    }

    /// A CTE that is used twice.
    fn with_cte(&mut self) -> Relation {
        let inner = self.select(1);
        let (cte, a, b) = (self.name("v"), self.name("t"), self.name("u"));
        let scope: Vec<Column> = inner.columns.iter().map(|column| through(&a, column)).collect();
        let key = inner.columns[0].name.clone();
        let source = Source { text: format!("{cte} {a} INNER JOIN {cte} {b} ON {a}.{key} = {b}.{key}"), scope };
        let outer = if self.random.chance(50) { self.grouped(source) } else { self.plain(source) };
        Relation { text: format!("WITH {cte} AS ({}) {}", inner.text, outer.text), columns: outer.columns }
    }

    /// UNION, INTERSECT or EXCEPT of queries of the same types.
    fn set_operation(&mut self) -> Relation {
        let operation = *self.random.pick(&["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
        let types: Vec<Type> = (0..1 + self.random.below(3)).map(|_| *self.random.pick(&Type::ALL)).collect();
        let mut columns = vec![];
        let mut sides = vec![];
        for side in 0..2 {
            let source = self.source(1);
            let mut items = vec![];
            for data_type in &types {
                let expr = self.expr(*data_type, &source.scope, 1);
                if side == 0 {
                    let name = self.name("c");
                    items.push(format!("{expr} AS {name}"));
                    columns.push(Column { name, data_type: *data_type });
                } else {
                    items.push(expr);
                }
            }
            let filter = self.filter(&source.scope);
            sides.push(format!("SELECT {} FROM {}{filter}", items.join(", "), source.text));
        }
        Relation { text: sides.join(&format!(" {operation} ")), columns }
    }

    /// With an ORDER BY, and perhaps a LIMIT.
    pub(super) fn ordered(&mut self, relation: Relation) -> Relation {
        let n = relation.columns.len();
        let start = self.random.below(n);
        let key = |random: &mut crate::invariance::Random, place: usize| {
            let direction = *random.pick(&["", "", " DESC", " DESC NULLS LAST", " NULLS FIRST"]);
            format!("{}{direction}", (place + start) % n + 1)
        };
        // Without all columns a limit may choose.
        let n_keys = if self.random.chance(80) { n } else { 1 };
        let keys: Vec<String> = (0..n_keys).map(|place| key(&mut self.random, place)).collect();
        let mut text = format!("{} ORDER BY {}", relation.text, keys.join(", "));
        if self.random.chance(50) {
            text.push_str(&format!(" LIMIT {}", self.literal(0, 15)));
        }
        if self.random.chance(20) {
            text.push_str(&format!(" OFFSET {}", self.literal(0, 5)));
        }
        Relation { text, ..relation }
    }
}

pub(super) struct Source {
    pub(super) text: String,
    pub(super) scope: Vec<Column>,
}

pub(super) fn through(alias: &str, column: &Column) -> Column {
    Column { name: format!("{alias}.{}", column.name), data_type: column.data_type }
}

pub(super) fn first_int(scope: &[Column]) -> String {
    let found = scope.iter().find(|column| column.data_type == Type::Int);
    found.map_or("1".to_owned(), |column| column.name.clone())
}
