//! Uses the header and the libraries as C and C++ programs do.
//!
//! Cargo builds no library for a test that does not link to it, so these tests build it themselves.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The system libraries that a static Rust library needs.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lc"];

const WARNINGS: [&str; 8] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wundef", "-Werror"];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the root of the repository.
fn root() -> PathBuf {
    crate_dir().join("../..")
}

/// Returns the directory with freshly built libmillstream.so and libmillstream.a.
fn libraries() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        // target/PROFILE/deps/this-test
        let directory = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_path_buf();
        // `tools/cpp` has built them before in this way, if all tests run.
        let profile = if directory.ends_with("release") { "release" } else { "dev" };
        let target = directory.parent().unwrap();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "millstream-capi",
                "--features",
                "remote",
                "--lib",
                "--profile",
                profile,
            ])
            .arg("--target-dir")
            .arg(target)
            .status()
            .unwrap();
        assert!(built.success());
        directory
    })
}

/// Runs a program to its end, and fails with its output unless it succeeds.
#[track_caller]
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

/// Returns whether a program is installed: `tools/setup test` installs the programs that these tests need, and with
/// `CI=true` they must be installed.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED, {program} is missing: see tools/setup");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{program} is missing");
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum Linked {
    Statically,
    Dynamically,
}

/// A source file of this repository, compiled to a program, and a directory for it.
struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    fn compile(compiler: &[&str], source: &str, linked: Linked) -> Program {
        let directory = tempfile::tempdir().unwrap();
        let libraries = libraries();
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args(WARNINGS).args(["-O1", "-g", "-D_POSIX_C_SOURCE=200809L", "-I"]);
        command.arg(crate_dir().join("include")).arg(crate_dir().join(source));
        command.arg("-o").arg(directory.path().join("program"));
        // The flags for a library in a language other than that of the source.
        command.args(["-x", "none"]);
        match linked {
            Linked::Statically => command.arg(libraries.join("libmillstream.a")).args(SYSTEM_LIBRARIES),
            Linked::Dynamically => {
                // The library is copied under the name that the loader requests.
                std::os::unix::fs::symlink(
                    libraries.join("libmillstream.so"),
                    directory.path().join("libmillstream.so.0"),
                )
                .unwrap();
                command
                    .arg(format!("-Wl,-rpath,{}", directory.path().display()))
                    .arg(libraries.join("libmillstream.so"))
            }
        };
        run(&mut command);
        std::fs::create_dir(directory.path().join("files")).unwrap();
        Program { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("program")
    }

    fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }
}

fn all_is_well(compiler: &[&str], linked: Linked) {
    if has(compiler[0]) && has("python3") {
        let program = Program::compile(compiler, "tests/c/all.c", linked);
        let objects = ObjectServer::start();
        let mut all = Command::new(program.path());
        assert_eq!(run(all.arg(program.files()).arg(&objects.address)), "all is well\n");
    }
}

/// A running `tools/object-server`, which ends when its standard input is closed.
struct ObjectServer {
    server: Child,
    address: String,
}

impl ObjectServer {
    fn start() -> ObjectServer {
        let mut command = Command::new(root().join("tools/object-server"));
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
        ObjectServer { server, address: address.trim_end().into() }
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        let _ = self.server.wait(); // closes its standard input
    }
}

#[test]
fn from_c_with_gcc() {
    all_is_well(&["gcc", "-std=c99"], Linked::Dynamically);
    all_is_well(&["gcc", "-std=c99"], Linked::Statically);
}

#[test]
fn from_c_with_clang() {
    all_is_well(&["clang", "-std=c99"], Linked::Dynamically);
}

#[test]
fn from_cpp_with_both() {
    all_is_well(&["g++", "-std=c++17", "-x", "c++"], Linked::Dynamically);
    all_is_well(&["clang++", "-std=c++17", "-x", "c++"], Linked::Dynamically);
}

#[test]
fn under_the_address_sanitizer() {
    let sanitized = ["clang", "-std=c99", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    all_is_well(&sanitized, Linked::Statically);
}

#[test]
fn under_valgrind() {
    // It takes as long as all other tests here, and the address sanitizer finds most of the same errors.
    if std::env::var_os("MILLSTREAM_DEEP").is_none() {
        eprintln!("SKIPPED: MILLSTREAM_DEEP=1 runs it");
        return;
    }
    if !["valgrind", "gcc", "python3"].into_iter().all(has) {
        return;
    }
    let program = Program::compile(&["gcc", "-std=c99"], "tests/c/all.c", Linked::Dynamically);
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    // Valgrind does not support AVX-512.
    command.env("MILLSTREAM_SIMD", "avx2").env("MILLSTREAM_DIGITS", "portable");
    let objects = ObjectServer::start();
    assert_eq!(run(command.arg(program.path()).arg(program.files()).arg(&objects.address)), "all is well\n");
}

/// Compiles `lines` as a user would: with the library installed, and found by pkg-config.
#[test]
fn lines_counts_and_fails_as_it_should() {
    if !["cmake", "pkg-config", "gcc"].into_iter().all(has) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (build, prefix) = (directory.path().join("build"), directory.path().join("prefix"));
    let mut library = std::ffi::OsString::from("-DMILLSTREAM_LIBRARY=");
    library.push(libraries().join("libmillstream.so"));
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(root().join("bindings/cpp")).arg("-B").arg(&build).arg(library);
    run(cmake.args(["-DMILLSTREAM_TESTS=OFF", "-DCMAKE_INSTALL_LIBDIR=lib"]));
    run(Command::new("cmake").arg("--install").arg(&build).arg("--prefix").arg(&prefix));
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(pkg_config.args(["--cflags", "--libs", "millstream"]));

    let program = directory.path().join("lines");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c99", "-O2"]).args(WARNINGS).arg(root().join("examples/c/lines.c")).arg("-o").arg(&program);
    run(gcc.args(flags.split_whitespace()));
    let lines = || {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", prefix.join("lib"));
        command
    };
    assert_eq!(run(lines().args(["seq", "100000"])), "100000 lines, the longest of 6 bytes\n");
    let failed = lines().args(["sh", "-c", "echo one; exit 3"]).output().unwrap();
    assert_eq!((failed.status.code(), &failed.stdout[..]), (Some(1), &b""[..]));
    let message = String::from_utf8(failed.stderr).unwrap();
    assert!(message.contains("exited with status 3"), "{message}");
    let failed = lines().output().unwrap();
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
}

/// The example at the top of the header fits a screen, and works.
#[test]
fn the_header_begins_with_an_example() {
    if !has("gcc") {
        return;
    }
    let header = std::fs::read_to_string(crate_dir().join("include/millstream.h")).unwrap();
    let screen = header.lines().take(24).filter_map(|line| line.strip_prefix(" *     "));
    let example = screen.map(|line| line.replace("reads.txt.gz", "input")).collect::<Vec<_>>().join("\n");
    assert!(example.ends_with("millstream_reader_free(reader);"), "{example}");
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.c");
    let before = "#include <millstream.h>\n#include <stdio.h>\nstatic void use(const char *line, size_t len) {\n\
                  printf(\"%.*s.\", (int)len, line);\n}\nint main(void) {\n";
    std::fs::write(&source, format!("{before}{example}\nreturn 0;\n}}\n")).unwrap();
    let program = Program::compile(&["gcc", "-std=c99"], source.to_str().unwrap(), Linked::Dynamically);
    let run = || Command::new(program.path()).current_dir(program.files()).output().unwrap();
    let missing = run();
    assert!(missing.stdout.is_empty() && String::from_utf8_lossy(&missing.stderr).contains("input"), "{missing:?}");
    std::fs::write(program.files().join("input"), "one\ntwo\n").unwrap();
    assert_eq!(run().stdout, b"one.two.");
}

#[test]
fn larger_prints_the_larger_one() {
    if !has("gcc") {
        return;
    }
    let program = Program::compile(&["gcc", "-std=c99"], "../../examples/c/larger.c", Linked::Dynamically);
    let larger = |input: &str| {
        let files = program.files().join("input");
        std::fs::write(&files, input).unwrap();
        let output = Command::new(program.path()).stdin(std::fs::File::open(&files).unwrap()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let many: String = (0..50_000).map(|i| format!("{} {}\n", i, 100_000 - 2 * i)).collect();
    let expected: String = (0..50_000).map(|i| format!("{}\n", i.max(100_000 - 2 * i))).collect();
    assert_eq!(larger(&many), (0, expected, String::new()));
    let (status, stdout, stderr) = larger("1 2\n-5 -7\n3 x4\n");
    assert_eq!((status, &stdout[..]), (1, "2\n-5\n"));
    assert!(stderr.contains("found x4") && stderr.contains("at line 3, column 3"), "{stderr}");
    let (status, stdout, stderr) = larger("1 2\n3");
    assert_eq!((status, &stdout[..]), (1, "2\n"));
    assert!(stderr.contains("value missing") && stderr.contains("at line 2, column 2"), "{stderr}");
}

#[test]
fn orders_sums_totals_of_any_type() {
    if !has("gcc") {
        return;
    }
    let program = Program::compile(&["gcc", "-std=c99"], "../../examples/c/orders.c", Linked::Dynamically);
    let file = program.files().join("orders.bson");
    // {"total": 1.5}, {"total": 2} as an int
    let mut orders = b"\x14\0\0\0\x01total\0\0\0\0\0\0\0\xf8\x3f\0\x10\0\0\0\x10total\0\x02\0\0\0\0".to_vec();
    std::fs::write(&file, &orders).unwrap();
    assert_eq!(run(Command::new(program.path()).arg(&file)), "2 orders, 3.50 in all\n");
    orders[20 + 4] = 0x08; // a boolean of 2, with bytes after it
    std::fs::write(&file, &orders).unwrap();
    let failed = Command::new(program.path()).arg(&file).output().unwrap();
    let message = String::from_utf8(failed.stderr).unwrap();
    assert_eq!((failed.status.code(), &failed.stdout[..]), (Some(1), &b""[..]));
    assert!(message.contains("in total, at byte 31"), "{message}");
}

#[test]
fn filter_prints_the_lines_with_a_word_in_capitals() {
    if !has("gcc") {
        return;
    }
    let program = Program::compile(&["gcc", "-std=c99"], "../../examples/c/filter.c", Linked::Dynamically);
    let filter = |script: &str| Command::new(program.path()).args(["an", "sh", "-c", script]).output().unwrap();
    let output = filter("echo banana; echo pear; echo orange");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"BANANA\nORANGE\n"[..]));
    let failed = filter("echo banana; exit 3");
    let message = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(message.contains("exited with status 3"), "{message}");
}

/// The exit status of a program that ended by itself, its output and its standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn example(name: &str) -> Program {
    Program::compile(&["gcc", "-std=c99"], &format!("../../examples/c/{name}.c"), Linked::Dynamically)
}

#[test]
fn a_failing_command_is_reported_with_its_status() {
    if !has("gcc") {
        return;
    }
    let program = example("failing_command");
    let counted = |script: &str| outcome(Command::new(program.path()).args(["sh", "-c", script]));
    assert_eq!(counted("echo a; echo b"), (0, "2 lines\n".into(), "".into()));
    let printed = |lines: &str, stderr: &str| (1, lines.to_string(), stderr.to_string());
    assert_eq!(counted("echo a; echo oops >&2; exit 3"), printed("1 lines\n", "sh: exited with status 3\noops\n"));
    assert_eq!(counted("kill -9 $$"), printed("0 lines\n", "sh: killed by signal 9\n"));
    let (status, _, stderr) = outcome(Command::new(program.path()).arg("no-such-program"));
    assert!(status == 1 && stderr.contains("check that the program exists"), "{stderr}");
}

#[test]
fn a_column_is_summed() {
    if !has("gcc") {
        return;
    }
    let program = example("column_sum");
    let file = program.files().join("prices.csv");
    let sum = |text: &str| {
        std::fs::write(&file, text).unwrap();
        outcome(Command::new(program.path()).arg(&file))
    };
    assert_eq!(sum("id,name,price\n1,a,2.5\n2,b,4\n"), (0, "6.50\n".into(), "".into()));
    let (status, printed, stderr) = sum("id,name,price\n1,a,2.5\n2,b,x\n");
    assert_eq!((status, &printed[..]), (1, ""));
    assert!(stderr.contains("found x") && stderr.contains("at line 3, column 5"), "{stderr}");
}

#[test]
fn numbers_are_printed() {
    if !has("gcc") {
        return;
    }
    let program = example("print_numbers");
    let expected: String = (0..100_000).map(|i| format!("{i}\n")).collect();
    assert_eq!(outcome(Command::new(program.path()).arg("100000")), (0, expected, "".into()));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let failed = Command::new(program.path()).arg("10").stdout(full).output().unwrap();
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        stderr.contains("No space left on device") && stderr.ends_with("free space, or write elsewhere\n"),
        "{stderr}"
    );
}

#[test]
fn lines_are_copied_from_gzip_to_zstd() {
    if !has("gcc") || !has("gzip") || !has("zstd") {
        return;
    }
    let program = example("errors_only");
    let (from, to) = (program.files().join("a.gz"), program.files().join("b.zst"));
    let text: String = (0..20_000).map(|i| format!("INFO {i}\nERROR {i}\n")).collect();
    std::fs::write(program.files().join("a"), text).unwrap();
    run(Command::new("gzip").arg(program.files().join("a")));
    let copy = || outcome(Command::new(program.path()).args([&from, &to]));
    assert_eq!(copy(), (0, "20000 errors\n".into(), "".into()));
    let expected: String = (0..20_000).map(|i| format!("ERROR {i}\n")).collect();
    assert_eq!(run(Command::new("zstd").arg("-dc").arg(&to)), expected);
    // A source that was cut short does not replace the file.
    let whole = std::fs::read(&from).unwrap();
    std::fs::write(&from, &whole[..whole.len() / 2]).unwrap();
    let (status, _, stderr) = copy();
    assert!(status == 1 && stderr.contains("decode truncated"), "{stderr}");
    assert_eq!(run(Command::new("zstd").arg("-dc").arg(&to)), expected);
}

#[test]
fn a_parallel_stage_reports_an_error_after_the_results_before_it() {
    if !has("gcc") {
        return;
    }
    let program = example("squares");
    let file = program.files().join("numbers.txt");
    let squares = |text: &str| {
        std::fs::write(&file, text).unwrap();
        outcome(Command::new(program.path()).arg(&file))
    };
    let numbers = |end: u64| (0..end).map(|i| format!("{i}\n")).collect::<String>();
    let expected: String = (0..5000).map(|i: u64| format!("{}\n", i * i)).collect();
    assert_eq!(squares(&numbers(5000)), (0, expected.clone(), "".into()));
    let (status, printed, stderr) = squares(&format!("{}x\n{}", numbers(5000), numbers(5000)));
    assert_eq!((status, printed), (1, expected));
    assert!(stderr.contains("stage failed: the line is not a number, at line 5001; check the record"), "{stderr}");
}

#[test]
fn an_array_of_each_document_is_summed() {
    if !has("gcc") {
        return;
    }
    let program = example("scores");
    let file = program.files().join("players.bson");
    // {"scores": [1.5, 2]}, the second one an int, and {}
    let array = b"\x1a\0\0\0\x010\0\0\0\0\0\0\0\xf8\x3f\x101\0\x02\0\0\0\0";
    let mut players = [&b"\x27\0\0\0\x04scores\0"[..], array, b"\0", b"\x05\0\0\0\0"].concat();
    // The lengths of the document and of the array.
    players[0] = (12 + array.len() + 1) as u8;
    players[12] = array.len() as u8;
    let sums = |players: &[u8]| {
        std::fs::write(&file, players).unwrap();
        outcome(Command::new(program.path()).arg(&file))
    };
    assert_eq!(sums(&players), (0, "3.5\n0\n".into(), "".into()));
    let at = players.windows(2).position(|two| two == b"\x101").unwrap();
    players[at] = 0x11; // a timestamp, which is longer
    players.splice(at + 3..at + 3, [0; 4]);
    players[0] += 4;
    players[12] += 4;
    let (status, _, stderr) = sums(&players);
    assert!(status == 1 && stderr.contains("in scores.1"), "{stderr}");
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    if !has("gcc") {
        return;
    }
    let program = example("whole_file");
    let file = program.files().join("out.txt");
    let write = |count: &str| outcome(Command::new(program.path()).arg(&file).arg(count));
    assert_eq!(write("3"), (0, "".into(), "".into()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one line\n".repeat(3));
    assert_eq!(outcome(Command::new(program.path()).args(["/dev/full", "3"])).0, 3);
    // A limit on the size of files interrupts a write in the middle, as a full disk does.
    let limited = format!("trap '' XFSZ; ulimit -f 100; exec {} {} 100000", program.path().display(), file.display());
    let (status, _, stderr) = outcome(Command::new("sh").args(["-c", &limited]));
    assert!(status == 1 && stderr.contains("File too large"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one line\n".repeat(3));
    assert_eq!(std::fs::read_dir(program.files()).unwrap().count(), 1);
}

#[test]
fn a_stuck_command_is_stopped_with_its_children() {
    if !has("gcc") {
        return;
    }
    let program = example("time_limit");
    let script = "echo $$; trap '' TERM; sleep 600 & echo $!; while :; do sleep 600; done";
    let (status, printed, stderr) = outcome(Command::new(program.path()).args(["sh", "-c", script]));
    assert_eq!(status, 124, "{stderr}");
    assert!(stderr.contains("the total timeout"), "{stderr}");
    assert_eq!(printed.lines().count(), 2, "what was read before the limit");
    // Nothing else would end them within this time. A child that was killed exists until its new parent waits for it.
    let deadline = Instant::now() + Duration::from_secs(20);
    while printed.lines().any(|pid| Path::new("/proc").join(pid).exists()) {
        assert!(Instant::now() < deadline, "{printed}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(outcome(Command::new(program.path()).args(["echo", "a"])), (0, "a\n".into(), "".into()));
}

#[test]
fn people_prints_two_columns_of_csv() {
    if !has("gcc") {
        return;
    }
    let program = Program::compile(&["gcc", "-std=c99"], "../../examples/c/people.c", Linked::Dynamically);
    let people = |text: &str| {
        let file = program.files().join("people.csv");
        std::fs::write(&file, text).unwrap();
        let output = Command::new(program.path()).arg(&file).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let text = "age,name,id\n41,Ann,1\n\n17,\"Bob, \"\"Jr.\"\"\",2\n";
    let printed = "Ann is 41\nBob, \"Jr.\" is 17\n".to_string();
    assert_eq!(people(text), (0, printed.clone(), String::new()));
    let (status, stdout, stderr) = people(&format!("{text}3,\"4\n\"5,6\n"));
    assert_eq!((status, stdout), (1, printed));
    assert!(stderr.contains("'5' after a closing quote") && stderr.contains("at line 6, column 2"), "{stderr}");
    assert!(people("name\n").2.contains("the header has no field age"));
    assert!(people("name,age\na\n").2.contains("found 1 field, expected 2, as in the header, at line 2, column 1"));
}

/// Returns the names of the functions in the headers.
fn functions(headers: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for header in headers {
        let text = std::fs::read_to_string(crate_dir().join("include").join(header)).unwrap();
        let mut in_comment = false;
        for line in text.lines() {
            in_comment |= line.trim_start().starts_with("/*");
            if !in_comment && !line.starts_with([' ', '#']) {
                for (at, _) in line.match_indices("millstream_") {
                    let name = line[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
                    let is_called = line[at + name.len()..].starts_with('(');
                    if is_called && !line.starts_with("typedef") {
                        found.insert(name.to_string());
                    }
                }
            }
            in_comment &= !line.contains("*/");
        }
    }
    found
}

/// The program may use a function directly or through an inlined function.
#[test]
fn the_c_program_uses_every_function() {
    let program = ["all.c", "bson.h", "pipe.h"]
        .map(|file| std::fs::read_to_string(crate_dir().join("tests/c").join(file)).unwrap())
        .concat();
    let inlined = ["window.h", "bson.h"]
        .map(|header| std::fs::read_to_string(crate_dir().join("include/millstream").join(header)).unwrap())
        .concat();
    let functions = functions(&["millstream.h", "millstream/window.h", "millstream/bson.h"]);
    assert!(functions.len() > 100 && functions.contains("millstream_batch_record"), "{functions:?}");
    let is_used = |name: &String| {
        let call = format!("{name}(");
        program.contains(&call) || inlined.matches(&call).count() > 1
    };
    let unused: Vec<_> = functions.iter().filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "all.c does not use {unused:?}");
}

/// The shared library exports exactly the functions that the header declares.
#[test]
fn the_library_exports_the_header() {
    if !has("nm") {
        return;
    }
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libmillstream.so")));
    // A crate for checksums has a C interface of its own, which no feature of object_store leaves out.
    let names = symbols.lines().map(|line| line.split_whitespace().last().unwrap().to_string());
    let exported: BTreeSet<String> = names.filter(|name| !name.starts_with("crc_fast_")).collect();
    assert_eq!(exported, functions(&["millstream.h"]));
}
