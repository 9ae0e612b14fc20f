"""Runs statements with DuckDB and says how long each took: a line with a number of bytes, then the statement; a line back."""

import sys
import time

import duckdb


def run(connection, sql):
    started = time.perf_counter()
    if sql.lstrip().upper().startswith(("SET", "CREATE", "COPY")):
        connection.execute(sql)
        n_rows = 0
    else:
        # All rows, as Arrow, as the other engines give them.
        n_rows = connection.sql(sql).to_arrow_table().num_rows
    return time.perf_counter() - started, n_rows


def main():
    connection = duckdb.connect()
    # What Arrow needs for its first table is nobody's time.
    connection.sql("SELECT 1").to_arrow_table()
    print("ready", duckdb.__version__, flush=True)
    while line := sys.stdin.buffer.readline():
        sql = sys.stdin.buffer.read(int(line)).decode()
        try:
            seconds, n_rows = run(connection, sql)
            print("ok", f"{seconds:.9f}", n_rows, flush=True)
        except Exception as error:
            print("error", " ".join(str(error).split()), flush=True)


main()
