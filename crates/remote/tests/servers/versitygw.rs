//! versitygw, a server for S3 that checks signatures and keeps each object in a file.

use crate::server::Server;

pub(crate) const KEY: &str = "some-key";
pub(crate) const SECRET: &str = "some-secret";
pub(crate) const REGION: &str = "eu-north-1";

/// Starts it with the folder `objects`, in which every folder is a bucket.
pub(crate) fn versitygw() -> Option<Server> {
    Server::start("versitygw", |port, place| {
        let folder = |name: &str| {
            let path = place.join(name);
            std::fs::create_dir_all(&path).unwrap();
            path.to_str().unwrap().to_string()
        };
        let address = format!("127.0.0.1:{port}");
        let words = ["--access", KEY, "--secret", SECRET, "--region", REGION, "--port", &address, "posix"];
        // Some file systems have no attributes, in which it would keep the ETags otherwise.
        let posix = ["--sidecar".into(), folder("attributes"), folder("objects")];
        words.into_iter().map(String::from).chain(posix).collect()
    })
}
