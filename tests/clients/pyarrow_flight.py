"""pyarrow.flight, which speaks Flight without its SQL: handshake, actions, flights, app_metadata, trailers."""

import json
import sys

import pyarrow
import pyarrow.flight as flight


class Headers(flight.ClientMiddleware):
    def __init__(self, seen):
        self.seen = seen

    def received_headers(self, headers):
        self.seen.update({name: values[0] for name, values in headers.items()})


class Listener(flight.ClientMiddlewareFactory):
    def __init__(self):
        self.seen = {}

    def start_call(self, info):
        return Headers(self.seen)


def command(kind, *fields):
    """A message of Flight SQL inside of an Any, written by hand: fields are texts or bytes."""

    def field(number, value):
        value = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2]) + length(len(value)) + value

    def length(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    body = b"".join(field(number, value) for number, value in enumerate(fields, 1))
    return field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{kind}") + field(2, body)


listener = Listener()
client = flight.FlightClient(sys.argv[1], middleware=[listener])
try:
    client.get_flight_info(flight.FlightDescriptor.for_command(command("CommandStatementQuery", "SELECT 1")))
except flight.FlightUnauthenticatedError:
    pass
else:
    raise AssertionError("no login is needed")
header = client.authenticate_basic_token(sys.argv[2], sys.argv[3])
options = flight.FlightCallOptions(headers=[header])


def query(sql):
    descriptor = flight.FlightDescriptor.for_command(command("CommandStatementQuery", sql))
    info = client.get_flight_info(descriptor, options)
    reader = client.do_get(info.endpoints[0].ticket, options)
    assert reader.schema == info.schema
    return info, reader.read_all()


info, table = query("SELECT 1 AS a, 'x' AS b")
assert table.to_pylist() == [{"a": 1, "b": "x"}]
told = json.loads(info.app_metadata)
assert told["query_id"], told
query("CREATE TABLE t AS SELECT 7 AS a, 'seven' AS b")
for expected in ("none", "exact"):
    _, table = query("SELECT sum(a) AS total FROM t")
    assert table.to_pylist() == [{"total": 7}]
    assert listener.seen["nectarine-reuse"] == expected, listener.seen
_, table = query(f"SELECT state FROM system.queries WHERE query_id = '{listener.seen['nectarine-query-id']}'")
assert table.to_pylist() == [{"state": "finished"}], table
actions = {action.type for action in client.list_actions(options)}
assert {"CreatePreparedStatement", "SetSessionOptions", "CloseSession"} <= actions, actions
schema = client.get_schema(flight.FlightDescriptor.for_command(command("CommandStatementQuery", "SELECT 1 AS a")), options)
assert schema.schema.names == ["a"]
try:
    query("SELECT * FROM nowhere")
except pyarrow.ArrowInvalid as error:
    assert "does not exist" in str(error), error
else:
    raise AssertionError("it did not fail")
client.close()
print("done")
