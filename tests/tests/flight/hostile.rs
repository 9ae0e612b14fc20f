//! Calls that no honest client makes: clear errors, no panic, and the server goes on.

use std::sync::Arc;

use arrow::array::{Int64Array, NullArray, RecordBatch, StringArray};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{
    Any, CommandGetTables, CommandPreparedStatementQuery, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::TryStreamExt;
use nectarine_tests::flight::{Caller, Served};
use prost::Message;
use prost::bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::{Code, Status};

/// A command with its rows, as messages.
pub(super) async fn messages(command: &impl ProstMessageExt, rows: &RecordBatch) -> Vec<FlightData> {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let encoder = FlightDataEncoderBuilder::new().with_schema(rows.schema()).with_flight_descriptor(Some(descriptor));
    encoder.build(futures::stream::iter([Ok(rows.clone())])).try_collect().await.expect("an answer")
}

fn is_clear(error: &Status) -> bool {
    matches!(
        error.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::Unimplemented
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::AlreadyExists
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_messages() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    for bytes in [&b""[..], b"\xff\xff\xff\xff", b"\x0a\x05hello", b"SELECT 1"] {
        let bytes = Bytes::copy_from_slice(bytes);
        let request = caller.request(FlightDescriptor::new_cmd(bytes.clone()));
        let error = caller.calls.get_flight_info(request).await.unwrap_err();
        assert!(is_clear(&error), "{error}");
        let request = caller.request(Ticket::new(bytes.clone()));
        let error = caller.calls.do_get(request).await.map(drop).unwrap_err();
        assert!(is_clear(&error), "{error}");
        for name in ["CreatePreparedStatement", "CancelFlightInfo", "CancelQuery", "Nonsense", "BeginTransaction"] {
            match caller.action(name, bytes.to_vec()).await {
                Ok(_) => panic!("{name} {bytes:?}"),
                Err(error) => assert!(is_clear(&error), "{name}: {error}"),
            }
        }
        let request = caller.request(futures::stream::iter([FlightData::new().with_data_header(bytes.clone())]));
        let error = caller.calls.do_put(request).await.map(drop).unwrap_err();
        assert!(is_clear(&error), "{error}");
    }
    // A known type around bytes that are not one.
    let any = Any { type_url: CommandStatementQuery::type_url().to_owned(), value: Bytes::from_static(b"\xff\xff") };
    let request = caller.request(FlightDescriptor::new_cmd(any.encode_to_vec()));
    assert!(is_clear(&caller.calls.get_flight_info(request).await.unwrap_err()));
    let request = caller.request(futures::stream::iter([
        FlightData::new().with_descriptor(FlightDescriptor::new_cmd(any.encode_to_vec()))
    ]));
    assert!(is_clear(&caller.calls.do_put(request).await.map(drop).unwrap_err()));
    let request = caller.request(futures::stream::empty());
    assert!(is_clear(&caller.calls.do_put(request).await.map(drop).unwrap_err()));
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
}

/// Lengths that nothing is behind: taken at their word they would be more memory than there is, and the end of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_say_they_are_huge() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t (a BIGINT)").await.unwrap();
    let ingest = CommandStatementIngest { table: "t".into(), ..CommandStatementIngest::default() };
    let rows = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![7; 1000])) as _)]).unwrap();
    for (codec, told) in [
        (CompressionType::LZ4_FRAME, 1_i64 << 45),
        (CompressionType::LZ4_FRAME, i64::MAX),
        (CompressionType::LZ4_FRAME, -2),
        (CompressionType::ZSTD, 1 << 45),
        (CompressionType::LZ4_FRAME, 8000),
        (CompressionType::ZSTD, 8000),
    ] {
        let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
        let descriptor = FlightDescriptor::new_cmd(ingest.as_any().encode_to_vec());
        let encoder = FlightDataEncoderBuilder::new().with_options(options).with_flight_descriptor(Some(descriptor));
        let encoded = encoder.build(futures::stream::iter([Ok(rows.clone())]));
        let mut messages: Vec<FlightData> = encoded.try_collect().await.unwrap();
        let body = messages.last_mut().unwrap();
        let mut bytes = body.data_body.to_vec();
        // The one buffer begins with its length.
        let at = bytes.windows(8).position(|eight| eight == 8000_i64.to_le_bytes()).expect("a packed buffer");
        bytes[at..at + 8].copy_from_slice(&told.to_le_bytes());
        body.data_body = Bytes::from(bytes);
        let request = caller.request(futures::stream::iter(messages));
        let outcome = match caller.calls.do_put(request).await {
            Ok(stream) => stream.into_inner().try_collect::<Vec<_>>().await.map(drop),
            Err(error) => Err(error),
        };
        match (told, outcome) {
            (8000, outcome) => outcome.unwrap(),
            (_, outcome) => assert!(is_clear(&outcome.unwrap_err()), "{codec:?} {told}"),
        }
    }
    // A column of nulls has no bytes: any number of rows fits into a message.
    let nulls = RecordBatch::try_from_iter([("a", Arc::new(NullArray::new(1 << 40)) as _)]).unwrap();
    let request = caller.request(futures::stream::iter(messages(&ingest, &nulls).await));
    let error = match caller.calls.do_put(request).await {
        Ok(stream) => stream.into_inner().try_collect::<Vec<_>>().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(is_clear(&error.unwrap_err()));
    assert_eq!(caller.text("SELECT count(*) FROM t").await.unwrap(), "2000");
}

/// Who has not logged in has nothing read of what he sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_of_strangers() {
    let served = Served::with_users().await;
    let mut stranger = served.caller().await;
    // Larger than any message may be: the server would say so, had it read it.
    let huge = "x".repeat(65 << 20);
    let error = stranger.text(&huge).await.unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated, "{error}");
}

/// What is too large is refused before it is taken in; bytes that are not even HTTP end their own connection only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_messages_and_broken_connections() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let huge = "x".repeat(65 << 20);
    let error = caller.text(&format!("SELECT '{huge}'")).await.unwrap_err();
    assert!(matches!(error.code(), Code::OutOfRange | Code::ResourceExhausted), "{error}");
    let mut caller = served.caller().await;
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(is_clear(&caller.text(&nested).await.unwrap_err()));
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff"] {
        let mut socket = tokio::net::TcpStream::connect(served.server.address()).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        let mut answer = vec![];
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), socket.read_to_end(&mut answer)).await;
    }
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
}

/// Calls made of good ones with a few bytes changed, and of bytes at random.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_random() {
    let n_calls: usize = std::env::var("NECTARINE_FLIGHT_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let seed: u64 = std::env::var("NECTARINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t (a BIGINT, b VARCHAR)").await.unwrap();
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from(vec![1, 2, 3])) as _, true),
        ("b", Arc::new(StringArray::from(vec![Some("one"), None, Some("three")])) as _, true),
    ])
    .unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outcomes = std::collections::BTreeMap::<String, usize>::new();
    for number in 0..n_calls {
        let outcome = one(&mut caller, &mut rng, &rows).await;
        let word = match &outcome {
            Ok(()) => "ok".to_owned(),
            Err(error) => format!("{:?}", error.code()),
        };
        if let Err(error) = &outcome {
            // A panic of ours is told as an internal error.
            let is_ours = matches!(error.code(), Code::Internal | Code::Unknown | Code::Unavailable);
            assert!(!is_ours, "call {number} of seed {seed}: {error}");
        }
        *outcomes.entry(word).or_default() += 1;
    }
    println!("{n_calls} calls: {outcomes:?}");
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
}

async fn one(caller: &mut Caller, rng: &mut StdRng, rows: &RecordBatch) -> Result<(), Status> {
    let command: Vec<u8> = match rng.random_range(0..6) {
        0 => CommandStatementQuery { query: "SELECT a FROM t".into(), transaction_id: None }.as_any().encode_to_vec(),
        1 => CommandStatementUpdate { query: "SET nectarine.reuse = 'on'".into(), transaction_id: None }
            .as_any()
            .encode_to_vec(),
        2 => CommandPreparedStatementQuery { prepared_statement_handle: random(rng, 20) }.as_any().encode_to_vec(),
        3 => CommandGetTables {
            catalog: None,
            db_schema_filter_pattern: Some("%\\".into()),
            table_name_filter_pattern: None,
            table_types: vec![],
            include_schema: true,
        }
        .as_any()
        .encode_to_vec(),
        4 => TicketStatementQuery { statement_handle: random(rng, 20) }.as_any().encode_to_vec(),
        _ => random(rng, 60).to_vec(),
    };
    let command = Bytes::from(damaged(rng, command));
    match rng.random_range(0..5) {
        0 => {
            let request = caller.request(FlightDescriptor::new_cmd(command));
            caller.calls.get_flight_info(request).await.map(drop)
        }
        1 => {
            let request = caller.request(Ticket::new(command));
            let stream = caller.calls.do_get(request).await?.into_inner();
            stream.try_collect::<Vec<_>>().await.map(drop)
        }
        2 => {
            let names = [
                "CreatePreparedStatement",
                "ClosePreparedStatement",
                "CancelQuery",
                "SetSessionOptions",
                "GetSessionOptions",
                "CancelFlightInfo",
                "CreatePreparedSubstraitPlan",
                "EndTransaction",
            ];
            let name = names[rng.random_range(0..names.len())];
            let request = caller.request(Action::new(name, command));
            let stream = caller.calls.do_action(request).await?.into_inner();
            stream.try_collect::<Vec<_>>().await.map(drop)
        }
        3 => {
            let request = caller.request(FlightDescriptor::new_cmd(command));
            caller.calls.get_schema(request).await.map(drop)
        }
        _ => {
            let ingest = CommandStatementIngest { table: "t".into(), ..CommandStatementIngest::default() };
            let mut messages = messages(&ingest, rows).await;
            let at = rng.random_range(0..messages.len());
            let message = &mut messages[at];
            match rng.random_range(0..3) {
                0 => message.data_header = Bytes::from(damaged(rng, message.data_header.to_vec())),
                1 => message.data_body = Bytes::from(damaged(rng, message.data_body.to_vec())),
                _ => drop(messages.remove(at)),
            }
            let request = caller.request(futures::stream::iter(messages));
            let stream = caller.calls.do_put(request).await?.into_inner();
            stream.try_collect::<Vec<_>>().await.map(drop)
        }
    }
}

fn random(rng: &mut StdRng, bytes_max: usize) -> Bytes {
    let mut bytes = vec![0; rng.random_range(0..=bytes_max)];
    rng.fill(bytes.as_mut_slice());
    Bytes::from(bytes)
}

/// Some bytes changed, cut off, or put in; sometimes none.
fn damaged(rng: &mut StdRng, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.random_range(0..4) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..4) {
            0 => bytes[at] = rng.random(),
            1 => bytes[at] ^= 1 << rng.random_range(0..8),
            2 => bytes.truncate(at),
            _ => bytes.insert(at, rng.random()),
        }
    }
    bytes
}
