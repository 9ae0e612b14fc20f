//! A test that hangs ends the whole run, with its name, instead of the build machine's patience.
//!
//! Whatever the tests share calls [`watch`]: the clock runs from the first call on. `NECTARINE_TEST_MINUTES` gives long
//! loops more time, and so does a long soak.

use std::cell::OnceCell;
use std::sync::{Mutex, Once};
use std::time::Duration;

/// The whole suite takes half of this on two slow cores.
const MINUTES: u64 = 45;

static STARTED: Once = Once::new();
static RUNNING: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static TEST: OnceCell<Test> = const { OnceCell::new() };
}

/// A test's thread, as long as it lives. The test runner names threads after tests.
struct Test(String);

impl Drop for Test {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(at) = running.iter().position(|name| *name == self.0) {
            running.swap_remove(at);
        }
    }
}

/// Starts the clock, and notes who is running.
pub fn watch() {
    STARTED.call_once(|| {
        let given = std::env::var("NECTARINE_TEST_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
        let soak = std::env::var("NECTARINE_SOAK_MINUTES").ok().and_then(|minutes| minutes.parse::<f64>().ok());
        let minutes = given.unwrap_or(MINUTES + soak.map_or(0, |minutes| minutes.ceil() as u64));
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60 * minutes));
            bark(minutes);
        });
    });
    TEST.with(|test| {
        test.get_or_init(|| {
            let name = std::thread::current().name().unwrap_or("a thread without a name").to_owned();
            RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(name.clone());
            Test(name)
        });
    });
}

#[expect(clippy::print_stderr, reason = "the last words of the tests")]
fn bark(minutes: u64) {
    let running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(", ");
    eprintln!("the tests did not end within {minutes} minutes; still running: {running}");
    std::process::exit(70);
}
