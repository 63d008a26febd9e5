//! Measures the time from the producer's write to the consumer, when records arrive slowly.
//!
//! The program starts itself again as a command that prints the time in a line, pauses, and repeats this. It prints
//! percentiles for each way to read, and fails if one of them is so large that noise cannot explain it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use millstream::{Latency, ReadAhead, Reader};
use rustix::time::{ClockId, clock_gettime};

const RECORDS: usize = 200;

/// The pauses between records. The last is shorter than a wake-up and shows the effect of coalescing.
const PAUSES: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(1), Duration::from_micros(50)];

/// The documented limit is 1.5 ms; noise cannot explain a time longer than this.
const BROKEN: Duration = Duration::from_millis(50);

/// The time since a start that all processes share.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn produce(pause: Duration) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    for _ in 0..RECORDS {
        std::thread::sleep(pause);
        writeln!(stdout, "{}", now().as_nanos())?;
    }
    Ok(())
}

/// The sorted latencies of all records.
fn measure(read_ahead: ReadAhead, latency: Latency, pause: Duration) -> Result<Vec<Duration>, millstream::Error> {
    let this = std::env::current_exe()?;
    let argv = [this.into_os_string(), "produce".into(), pause.as_nanos().to_string().into()];
    let mut reader = Reader::builder().read_ahead(read_ahead).latency(latency).command(argv)?;
    let mut latencies = Vec::with_capacity(RECORDS);
    while let Some(line) = reader.next_line()? {
        let arrived = now();
        let sent = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).map(Duration::from_nanos);
        latencies.push(arrived - sent.expect("the producer prints numbers"));
    }
    latencies.sort_unstable();
    Ok(latencies)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("produce") {
        let pause = arguments.next().ok_or("produce needs the pause in nanoseconds")?;
        produce(Duration::from_nanos(pause.parse()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut broken = false;
    println!("{:>10} {:>10} {:>8} {:>8} {:>8} {:>8}", "read-ahead", "latency", "pause", "p50 µs", "p99 µs", "max µs");
    for pause in PAUSES {
        for read_ahead in [ReadAhead::Off, ReadAhead::On, ReadAhead::Auto] {
            for latency in [Latency::Normal, Latency::Low] {
                let latencies = measure(read_ahead, latency, pause)?;
                let percentile = |p: usize| latencies[(latencies.len() - 1) * p / 100];
                let [p50, p99, max] = [50, 99, 100].map(|p| percentile(p).as_micros());
                let (read_ahead, latency) = (format!("{read_ahead:?}"), format!("{latency:?}"));
                println!("{read_ahead:>10} {latency:>10} {:>8} {p50:>8} {p99:>8} {max:>8}", format!("{pause:?}"));
                broken |= percentile(50) > BROKEN;
            }
        }
    }
    if broken {
        eprintln!("at least one median is over {BROKEN:?}");
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
