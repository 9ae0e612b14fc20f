"""Asks Nectarine and DuckDB the same: other_engine.py BINARY FOLDER SEED COUNT

Stock DataFusion cannot tell what DataFusion itself answers wrongly; another engine can. Tables are folders of Parquet files that grow
between statements; some statements are asked again, so that kept results answer. Settings of the session change as well. Answers that
differ are told with the seed, and the exit code is 1. An error that only one of the two gives is listed once for each kind, and is no
failure, unless Nectarine calls it its own.
"""

import datetime
import decimal
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading

import duckdb
import pyarrow
import pyarrow.parquet

sys.dont_write_bytecode = True
from other_engine_statements import LETTERS, Statements

# Statements over one set of tables, in one home.
ROUND = 250
# No statement over these tables takes this many seconds, unless it hangs.
PATIENCE = 300

TYPES = {
    "BIGINT": pyarrow.int64(),
    "INTEGER": pyarrow.int32(),
    "SMALLINT": pyarrow.int16(),
    "VARCHAR": pyarrow.string(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us"),
    "TIMESTAMP_MS": pyarrow.timestamp("ms"),
    "DECIMAL(10, 2)": pyarrow.decimal128(10, 2),
    "DECIMAL(12, 3)": pyarrow.decimal128(12, 3),
    "DOUBLE": pyarrow.float64(),
    "BOOLEAN": pyarrow.bool_(),
}
PLAIN = {
    "id": "BIGINT",
    "k": "BIGINT",
    "j": "BIGINT",
    "g": "VARCHAR",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "m": "DECIMAL(10, 2)",
    "f": "DOUBLE",
    "yes": "BOOLEAN",
}
TABLES = {
    "t1": PLAIN,
    "t2": PLAIN,
    "t3": PLAIN | {"k": "SMALLINT", "j": "INTEGER", "ts": "TIMESTAMP_MS", "m": "DECIMAL(12, 3)"},
}
# With the columns of tables, so that they can stand for one.
VIEWS = {
    "v1": "VIEW v1 AS SELECT id, k + 1 AS k, j, g, d, ts, m, f, yes FROM t1 WHERE j IS NOT NULL OR yes",
    "v2": "VIEW v2 AS SELECT id, k, j, g, d, ts, m, f, yes FROM t2 WHERE k > 1 UNION ALL SELECT id + 1000, j, k, g, d, ts, m, f, NOT yes FROM t1 WHERE yes",
    "v3": "MATERIALIZED VIEW v3 AS SELECT max(id) AS id, k, max(j) AS j, min(g) AS g, max(d) AS d, max(ts) AS ts, min(m) AS m, sum(f) AS f, "
    "bool_or(yes) AS yes FROM t2 GROUP BY k",
    "v4": "MATERIALIZED VIEW v4 AS SELECT a.id * 1000 + coalesce(x.id, 0) AS id, a.k, x.j, a.g, x.d, a.ts, a.m, x.f, a.yes FROM v1 AS a "
    "LEFT JOIN t3 AS x ON a.k = x.k AND x.yes",
}
SETTINGS = {
    "nectarine.cache.threshold": ("1", "1", "2"),
    "datafusion.execution.batch_size": ("2", "2", "8192"),
    "datafusion.execution.target_partitions": ("1", "2", "5"),
    "datafusion.execution.parquet.pushdown_filters": ("true", "false"),
    "datafusion.optimizer.repartition_file_min_size": ("0", "10485760"),
    "datafusion.optimizer.repartition_joins": ("true", "true", "false"),
    "datafusion.optimizer.repartition_aggregations": ("true", "true", "false"),
    "datafusion.optimizer.repartition_windows": ("true", "true", "false"),
    "datafusion.optimizer.hash_join_single_partition_threshold": ("0", "1048576"),
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": ("0", "131072"),
    "datafusion.optimizer.prefer_hash_join": ("true", "true", "true", "false"),
}


class Nectarine:
    """One process; statements go in, rows come out, up to a line that says so."""

    def __init__(self, binary, folder):
        command = [str(binary), "--home", str(folder / "home"), "--keep-going", "--format", "ndjson"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, cwd=folder, text=True, encoding="utf-8", **pipes)
        self.n_asked = 0

    def ask(self, sql):
        """Rows, or an error."""
        self.n_asked += 1
        end = f"@@{self.n_asked}"
        patience = threading.Timer(PATIENCE, self.process.kill)
        patience.start()
        self.process.stdin.write(f"{sql};\n\\echo {end}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()).strip() != end:
            if not line:
                raise SystemExit(f"nectarine died or hung at: {sql}\n{''.join(lines)}")
            lines.append(line)
        patience.cancel()
        # Rows may have come before it.
        first = next((at for at, line in enumerate(lines) if line.startswith("error") or "panicked" in line), None)
        if first is not None:
            return None, "".join(lines[first:]).strip()
        read = [json.loads(line, parse_float=decimal.Decimal) for line in lines if line.startswith("{")]
        return [tuple(normal(value) for value in row.values()) for row in read], None

    def must(self, sql):
        _, error = self.ask(sql)
        if error:
            raise SystemExit(f"{sql}\n{error}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Duck:
    def __init__(self):
        self.connection = duckdb.connect()
        self.must("SET TimeZone = 'UTC'")

    def ask(self, sql):
        try:
            return [tuple(normal(value) for value in row) for row in self.connection.execute(sql).fetchall()], None
        except duckdb.Error as error:
            return None, str(error)

    def must(self, sql):
        self.connection.execute(sql)


def normal(value):
    """Values as both engines can tell them: numbers by what they are worth, midnight as its day."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return round(float(value), 6) + 0.0
    if isinstance(value, (datetime.date, datetime.datetime)):
        value = value.isoformat()
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ][\d:.]+", value):
        day, time = value[:10], value[11:].rstrip("0.:" if "." in value else "").ljust(8, "0")
        return day if value[11:].strip("0:.") == "" else f"{day} {time}"
    return value


def in_any_order(rows):
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


class World:
    """Tables that both engines have."""

    def __init__(self, source, folder, nectarine, duck):
        self.random, self.folder, self.nectarine, self.duck = source, folder, nectarine, duck
        self.n_rows = dict.fromkeys(TABLES, 0)
        self.n_files = dict.fromkeys(TABLES, 0)
        for table, columns in TABLES.items():
            (folder / table).mkdir()
            duck.must(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
            for _ in range(3):
                self.grow(table, self.random.randint(1, 15))
            nectarine.must(f"CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{table}/'")
        for text in VIEWS.values():
            nectarine.must(f"CREATE {text}")
            duck.must(f"CREATE {text.removeprefix('MATERIALIZED ')}")
        self.set()

    def names(self):
        return [*TABLES, *TABLES, *VIEWS]

    def row(self, table):
        self.n_rows[table] += 1
        random_ = self.random
        values = (
            random_.randint(0, 6),
            random_.randint(-3, 12),
            random_.choice(LETTERS),
            datetime.date(2024, 1, 1) + datetime.timedelta(random_.randint(0, 40)),
            datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=random_.randint(0, 200), minutes=random_.choice((0, 0, 30))),
            decimal.Decimal(random_.randint(-300, 300)) / 100,
            # Quarters: sums of them are exact in any order.
            random_.randint(-8, 8) / 4,
            random_.random() < 0.5,
        )
        return [self.n_rows[table], *(None if random_.random() < 0.12 else value for value in values)]

    def grow(self, table, n_rows):
        rows = [self.row(table) for _ in range(n_rows)]
        columns = {name: pyarrow.array([row[at] for row in rows], TYPES[kind]) for at, (name, kind) in enumerate(TABLES[table].items())}
        self.n_files[table] += 1
        new, place = self.folder / "new", self.folder / table / f"{self.n_files[table]:03}.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), new, row_group_size=self.random.choice((3, 1000)))
        os.rename(new, place)
        self.duck.must(f"INSERT INTO {table} SELECT * FROM '{place}'")

    def set(self):
        self.settings = {name: self.random.choice(values) for name, values in SETTINGS.items()}
        for name, value in self.settings.items():
            self.nectarine.must(f"SET {name} = {value}")

    def change(self):
        for table in TABLES:
            if self.random.random() < 0.4:
                self.grow(table, self.random.randint(1, 6))
        if self.random.random() < 0.4:
            self.set()


class Outcome:
    def __init__(self):
        self.n_same = self.n_different = self.n_internal = 0
        self.errors = {}

    def one_error(self, engine, sql, error):
        kind = re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "_", error.split("\n")[0])[:60]
        n_times, example = self.errors.get((engine, kind), (0, f"{error.splitlines()[0]}\n  {sql}"))
        self.errors[engine, kind] = n_times + 1, example

    def tell(self):
        for (engine, _), (n_times, example) in self.errors.items():
            print(f"only {engine} fails, {n_times} times: {example}")
        print(f"{self.n_same} the same, {self.n_different} different, {self.n_internal} internal errors")


def compare(seed, world, query, outcome):
    """Whether both gave rows."""
    theirs, their_error = world.duck.ask(query.sql)
    ours, our_error = world.nectarine.ask(query.sql)
    where = f"seed {seed}\n{'; '.join(f'SET {name} = {value}' for name, value in world.settings.items())};\n{query.sql};"
    # DataFusion's date_trunc computes with what is behind a NULL; without optimization that may overflow.
    is_known = our_error and "date_trunc.rs" in our_error and "overflow" in our_error
    if our_error and not is_known and ("internal error" in our_error or "panicked" in our_error):
        outcome.n_internal += 1
        print(f"INTERNAL {where}\n{our_error}\n", flush=True)
    elif our_error and not their_error:
        outcome.one_error("Nectarine", query.sql, our_error)
    elif their_error and not our_error:
        outcome.one_error("DuckDB", query.sql, their_error)
    if our_error or their_error:
        return False
    arranged = list if query.is_ordered else in_any_order
    if arranged(ours) == arranged(theirs):
        outcome.n_same += 1
        return True
    outcome.n_different += 1
    world.nectarine.must("SET nectarine.reuse = off")
    anew, _ = world.nectarine.ask(query.sql)
    world.nectarine.must("SET nectarine.reuse = on")
    verdict = "right without reuse" if anew is not None and arranged(anew) == arranged(theirs) else "wrong without reuse too"
    print(f"DIFFERENT, {verdict}: {where}")
    print(f"  only Nectarine, of {len(ours)}: {[row for row in ours if row not in theirs][:4]}")
    print(f"  only DuckDB, of {len(theirs)}: {[row for row in theirs if row not in ours][:4]}")
    print(f"  Nectarine: {ours[:6]}\n  DuckDB:    {theirs[:6]}\n", flush=True)
    return True


def ask_round(binary, folder, seed, n_statements, outcome):
    folder.mkdir(parents=True)
    source = random.Random(seed)
    nectarine = Nectarine(binary, folder)
    world = World(source, folder, nectarine, Duck())
    statements = Statements(source, world.names())
    asked = []
    for n in range(n_statements):
        if n % 12 == 11:
            world.change()
        again = asked and source.random() < 0.3
        query = source.choice(asked[-40:]) if again else statements.query()
        if compare(seed, world, query, outcome) and not again:
            asked.append(query)
    nectarine.close()


def main():
    binary, folder = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
    seed, count = (int(number) for number in sys.argv[3:5])
    outcome = Outcome()
    for n, first in enumerate(range(0, count, ROUND)):
        ask_round(binary, folder / f"round-{n}", seed + n, min(ROUND, count - first), outcome)
    outcome.tell()
    if outcome.n_different or outcome.n_internal:
        sys.exit(1)


main()
