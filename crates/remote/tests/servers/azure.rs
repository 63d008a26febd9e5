//! Objects of Azure Blob Storage: Azurite, Microsoft's own emulator, checks signatures.

use crate::read::expect;
use crate::server::Server;
use crate::store::{
    ACCOUNT, Kind, changes, compression, every_key, every_length, is_refused, missing_objects, splits, with_store,
};

pub(crate) fn azurite() -> Option<Server> {
    Server::start_if_deep("azurite-blob", |port, place| {
        let place = place.join("blobs").to_str().unwrap().to_string();
        let words = ["--blobHost", "127.0.0.1", "--blobPort", &port.to_string(), "--location", &place];
        words.into_iter().chain(["--silent", "--disableTelemetry"]).map(String::from).collect()
    })
}

#[test]
fn objects_of_azurite() {
    with_store("azure::objects_of_azurite", Kind::Azure, azurite, &[], |store| {
        every_length(store);
        every_key(store, &[], &["b/c", "d", "e", "a\nb"]);
        compression(store);
        changes(store);
        splits(store);
        missing_objects(store);
    });
}

#[test]
fn a_wrong_key_of_an_account_is_refused() {
    let variables = [("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=")];
    with_store("azure::a_wrong_key_of_an_account_is_refused", Kind::Azure, azurite, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["az://bucket/a", "403", "AuthorizationFailure"]);
    });
}

#[test]
fn public_blobs_need_no_credentials() {
    let variables = [("AZURE_SKIP_SIGNATURE", "true")];
    with_store("azure::public_blobs_need_no_credentials", Kind::Azure, azurite, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["az://bucket/a", "40"]);
        let path = format!("/{ACCOUNT}/bucket?restype=container&comp=acl");
        let (status, answer) = store.request("PUT", &path, &[("x-ms-blob-public-access", "blob")], b"");
        assert_eq!(status, 200, "{answer}");
        expect(store.url("a"), b"one\n");
        // An endpoint contains the account.
        let endpoint = format!("http://{}/{ACCOUNT}", store.address);
        expect(store.url("a").endpoint(endpoint), b"one\n");
    });
}
