//! Google Cloud Storage. Its XML interface is Amazon's with other headers and credentials.

use std::sync::Arc;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use millstream_core::error::Result;
use object_store::client::HttpRequest;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};

use crate::address::Kind;
use crate::remote::Remote;
use crate::s3::Interface;
use crate::store::{self, Authorize, Authorized, Store};

/// How to give credentials.
const CREDENTIALS: &str = "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or GOOGLE_SKIP_SIGNATURE=true for public objects";

static GCS: Interface = Interface {
    prefix: "x-goog-",
    write_id: "x-goog-meta-millstream-id",
    describing: &["acl", "custom-time", "encryption-kms-key-name", "storage-class"],
    only_if_missing: ("x-goog-if-generation-match", "0"),
    // The documentation has no condition for the completion of a multipart upload.
    completes_conditionally: false,
    // Objects with `Content-Encoding: gzip` are delivered as they are stored. Google would decompress them otherwise, which
    // has neither a length nor ranges.
    reading: &[("accept-encoding", "gzip")],
    adds_checksums: true,
    namespace: "",
};

/// Opens a bucket.
pub(crate) fn open(bucket: &str, options: &Remote) -> Result<Store> {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let value = |key| builder.get_config_value(&key);
    let endpoint = options.endpoint.clone().or_else(|| value(GoogleConfigKey::BaseUrl));
    let url = store::bucket_url(endpoint.as_deref().unwrap_or("https://storage.googleapis.com"), bucket)?;
    let is_unsigned = options.anonymous || store::is_true(value(GoogleConfigKey::SkipSignature).as_deref());
    // The error for a key could contain a part of it.
    let has_key = value(GoogleConfigKey::ServiceAccountKey).is_some();
    let credentials: Option<Arc<dyn Authorize>> = match is_unsigned {
        true => None,
        false => Some(Arc::new(Token(builder.with_retry(store::retry()).build().map_err(|error| {
            let error = if has_key { "GOOGLE_SERVICE_ACCOUNT_KEY is no key".into() } else { error.to_string() };
            store::wrong_settings("Google Cloud Storage", &error, CREDENTIALS)
        })?))),
    };
    Ok(Store { kind: Kind::Gcs, bucket: url, protocol: &GCS, credentials })
}

/// A token of OAuth 2.0.
struct Token(GoogleCloudStorage);

impl Authorize for Token {
    fn authorize(&self, mut request: HttpRequest) -> Authorized<'_> {
        Box::pin(async move {
            let credential = self.0.credentials().get_credential().await;
            let credential = credential.map_err(|_| store::no_credentials("Google Cloud Storage", CREDENTIALS))?;
            // The key of an emulator has none.
            if !credential.bearer.is_empty() {
                let value = HeaderValue::try_from(format!("Bearer {}", credential.bearer));
                let mut value = value.map_err(|_| store::cannot_sign())?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            Ok(request)
        })
    }
}
