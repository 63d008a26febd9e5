//! Objects of Google Cloud Storage: fake-gcs-server has the requests that read, but neither uploads of its XML interface nor
//! conditions.

use millstream::remote::Objects;

use crate::server::Server;
use crate::store::{Kind, changes, compression, every_key, every_length, missing_objects, splits, with_store};

fn fake_gcs_server() -> Option<Server> {
    Server::start_if_deep("fake-gcs-server", |port, _| {
        let (port, public) = (port.to_string(), format!("127.0.0.1:{port}"));
        let words = ["-scheme", "http", "-host", "127.0.0.1", "-port", &port, "-public-host", &public];
        words.into_iter().chain(["-backend", "memory"]).map(String::from).collect()
    })
}

#[test]
fn objects_of_fake_gcs_server() {
    with_store("gcs::objects_of_fake_gcs_server", Kind::Gcs, fake_gcs_server, &[], |store| {
        every_length(store);
        every_key(store, &[], &["b/c", "d", "e", "a\nb"]);
        compression(store);
        changes(store);
        splits(store);
        missing_objects(store);
        let keys = ["list/a b#%?+", "list/b//c", "list/é"];
        keys.iter().for_each(|key| store.put(key, b"1234"));
        let listed: Vec<_> = Objects::new(store.url("list/")).unwrap().map(Result::unwrap).collect();
        let urls: Vec<_> = listed.iter().map(|object| object.url.clone()).collect();
        assert_eq!(urls, keys.map(|key| store.address_of(key)));
        assert!(listed.iter().all(|object| object.size == 4));
    });
}
