//! The log as a process sees it: this test starts itself again and reads what comes on stderr.

#![allow(clippy::unwrap_used)]

use tracing::level_filters::LevelFilter;

const CHILD: &str = "LOG_TEST_CHILD";

#[test]
fn events_come_on_stderr() {
    if std::env::var_os(CHILD).is_some() {
        return speak();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "events_come_on_stderr", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "transpress: TRANSPRESS_RATE=fast: accepted is a number\n\
         transpress: registered comm=2\n"
    );
}

fn speak() {
    assert!(transpress::log::install(LevelFilter::INFO));
    assert!(
        !transpress::log::install(LevelFilter::TRACE),
        "the first one stays"
    );
    tracing::warn!("TRANSPRESS_RATE=fast: accepted is a number");
    tracing::info!(comm = 2, "registered");
    tracing::debug!("too much");

    // A program's errno is its own, also where stderr is closed.
    // SAFETY: nothing else in this process uses stderr, and errno's address is valid.
    unsafe {
        libc::close(libc::STDERR_FILENO);
        *libc::__errno_location() = libc::ERANGE;
        tracing::warn!("nobody hears this");
        assert_eq!(*libc::__errno_location(), libc::ERANGE);
    }
}
