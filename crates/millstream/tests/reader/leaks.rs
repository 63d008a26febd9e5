//! After 200 commands, no process, thread or file descriptor remains.

use millstream::frame::Lines;
use millstream::{Command, Reader, Stderr};

use crate::alone::alone;
use crate::every_way::{EVERY_READ_AHEAD, Pull, drain};
use crate::processes::{children, open_fds, threads};

/// Uses readers once in each of the different ways in which a reader's use can end.
fn use_and_forget(kind: usize, builder: millstream::ReaderBuilder) {
    let sh = |script: &str| Command::new(["sh", "-c", script]).stderr(Stderr::Capture);
    match kind {
        0 => drop(drain(&mut builder.command(["seq", "100000"]).unwrap(), Pull::Batches)),
        1 => drop(drain(&mut builder.command(sh("echo x; echo y >&2; exit 3")).unwrap(), Pull::Frames)),
        2 => {
            let mut reader = builder.command(["yes"]).unwrap();
            reader.next_line().unwrap();
            reader.close().unwrap();
        }
        3 => {
            let mut reader = builder.command(["yes"]).unwrap();
            reader.next_batch(&mut Lines::new()).unwrap();
        }
        4 => drop(drain(&mut builder.pipeline([sh("seq 10"), sh("cat"), sh("exit 1")]).unwrap(), Pull::Fill)),
        5 => {
            let mut reader = builder.pipeline([["yes"], ["cat"]]).unwrap();
            reader.next_line().unwrap();
            reader.close().unwrap();
        }
        6 => drop(builder.command(["/no/such/program"]).unwrap_err()),
        7 => drop(builder.pipeline([["yes"], ["/no/such/program"]]).unwrap_err()),
        8 => drop(drain(&mut builder.shell("seq 10 | cat").unwrap(), Pull::StdRead)),
        _ => drop(builder.command(["true"]).unwrap()),
    }
}

#[test]
fn no_resource_is_left_after_200_commands() {
    alone("leaks::no_resource_is_left_after_200_commands", &[], || {
        // The first run is not counted: descriptors that are opened once and kept are not leaks.
        for read_ahead in EVERY_READ_AHEAD {
            (0..10).for_each(|kind| use_and_forget(kind, Reader::builder().read_ahead(read_ahead)));
        }
        let before = settled();
        for i in 0..200 {
            let read_ahead = EVERY_READ_AHEAD[i / 10 % 3];
            use_and_forget(i % 10, Reader::builder().read_ahead(read_ahead));
        }
        assert_eq!(settled(), before);
        assert!(children().is_empty());
    });
}

/// Returns the numbers of file descriptors and threads, after all ending threads have ended.
fn settled() -> (usize, usize) {
    let mut last = (0, 0);
    for _ in 0..100 {
        let now = (open_fds(), threads());
        if now == last {
            break;
        }
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    last
}
