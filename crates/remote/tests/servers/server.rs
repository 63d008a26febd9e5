//! Servers of other projects, each on a free port of this machine.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::skip;

/// The maximum duration of a step, which only detects hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It is killed when this is dropped, and when the thread ends that started it.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// Its folder.
    pub(crate) place: TempDir,
}

impl Server {
    /// Starts a program in a new folder, with arguments for the port and the folder, and waits until it accepts
    /// connections. If it is missing, the test is skipped with a visible message, and fails in CI.
    pub(crate) fn start(name: &str, arguments: impl Fn(u16, &Path) -> Vec<String>) -> Option<Server> {
        let (Some(program), Some(setpriv)) = (find(name), find("setpriv")) else {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{name} is missing: see tools/setup");
            skip::say(&format!("{name} is missing (tools/setup test)"));
            return None;
        };
        // Another process may take the port before the server does.
        for _ in 0..3 {
            let place = tempfile::tempdir().unwrap();
            let port = free_port();
            let log = File::create(place.path().join("log")).unwrap();
            // Kills the server if the tests are killed.
            let mut command = Command::new(&setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(&program).args(arguments(port, place.path()));
            command.current_dir(place.path()).stdin(Stdio::null());
            let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
            let mut server = Server { child, address: format!("127.0.0.1:{port}"), place };
            if server.accepts() {
                return Some(server);
            }
            eprintln!("{name} ended: {}", std::fs::read_to_string(server.path("log")).unwrap());
        }
        panic!("{name} does not start");
    }

    /// Like [`start`](Server::start), for a server that `tools/setup` installs for the deep tests only, because that takes a
    /// minute or more.
    pub(crate) fn start_if_deep(name: &str, arguments: impl Fn(u16, &Path) -> Vec<String>) -> Option<Server> {
        if std::env::var_os("MILLSTREAM_DEEP").is_none() && find(name).is_none() {
            skip::say(&format!("{name} is missing (MILLSTREAM_DEEP=1 tools/setup test)"));
            return None;
        }
        Server::start(name, arguments)
    }

    /// Waits until it accepts connections, or ends.
    fn accepts(&mut self) -> bool {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if TcpStream::connect(&self.address).is_ok() {
                return true;
            }
            assert!(start.elapsed() < PATIENCE, "timed out while waiting for a server");
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that no other test of this process gets, below those that the kernel gives to connections and to the
/// proxies of toxiproxy: a server that is not ready yet would be mistaken for one of them.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::SeqCst);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns a program that `tools/setup` has installed, in the repository or in the system.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.servers/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian's programs for administrators are not in the path of other users.
    let folders = [own].into_iter().chain(std::env::split_paths(&path)).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Sends a request, and returns the status and the body of the response.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("the response {response:?}")), body.into())
}
