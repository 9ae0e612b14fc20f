"""Data frames and SQLAlchemy over ADBC: pandas and polars read and write."""

import sys
import warnings

import adbc_driver_flightsql.dbapi as dbapi
import pandas
import polars
import sqlalchemy

warnings.simplefilter("ignore")

with dbapi.connect(sys.argv[1]) as connection:
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2026-01-01", "2026-01-02"]), "clicks": [10, 20]})
    assert frame.to_sql("clicks", connection, index=False) == 2
    found = pandas.read_sql("SELECT day, clicks FROM clicks ORDER BY day", connection)
    assert list(found["clicks"]) == [10, 20], found
    found = polars.read_database("SELECT sum(clicks) AS total FROM clicks", connection)
    assert found.to_dicts() == [{"total": 30}], found
    found = polars.read_database("SELECT * FROM clicks WHERE clicks > ?", connection, execute_options={"parameters": [15]})
    assert found.height == 1, found
    polars.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}).write_database("letters", connection, engine="adbc")
    assert polars.read_database("SELECT count(b) AS n FROM letters", connection).to_dicts() == [{"n": 2}]

address = sys.argv[1].removeprefix("grpc://")
engine = sqlalchemy.create_engine(f"adbc+flightsql://{address}?tls=false")
with engine.connect() as connection:
    found = connection.execute(sqlalchemy.text("SELECT clicks FROM clicks WHERE clicks > :low"), {"low": 15})
    assert found.all() == [(20,)], found
    clicks = sqlalchemy.Table("clicks", sqlalchemy.MetaData(), autoload_with=engine)
    assert [column.name for column in clicks.columns] == ["day", "clicks"], clicks
    total = connection.execute(sqlalchemy.select(sqlalchemy.func.sum(clicks.c.clicks))).scalar()
    assert total == 30, total
print("done")
