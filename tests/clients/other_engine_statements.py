"""Random statements for other_engine.py: typed, each with exactly one right answer, in words that both engines know.

Every table has the columns of `COLUMNS`, and an `id` that is there once. No table is called like a column: in `t AS yes .. (SELECT .. WHERE
yes.k = 1)` DataFusion looks for a field of the column, and fails. A statement's columns are called c0, c1, ..; so any statement
can stand within another one, or be sorted by all that it has, which leaves nothing to luck.

What differs on purpose is not asked; docs/sql.md tells most of it:
- numbers with a point outside of comparisons and casts (a DOUBLE here, a DECIMAL there), `/` and `avg` of anything but DOUBLEs
  (cut here, a DOUBLE there), integers that overflow (wrap around here, an error there)
- casts of DOUBLE and DECIMAL to integers (cut here, rounded there), of `ts` to fewer digits, `round` of a DOUBLE (halves)
- `date + INTERVAL '5 hours'` (a DATE here, a TIMESTAMP there), intervals of months compared with days, intervals as columns
- DOUBLEs that are NaN, infinite, -0.0, or do not add exactly
- texts of DOUBLEs and TIMESTAMPs, `substr` before the first letter, `concat` of what is no text
- LATERAL, USING, NATURAL, subqueries in ON: one of the two refuses most of them
"""

import re
from typing import NamedTuple

COLUMNS = ("id", "k", "j", "g", "d", "ts", "m", "f", "yes")
LETTERS = ("a", "b", "ab", "B", "", "é", "10")

# What a word in braces may become. {a} is the table that is spoken of: the one behind the colon in {column:b}; else the same as before,
# at first "a". {b} is another one.
GRAMMAR = {
    "key": ("k", "j"),
    "column": tuple(f"{{a}}.{column}" for column in COLUMNS[1:]),
    "op": ("=", "<>", "<", "<=", ">", ">="),
    "not": ("", "NOT "),
    "order": ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"),
    "letter": LETTERS,
    "pattern": ("a%", "%b", "_", "%"),
    "number": tuple(str(number) for number in range(-2, 10)),
    "cents": ("00", "05", "25", "5", "99"),
    "day": tuple(f"2024-01-{day:02}" for day in range(1, 29)),
    "time": tuple(f"2024-01-0{day} {hour:02}:{minute}:00" for day in range(1, 10) for hour in (0, 1, 12, 23) for minute in ("00", "30")),
    "interval": ("-2 day", "-5 hours", "-90 minutes", "15 minutes", "5 hours", "30 hours", "50 hours", "1 day", "1 day 3 hours", "4 day", "7 day"),
    # Values.
    "integer": (
        "{a}.k", "{a}.j", "{a}.id", "{a}.k + {a}.j", "{a}.k + {a}.k", "coalesce({a}.k, -1)", "{a}.j % 3", "abs({a}.j)", "-{a}.k", "{a}.j * -2",
        "CASE WHEN {a}.yes THEN {a}.k ELSE {a}.j END", "nullif({a}.k, 3)", "greatest({a}.k, {a}.j)", "CAST(floor({a}.f) AS BIGINT)", "length({a}.g)",
    ),
    "text": (
        "{a}.g", "upper({a}.g)", "{a}.g || 'x'", "left({a}.g, 1)", "coalesce({a}.g, 'none')", "CAST({a}.k AS VARCHAR)", "reverse({a}.g)",
    ),
    "date": (
        "{a}.d", "CAST({a}.ts AS DATE)", "CAST({a}.d + INTERVAL '5 day' AS DATE)", "CAST({a}.d - INTERVAL '1 month' AS DATE)",
        "CAST(date_trunc('week', {a}.d) AS DATE)", "CAST(date_trunc('month', {a}.d) AS DATE)", "greatest({a}.d, DATE '2024-01-15')",
    ),
    "timestamp": (
        "{a}.ts", "date_trunc('hour', {a}.ts)", "date_trunc('day', {a}.ts)", "{a}.ts + INTERVAL '{interval}'", "CAST({a}.d AS TIMESTAMP)",
    ),
    "decimal": (
        "{a}.m", "{a}.m + 1", "{a}.m * 2", "abs({a}.m)", "-{a}.m", "CAST({a}.m AS DECIMAL(12, 1))", "round({a}.m, 1)",
        "coalesce({a}.m, CAST(0 AS DECIMAL(10, 2)))",
    ),
    "value": ("{column}", "{integer}", "{date}", "{timestamp}", "{decimal}", "{text}"),
    "since": ("TIMESTAMP '2024-01-04 12:00:00'", "CAST({a}.d AS TIMESTAMP)", "date_trunc('day', {a}.ts)"),
    # Conditions on one table.
    "plain": ("{about_integers}", "{about_dates}", "{about_intervals}", "{about_decimals}", "{about_text}", "{about_nulls}"),
    "about_integers": (
        "{integer} {op} {number}", "{integer} {op} {number}", "{integer} {not}IN ({number}, {number}, {number})", "{a}.k {op} {number}.5",
        "{a}.k {not}BETWEEN {a}.j AND {number}", "{a}.k IS {not}DISTINCT FROM {a}.j", "CAST({a}.k AS VARCHAR) {op} '{number}'",
    ),
    "about_dates": (
        "{date} {op} DATE '{day}'", "{timestamp} {op} TIMESTAMP '{time}'", "CAST({a}.ts AS DATE) {op} DATE '{day}'", "{a}.ts {op} DATE '{day}'",
        "{a}.d {op} TIMESTAMP '{time}'", "CAST({a}.d AS TIMESTAMP) {op} TIMESTAMP '{time}'", "CAST({a}.ts AS DATE) IN (DATE '2024-01-02', DATE '{day}')",
        "extract(day FROM {a}.d) {op} {number}", "CAST({a}.d AS VARCHAR) LIKE '2024-01-0%'",
    ),
    "about_intervals": (
        "{a}.ts - {since} {op} INTERVAL '{interval}'", "INTERVAL '{interval}' {op} {a}.ts - {since}", "{a}.ts {op} {since} + INTERVAL '{interval}'",
        "{a}.ts - {since} BETWEEN INTERVAL '-1 day' AND INTERVAL '{interval}'",
    ),
    "about_decimals": (
        "{decimal} {op} {number}", "{a}.m {op} {number}.{cents}", "CAST({a}.m AS DECIMAL(9, 1)) {op} {number}.5", "round({a}.m, 1) {op} {number}.3",
        "CAST({a}.m AS DOUBLE) {op} {a}.f", "{a}.m {not}IN (1, 0.5, -1.25)", "{a}.f {op} {number}.25", "floor({a}.m) {op} {number}",
        "CAST({a}.k AS DECIMAL(6, 1)) {op} {a}.m",
    ),
    "about_text": (
        "{text} {op} '{letter}'", "{a}.g {not}LIKE '{pattern}'", "{a}.g {not}IN ('a', '{letter}')", "coalesce({a}.g, 'b') {op} '{letter}'",
        "length({a}.g) {op} {number}",
    ),
    "about_nulls": (
        "{column} IS {not}NULL", "{a}.yes", "NOT {a}.yes", "{a}.yes IS {not}TRUE", "{a}.yes IS {not}FALSE", "coalesce({a}.yes, false)",
        "nullif({a}.k, 3) IS NULL",
    ),
    # Joins.
    "of_both": (
        "{a}.{key} {op} {b}.{key}", "{a}.m {op} {b}.m", "{a}.g {op} {b}.g", "{a}.d {op} {b}.d", "{a}.ts {op} {b}.d", "{a}.yes {op} {b}.yes",
        "{a}.ts - {b}.ts {op} INTERVAL '{interval}'",
    ),
    "on": (
        "{a}.k = {b}.k AND {of_both}", "{a}.k IS NOT DISTINCT FROM {b}.k", "{a}.id < {b}.j", "{a}.id >= {b}.j", "{a}.g = {b}.g AND {a}.k <> {b}.k",
        "{a}.d = CAST({b}.ts AS DATE)", "{a}.ts - {b}.ts > INTERVAL '{interval}'", "{a}.k = {b}.k AND {plain}",
    ),
    "equal": ("{a}.{key} = {b}.{key}",),
    "inner_or_left": ("JOIN", "LEFT JOIN"),
    "kind": ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"),
    "join": ("FULL JOIN {table} AS {b} ON {equal}", "{kind} {table} AS {b} ON {equal}", "{kind} {table} AS {b} ON {equal}", "{kind} {table} AS {b} ON {on}"),
    "where_both": ("", "", "WHERE {condition}", "WHERE {condition:b}", "WHERE {condition} AND {condition:b}", "WHERE {of_both}", "WHERE {of_both} OR {plain:b}"),
    # Subqueries, correlated and not: values, and what is true, false or NULL.
    "rows": (
        "FROM {table} AS x", "FROM {table} AS x WHERE {condition:x}", "FROM {table} AS x WHERE x.g = {a}.g",
        "FROM {table} AS x WHERE x.k = {a}.k AND {condition:x}",
    ),
    "equal_rows": ("FROM {table} AS x WHERE x.{key} = {a}.{key}", "FROM {table} AS x WHERE x.k = {a}.k AND {condition:x}"),
    "sum_of_rows": ("count(*)", "sum(x.j)", "max(x.j)", "min(x.k)", "avg(x.f)"),
    "scalar": (
        "(SELECT count(*) {equal_rows})", "(SELECT sum(x.j) {equal_rows})", "(SELECT max(x.d) {equal_rows})", "(SELECT min(x.g) {equal_rows})",
        "(SELECT count(x.g) {equal_rows})", "(SELECT coalesce(sum(x.j), 0) {equal_rows})", "(SELECT count(*) + 1 {equal_rows})",
        "(SELECT max(x.k + x.j) {equal_rows})", "(SELECT max(x.ts) FROM {table} AS x WHERE x.yes)",
    ),
    "member": (
        "{a}.{key} {not}IN (SELECT x.{key} {rows})", "{not}EXISTS (SELECT 1 {rows})", "{a}.{key} {op} ANY (SELECT x.{key} {rows})",
        "{a}.{key} {op} ALL (SELECT x.{key} {rows})", "{a}.g {not}IN (SELECT x.g {rows})",
    ),
    "condition": (
        "{plain}", "{plain}", "{plain}", "{plain}", "({plain} AND {plain})", "({plain} OR {plain})", "NOT ({plain})", "({plain} OR {plain}) IS NOT TRUE",
    ),
    "full_condition": (
        "{condition}", "{condition}", "{condition}", "{with_subquery}", "({with_subquery} OR {plain})", "({with_subquery} AND {condition})",
        "NOT ({with_subquery})", "NOT ({with_subquery} AND {plain})", "({with_subquery}) IS NOT TRUE",
    ),
    "where": ("", "", "WHERE {full_condition}", "WHERE {full_condition}", "WHERE {condition}"),
    "filter": ("FILTER (WHERE {plain})", "FILTER (WHERE {condition})"),
    "with_subquery": (
        "{member}", "{member}", "({member}) IS NULL", "({member}) IS NOT FALSE", "{integer} {op} (SELECT {sum_of_rows} {equal_rows})",
    ),
    # Aggregates.
    "bound": ("min({value})", "max({value})", "min({column})", "max({column})"),
    "aggregate": (
        "{one}", "{one}", "{one}", "{one}", "{one} {filter}", "string_agg({a}.g, ',' ORDER BY {a}.g, {a}.id)",
    ),
    "one": (
        "count(*)", "count({value})", "sum({integer})", "{bound}", "{bound}", "sum({a}.m)", "sum({a}.f)", "avg({a}.f)", "bool_or({a}.yes)",
        "count(DISTINCT {column})", "sum(DISTINCT {a}.k)",
    ),
    # Parts of statements.
    "few": ("1", "2", "3", "5", "9"),
    "digits": ("0", "1", "2"),
    "ordering": ("j", "d", "m", "ts"),
    "set": ("UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL"),
    "grouping": (
        "GROUPING SETS ((a.k), (a.yes), (a.k, a.yes))", "ROLLUP (a.k, a.yes)", "CUBE (a.k, a.yes)", "GROUPING SETS ((a.k, a.yes), ())",
    ),
    "having": (
        "", "", "HAVING count(*) > 1", "HAVING sum({a}.k) IS NOT NULL", "HAVING sum({a}.k) > (SELECT avg(x.f) FROM {table} AS x WHERE {condition:x})",
        "HAVING max({a}.id) {op} (SELECT count(*) FROM {table} AS x)",
    ),
    "bounds": ("{bound}", "{bound}", "{bound} {filter}"),
    "part": ("", "PARTITION BY {column} "),
    "frame": (
        "", "DESC", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "DESC ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING",
    ),
    "label": ("'x'", "'y'", "'x'", "'y'", "a.g"),
    "labelled": (
        "SELECT {label} AS c0, a.id AS c1, a.{same} AS c2 FROM {table} AS a {where} UNION ALL SELECT {label}, a.id, a.{same} FROM {table} AS a {where}",
        "SELECT 1 AS c0, a.id AS c1, a.{same} AS c2 FROM {table} AS a {where} UNION ALL SELECT 0, a.id, a.{same} FROM {table} AS a {where}",
    ),
    "groups": ("SELECT a.k, a.g, {aggregate} AS s, count(*) AS n FROM {table} AS a {where} GROUP BY a.k, a.g",),
    "groups_of_x": ("SELECT x.k, {aggregate:x} AS n, {aggregate:x} AS s FROM {table} AS x {where:x} GROUP BY x.k",),
}

# {same} is one column in all of a statement.
STATEMENTS = (
    # Joins.
    "SELECT a.id AS c0, {column:b} AS c1, {integer:a} AS c2, b.id AS c3 FROM {table} AS a {join} {where_both}",
    "SELECT a.id AS c0, b.id AS c1, c.id AS c2 FROM {table} AS a {join} {inner_or_left} {table} AS c ON b.{key} = c.{key} {where_both}",
    "SELECT a.id AS c0, q.n AS c1, q.s AS c2 FROM {table} AS a {inner_or_left} ({groups_of_x}) AS q ON q.k = a.{key} {where}",
    "SELECT a.id AS c0 FROM {table} AS a LEFT JOIN {table} AS b ON a.k = b.k AND {plain:b} WHERE b.id IS NULL",
    "SELECT a.id AS c0, b.id AS c1 FROM {table} AS a, {table} AS b WHERE (a.k = b.k AND {plain:a}) OR (a.k = b.k AND {plain:b})",
    "SELECT a.id AS c0, b.id AS c1, CASE WHEN round(a.m, {digits}) {op} {number} THEN round(b.m, {digits}) ELSE a.m END AS c2 "
    "FROM {table} AS a {inner_or_left} {table} AS b ON round(a.m, 1) = round(b.m, 1) {where_both}",
    "SELECT DISTINCT {column:a} AS c0, {column:b} AS c1 FROM {table} AS a {join}",
    # Groups.
    "SELECT {column} AS c0, {aggregate} AS c1, {aggregate} AS c2 FROM {table} AS a {where} GROUP BY 1 {having}",
    "SELECT {value} AS c0, {aggregate} AS c1 FROM {table} AS a {where} GROUP BY 1 {having}",
    "SELECT {column} AS c0, {aggregate:b} AS c1, {aggregate:a} AS c2 FROM {table} AS a {join} {where_both} GROUP BY 1 {having}",
    "SELECT q.g AS c0, sum(q.n) AS c1, max(q.k) AS c2, count(*) FILTER (WHERE q.n > 1) AS c3 FROM ({groups}) AS q GROUP BY q.g",
    "SELECT a.k AS c0, a.yes AS c1, grouping(a.k) AS c2, grouping(a.yes) AS c3, {aggregate} AS c4 FROM {table} AS a {where} GROUP BY {grouping}",
    "SELECT {aggregate} AS c0, {bound} AS c1, {bound} {filter} AS c2 FROM {table} AS a {where}",
    # Of expressions beside those of columns.
    "SELECT {bounds} AS c0, {bounds} AS c1, {bounds} AS c2 FROM {table} AS a {where}",
    # Windows.
    "SELECT * FROM (SELECT a.id AS c0, a.k AS c1, row_number() OVER ({part}ORDER BY a.{ordering} {order}, a.id) AS c2 FROM {table} AS a {where}) AS q "
    "WHERE c2 <= {few}",
    "SELECT a.id AS c0, rank() OVER (ORDER BY a.k {order}) AS c1, dense_rank() OVER (PARTITION BY a.yes ORDER BY a.d {order}) AS c2, "
    "sum(a.j) OVER (ORDER BY a.k {order}) AS c3, count(*) OVER (PARTITION BY a.g) AS c4, ntile(3) OVER (ORDER BY a.id) AS c5 FROM {table} AS a {where}",
    "SELECT a.id AS c0, sum(a.j) OVER ({part}ORDER BY a.id {frame}) AS c1, max(a.g) OVER ({part}ORDER BY a.id {frame}) AS c2, "
    "first_value(a.d) OVER ({part}ORDER BY a.id {frame}) AS c3, last_value(a.m) OVER ({part}ORDER BY a.id {frame}) AS c4, "
    "lag(a.ts) OVER ({part}ORDER BY a.id) AS c5, lead(a.k, 2) OVER ({part}ORDER BY a.id) AS c6 FROM {table} AS a {where}",
    "SELECT q.g AS c0, q.k AS c1, sum(q.n) OVER (ORDER BY q.g {order}, q.k {order}) AS c2 FROM ({groups}) AS q",
    # Unions and other sets.
    "SELECT a.k AS c0, a.{same} AS c1 FROM {table} AS a {where} {set} SELECT a.k, a.{same} FROM {table} AS a {where}",
    "{labelled}",
    "SELECT n AS c0, count(*) AS c1, sum(v) AS c2, min(v) AS c3 FROM (SELECT 1 AS n, a.j AS v FROM {table} AS a {where} UNION ALL "
    "SELECT 2, a.id FROM {table} AS a {where}) AS u WHERE n > 1 OR v {op} {number} GROUP BY n",
    "SELECT k AS c0, count(*) AS c1, sum(v) AS c2 FROM (SELECT a.k, a.j AS v FROM {table} AS a {where} UNION ALL SELECT a.k, a.id FROM {table} AS a) "
    "AS u GROUP BY k",
    # What is needed several times.
    "WITH w AS ({groups}) SELECT x.k AS c0, x.s AS c1, y.n AS c2 FROM w AS x {inner_or_left} w AS y ON x.k = y.k AND x.g = y.g",
    "WITH w AS ({groups}) SELECT x.k AS c0, x.g AS c1, y.n AS c2 FROM w AS x {inner_or_left} w AS y ON x.k = y.k + 1 WHERE x.n < (SELECT max(n) FROM w)",
    "WITH w AS ({groups}) SELECT x.k AS c0, x.s AS c1 FROM w AS x WHERE x.k {not}IN (SELECT k FROM w WHERE n > 1)",
    # Conditions and subqueries as values.
    "SELECT a.id AS c0 FROM {table} AS a WHERE {full_condition}",
    "SELECT a.id AS c0 FROM {table} AS a WHERE {full_condition} AND {full_condition}",
    "SELECT a.id AS c0, CASE WHEN {plain} THEN a.k WHEN {condition} THEN a.j END AS c1, ({condition}) AS c2 FROM {table} AS a",
    "SELECT a.id AS c0, {scalar} AS c1, {scalar} AS c2 FROM {table} AS a {where}",
    "SELECT a.id AS c0, {member} AS c1, ({member}) IS NULL AS c2 FROM {table} AS a {where}",
    "SELECT a.id AS c0, CASE WHEN {with_subquery} THEN a.k WHEN {plain} THEN a.j ELSE -9 END AS c1 FROM {table} AS a {where}",
)
ORDERED = (
    "{labelled} ORDER BY c0 {order}, c1, c2 LIMIT {few}",
    "SELECT DISTINCT ON (a.k) a.k AS c0, a.id AS c1, a.ts AS c2 FROM {table} AS a {where} ORDER BY a.k, a.{ordering} {order}, a.id {order}",
    "SELECT DISTINCT ON (a.g) a.g AS c0, a.id AS c1, a.m AS c2 FROM {table} AS a {where} ORDER BY a.g, a.{ordering} {order}, a.id {order}",
    "SELECT a.k AS c0, {bound} AS c1 FROM {table} AS a {where} GROUP BY a.k ORDER BY c1 {order}, c0 {order} LIMIT {few}",
    "SELECT a.g AS c0, {one} AS c1 FROM {table} AS a {where} GROUP BY a.g ORDER BY c1 {order}, c0 {order} LIMIT {few}",
)


class Query(NamedTuple):
    sql: str
    n_columns: int
    is_ordered: bool = False


class Word:
    """Is made when it is written: `format(word, "b")` is about the table b."""

    def __init__(self, statements, name, words):
        self.statements, self.name, self.words = statements, name, words

    def __format__(self, table):
        words = self.words | ({"a": table, "b": "a"} if table else {})
        if self.name == "table":
            return self.statements.table()
        return self.statements.fill(self.statements.random.choice(GRAMMAR[self.name]), words)


class Words(dict):
    """Some are given, others are made."""

    def __init__(self, statements, given):
        super().__init__(given)
        self.statements, self.given = statements, given

    def __missing__(self, name):
        return Word(self.statements, name, self.given)


class Statements:
    def __init__(self, random, tables):
        self.random, self.tables = random, tables

    def query(self):
        template = self.random.choice(STATEMENTS + ORDERED)
        sql = self.fill(template, {"a": "a", "b": "b", "same": self.random.choice(COLUMNS[2:])})
        query = Query(sql, 1 + max(int(number) for number in re.findall(r" AS c(\d)", sql)), template in ORDERED)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            query = self.random.choice((self.sorted, self.sorted, self.cut, self.counted, self.joined_with_itself, self.picked))(query)
        return query

    def fill(self, text, words):
        return text.format_map(Words(self, words))

    def table(self):
        return self.random.choice(self.tables)

    # Statements around statements.

    def sorted(self, query):
        """By all columns: equal rows are the same row."""
        names = [f"c{n}" for n in range(query.n_columns)]
        self.random.shuffle(names)
        order = ", ".join(f"{name} {self.random.choice(GRAMMAR['order'])}" for name in names)
        bare = self.random.random() < 0.5 and not query.is_ordered
        sql = query.sql if bare else f"SELECT * FROM ({query.sql}) AS s"
        return Query(f"{sql} ORDER BY {order}", query.n_columns, True)

    def cut(self, query):
        limits = ("LIMIT 1", "LIMIT 3", "LIMIT 9", "LIMIT 5 OFFSET 2", "LIMIT 2 OFFSET 4")
        return Query(f"{self.sorted(query).sql} {self.random.choice(limits)}", query.n_columns, True)

    def counted(self, query):
        last = query.n_columns - 1
        return Query(f"SELECT c0, count(*) AS c1, count(c{last}) AS c2 FROM ({query.sql}) AS s GROUP BY c0", 3)

    def joined_with_itself(self, query):
        join = self.random.choice(("JOIN w AS q ON p.c0 = q.c0", "LEFT JOIN w AS q ON p.c0 IS NOT DISTINCT FROM q.c0", "FULL JOIN w AS q ON p.c0 = q.c0"))
        columns = ", ".join(f"p.c{n}" for n in range(query.n_columns))
        return Query(f"WITH w AS ({query.sql}) SELECT {columns}, q.c0 AS c{query.n_columns} FROM w AS p {join}", query.n_columns + 1)

    def picked(self, query):
        last = f"c{query.n_columns - 1}"
        condition = self.random.choice(("c0 IS NOT NULL", f"{last} IS NULL", f"c0 IS NULL OR {last} IS NOT NULL"))
        return Query(f"SELECT * FROM ({query.sql}) AS s WHERE {condition}", query.n_columns)
