"""ADBC's Flight SQL driver: statements, parameters, ingest, GetObjects, cancelling, errors."""

import sys
import threading
import time
import warnings

import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pyarrow as pa

warnings.simplefilter("ignore")


def connect():
    options = {}
    if len(sys.argv) > 3:
        options = {"username": sys.argv[2], "password": sys.argv[3]}
    return dbapi.connect(sys.argv[1], db_kwargs=options)


def fails(run, words):
    try:
        run()
    except dbapi.Error as error:
        assert words in str(error), error
        return error
    raise AssertionError(f"it did not fail: {words}")


def statements(connection):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT, b VARCHAR, c DOUBLE)")
        cursor.execute("INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', NULL)")
        assert cursor.rowcount == 2, cursor.rowcount
        cursor.execute("SELECT * FROM t ORDER BY a")
        assert [column[0] for column in cursor.description] == ["a", "b", "c"]
        assert cursor.fetchall() == [(1, "one", 1.5), (2, "two", None)]
        cursor.execute("SELECT a, b FROM t WHERE false")
        table = cursor.fetch_arrow_table()
        assert table.num_rows == 0 and table.column_names == ["a", "b"]
        for _ in range(3):
            cursor.execute("SELECT b, sum(a) AS total FROM t GROUP BY b ORDER BY b")
            assert cursor.fetchall() == [("one", 1), ("two", 2)]
        cursor.execute("SELECT n, repeat('x', 100) AS x FROM generate_series(1, 300000) AS s (n)")
        total = sum(batch.num_rows for batch in cursor.fetch_record_batch())
        assert total == 300000, total


def parameters(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT b FROM t WHERE a = ? AND b = ?", (2, "two"))
        assert cursor.fetchall() == [("two",)]
        cursor.execute("SELECT " + ", ".join(f"? AS c{n}" for n in range(12)), tuple(range(12)))
        assert cursor.fetchall() == [tuple(range(12))]
        cursor.execute("SELECT ? AS x", (None,))
        assert cursor.fetchall() == [(None,)]
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [(n, f"row {n}", n / 2) for n in range(10, 1010)])
        cursor.execute("SELECT count(*), min(a), max(b) FROM t WHERE a >= 10")
        assert cursor.fetchall() == [(1000, 10, "row 999")]
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", pa.record_batch({"1": [None], "2": ["x"], "3": [None]}))
        cursor.execute("SELECT count(*) FROM t WHERE a IS NULL")
        assert cursor.fetchall() == [(1,)]
        assert cursor.adbc_prepare("SELECT a FROM t WHERE a = $1") is not None
        schema = cursor.adbc_execute_schema("SELECT a, b FROM t")
        assert schema.names == ["a", "b"], schema


def ingest(connection):
    table = pa.table({"n": pa.array(range(100000)), "text": pa.array([f"text {n}" for n in range(100000)])})
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("ingested", table, mode="create") == 100000
        assert cursor.adbc_ingest("ingested", table.slice(0, 10), mode="append") == 10
        cursor.execute("SELECT count(*), sum(n) FROM ingested")
        assert cursor.fetchall() == [(100010, sum(range(100000)) + sum(range(10)))]
        fails(lambda: cursor.adbc_ingest("ingested", table, mode="create"), "already exists")
        assert cursor.adbc_ingest("ingested", table.slice(0, 1), mode="replace") == 1
        assert cursor.adbc_ingest("ingested", table.slice(0, 1), mode="create_append") == 1
        cursor.execute("SELECT count(*) FROM ingested")
        assert cursor.fetchall() == [(2,)]


def metadata(connection):
    assert connection.adbc_get_info()["vendor_name"] == "Nectarine", connection.adbc_get_info()
    tree = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    assert [catalog["catalog_name"] for catalog in tree] == ["nectarine"]
    schemas = {schema["db_schema_name"]: schema["db_schema_tables"] for schema in tree[0]["catalog_db_schemas"]}
    tables = {table["table_name"]: table for table in schemas["public"]}
    columns = [column["column_name"] for column in tables["t"]["table_columns"]]
    assert columns == ["a", "b", "c"], columns
    assert "TABLE" in connection.adbc_get_table_types()
    assert connection.adbc_get_table_schema("t").names == ["a", "b", "c"]
    assert connection.adbc_current_catalog == "nectarine"
    assert connection.adbc_current_db_schema == "public"
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA zoo")
        connection.adbc_current_db_schema = "zoo"
        cursor.execute("CREATE TABLE ape AS SELECT 7 AS a")
        cursor.execute("SELECT a FROM zoo.ape")
        assert cursor.fetchall() == [(7,)]
        connection.adbc_current_db_schema = "public"


def errors(connection):
    with connection.cursor() as cursor:
        fails(lambda: cursor.execute("SELEC 1"), "expected an SQL statement")
        fails(lambda: cursor.execute("SELECT * FROM nowhere"), "does not exist")
        fails(lambda: cursor.execute("DELETE FROM t"), "append-only")
        cursor.execute("SELECT 1 AS a")
        assert cursor.fetchall() == [(1,)]


def cancel(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3")
        threading.Timer(0.5, cursor.adbc_cancel).start()
        started = time.monotonic()
        fails(cursor.fetchall, "")
        assert time.monotonic() - started < 10
    with connection.cursor() as cursor:
        for _ in range(100):
            cursor.execute(
                "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%generate_series%' "
                "AND sql NOT LIKE '%system.queries%'"
            )
            if cursor.fetchall() == [(0,)]:
                return
            time.sleep(0.05)
    raise AssertionError("a cancelled statement goes on")


with connect() as connection:
    for part in (statements, parameters, ingest, metadata, errors, cancel):
        part(connection)
        print(part.__name__, "ok")
if len(sys.argv) > 3:
    try:
        dbapi.connect(sys.argv[1], db_kwargs={"username": sys.argv[2], "password": "wrong"})
    except adbc_driver_manager.Error as error:
        assert "wrong" in str(error), error
    else:
        raise AssertionError("a wrong password lets in")
    try:
        with dbapi.connect(sys.argv[1]) as stranger, stranger.cursor() as cursor:
            cursor.execute("SELECT 1")
    except adbc_driver_manager.Error as error:
        assert "log in" in str(error), error
    else:
        raise AssertionError("no password lets in")
print("done")
