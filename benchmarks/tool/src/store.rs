//! An object store on this machine, for definitions whose runners read or write objects: versitygw, which keeps objects as
//! files, in memory like the inputs. If the connections have a latency or a rate, toxiproxy is between the store and the
//! runners.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The store of a definition. Its bucket is `s3://bucket`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A line for bash that writes the objects which runners read.
    pub prepare: String,
    /// What the connections of the runners are like, if they are not those of this machine.
    pub connection: Option<Connection>,
}

/// Connections to a store that is far away.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The time from a request to its answer in milliseconds, in addition to what the store needs.
    pub latency: u64,
    /// The rate of each connection, in each direction, in megabytes per second.
    pub rate: u64,
}

/// A running store, which ends when it is dropped.
#[derive(Debug)]
pub struct Store {
    /// The directory of the bucket. An object is the file with its key as its name.
    pub bucket: PathBuf,
    port: u16,
    /// The server and the proxy.
    processes: Vec<Child>,
}

impl Settings {
    /// The programs that the store needs.
    pub fn needs(&self) -> impl Iterator<Item = &'static str> + use<> {
        ["versitygw", "curl"].into_iter().chain(self.connection.map(|_| "toxiproxy-server"))
    }
}

impl Store {
    /// Starts a store with an empty bucket under `directory`. Its programs are searched in `path`.
    ///
    /// # Errors
    /// Fails if it cannot be started.
    pub fn start(settings: &Settings, directory: &Path, path: &OsStr) -> Result<Store> {
        let root = directory.join("store");
        // It may remain from a measurement that was killed.
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let bucket = root.join("bucket");
        fs::create_dir_all(&bucket)?;
        let mut store = Store { bucket, port: free_port()?, processes: Vec::new() };
        let address = format!("127.0.0.1:{}", store.port);
        let mut server = Command::new("versitygw");
        // Stores keep connections for the next request; this one does so if it is asked.
        server.args(["--access", "KEY", "--secret", "SECRET", "--keep-alive", "--port", &address, "posix"]).arg(&root);
        store.run(server, path, store.port)?;
        if let Some(connection) = settings.connection {
            store.add_proxy(connection, path)?;
        }
        Ok(store)
    }

    /// Puts a proxy between the store and the runners.
    fn add_proxy(&mut self, connection: Connection, path: &OsStr) -> Result<()> {
        let (control, port) = (free_port()?, free_port()?);
        let mut server = Command::new("toxiproxy-server");
        server.args(["-host", "127.0.0.1", "-port", &control.to_string()]);
        self.run(server, path, control)?;
        let post = |resource: &str, body: String| -> Result<()> {
            let url = format!("http://127.0.0.1:{control}/{resource}");
            let mut curl = Command::new("curl");
            let status = curl.args(["-sSf", "-o", "/dev/null", "-d", &body, &url]).status().context("curl")?;
            ensure!(status.success(), "toxiproxy refused {body}");
            Ok(())
        };
        let (from, to) = (self.port, port);
        post("proxies", format!(r#"{{"name":"store","listen":"127.0.0.1:{to}","upstream":"127.0.0.1:{from}"}}"#))?;
        let latency = connection.latency;
        post(
            "proxies/store/toxics",
            format!(r#"{{"type":"latency","stream":"downstream","attributes":{{"latency":{latency}}}}}"#),
        )?;
        // toxiproxy counts kilobytes of 1000 bytes.
        let rate = connection.rate * 1000;
        for stream in ["downstream", "upstream"] {
            post(
                "proxies/store/toxics",
                format!(r#"{{"type":"bandwidth","stream":"{stream}","attributes":{{"rate":{rate}}}}}"#),
            )?;
        }
        self.port = port;
        Ok(())
    }

    /// Starts a server and waits until it accepts connections.
    fn run(&mut self, mut server: Command, path: &OsStr, port: u16) -> Result<()> {
        let name = server.get_program().display().to_string();
        server.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.processes.push(server.spawn().with_context(|| name.clone())?);
        for _ in 0..500 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("{name} accepted no connection within 10 s")
    }

    /// Sets the variables by which a command finds it. Those of this machine's own stores are removed.
    pub fn add_environment(&self, command: &mut Command) {
        for (name, _) in env::vars_os() {
            if ["AWS_", "RCLONE_"].iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment());
    }

    fn environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        let own = [("AWS_ENDPOINT_URL", endpoint.clone()), ("RCLONE_CONFIG_S3_ENDPOINT", endpoint)];
        let common = [
            ("AWS_ACCESS_KEY_ID", "KEY"),
            ("AWS_SECRET_ACCESS_KEY", "SECRET"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("RCLONE_CONFIG", "/dev/null"),
            ("RCLONE_LOG_LEVEL", "ERROR"),
            ("RCLONE_CONFIG_S3_TYPE", "s3"),
            ("RCLONE_CONFIG_S3_PROVIDER", "Other"),
            ("RCLONE_CONFIG_S3_REGION", "us-east-1"),
            ("RCLONE_CONFIG_S3_ACCESS_KEY_ID", "KEY"),
            ("RCLONE_CONFIG_S3_SECRET_ACCESS_KEY", "SECRET"),
            ("RCLONE_CONFIG_S3_NO_CHECK_BUCKET", "true"),
        ];
        own.into_iter().chain(common.map(|(name, value)| (name, value.to_owned())))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns a port that no program uses.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
