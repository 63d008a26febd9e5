//! Pipes use the same memory for a long stream as for a short one. This test is alone in its process, since it counts
//! the memory of all threads.

use millstream::Reader;
use millstream::pipe::{Pipe, Threads};

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

const LINE: &[u8] = b"a line of some length, for the sake of it\n";
const LINES: u64 = 2_000_000;

/// A source of many lines, 84 MB in total, which delivers them as fast as they are read.
fn lines() -> Reader {
    let mut left = LINES;
    let fill = move |space: &mut [u8]| {
        let count = (space.len() / LINE.len()).min(usize::try_from(left).unwrap());
        space[..count * LINE.len()].as_chunks_mut().0.fill(*LINE.first_chunk::<42>().unwrap());
        left -= count as u64;
        Ok(count * LINE.len())
    };
    Reader::callback(fill).unwrap()
}

/// Returns by how much the memory use after the first tenth exceeded the use at the end.
fn growth(run: impl FnOnce(&mut dyn FnMut())) -> usize {
    let (mut count, mut base) = (0, 0);
    run(&mut || {
        count += 1;
        if count == LINES / 10 {
            MEMORY.reset_peak_usage();
            base = MEMORY.current_usage();
        }
    });
    assert_eq!(count, LINES);
    MEMORY.peak_usage().saturating_sub(base)
}

#[test]
fn a_long_stream_takes_no_more_than_a_short_one() {
    let fused = growth(|seen| {
        let mut pipe = Pipe::from(lines()).lines().rewrite(|line, out| out.extend_from_slice(line));
        pipe.for_each(|_| seen()).unwrap();
    });
    assert!(fused < 1 << 20, "fused stages: {fused} bytes more");
    for how in [Threads::ordered(2), Threads::unordered(2)] {
        let bytes = growth(|seen| {
            let pipe = Pipe::from(lines()).lines();
            let mut pipe = pipe.parallel(how, |stages| stages.rewrite(|line, out| out.extend_from_slice(line)));
            pipe.for_each(|_| seen()).unwrap();
        });
        // There are a batch, four chunks in progress, one that is being filled and one that is being passed on. The
        // blocks of the chunks double when they grow.
        assert!(bytes < 4 << 20, "{how:?}, bytes: {bytes} bytes more");
        let values = growth(|seen| {
            let mut pipe = Pipe::from(lines()).lines().parallel(how, |stages| stages.map(|line| line.to_vec()));
            pipe.for_each(|_| seen()).unwrap();
        });
        assert!(values < 8 << 20, "{how:?}, values: {values} bytes more");
    }
    // A boxed stage gets a batch in many parts, and passes on results of earlier parts meanwhile.
    let text = LINE.repeat(20_000);
    let slowly = |line: &[u8], out: &mut Vec<u8>| {
        let started = std::time::Instant::now();
        while started.elapsed().as_micros() < 10 {}
        out.extend_from_slice(line);
    };
    let stage = Pipe::stages().parallel(Threads::ordered(2), move |stages| stages.rewrite(slowly)).boxed("slow");
    let mut pipe = Pipe::from(Reader::memory(text).unwrap()).lines().then_all(vec![stage]);
    MEMORY.reset_peak_usage();
    let base = MEMORY.current_usage();
    assert_eq!(pipe.count().unwrap(), 20_000);
    let boxed = MEMORY.peak_usage().saturating_sub(base);
    assert!(boxed < 8 << 20, "boxed: {boxed} bytes more");
}
