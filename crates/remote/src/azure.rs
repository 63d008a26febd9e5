//! Azure Blob Storage. A long object is made of blocks, which the completing request lists.
//!
//! A block belongs to a blob and to no upload, so blocks of several writers can be mixed. Here, the identity of the write
//! is a part of each block's name, so a list has blocks of one write only. If another writer writes the blob meanwhile, Azure
//! discards all blocks that are not in its list, and a list that has them is refused.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use millstream_core::error::{Error, ErrorKind, Result};
use object_store::azure::{AzureAuthorizer, AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::HttpRequest;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::address::Kind;
use crate::answer::is_strong;
use crate::found::{ListedObject, UnfinishedUpload};
use crate::remote::Remote;
use crate::request::{Answer, Call, Part};
use crate::store::{self, Authorize, Authorized, Page, Protocol, Store, add_checksum};
use crate::xml::document;

/// How to give credentials.
const CREDENTIALS: &str = "set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or another kind of credentials, or \
                           AZURE_SKIP_SIGNATURE=true for public objects";

/// The version of the interface.
const VERSION: HeaderValue = HeaderValue::from_static("2023-11-03");

/// Opens a container.
pub(crate) fn open(container: &str, options: &Remote) -> Result<Store> {
    let wrong = |error: &str| store::wrong_settings("Azure Blob Storage", error, CREDENTIALS);
    let builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
    let value = |key| builder.get_config_value(&key);
    let is_true = |key| store::is_true(value(key).as_deref());
    let is_unsigned = options.anonymous || is_true(AzureConfigKey::SkipSignature);
    let is_emulator = is_true(AzureConfigKey::UseEmulator);
    let account = value(AzureConfigKey::AccountName).or_else(|| is_emulator.then(|| "devstoreaccount1".into()));
    let domain = if is_true(AzureConfigKey::UseFabricEndpoint) { "fabric.microsoft.com" } else { "core.windows.net" };
    let set = options.endpoint.clone().or_else(|| value(AzureConfigKey::Endpoint).filter(|_| !is_emulator));
    let endpoint = match (set, &account) {
        (Some(set), _) => set,
        (None, None) => return Err(wrong("no account")),
        (None, Some(account)) if is_emulator => {
            let address = std::env::var("AZURITE_BLOB_STORAGE_URL").ok();
            let address = address.as_deref().unwrap_or("http://127.0.0.1:10000").trim_end_matches('/');
            format!("{address}/{account}")
        }
        (None, Some(account)) => format!("https://{account}.blob.{domain}"),
    };
    let bucket = store::bucket_url(&endpoint, container)?;
    let credentials: Option<Arc<dyn Authorize>> = match is_unsigned {
        true => None,
        false => {
            let account = account.ok_or_else(|| wrong("no account"))?;
            let builder = builder.with_allow_http(true).with_retry(store::retry());
            let store = builder.build().map_err(|error| wrong(&error.to_string()))?;
            Some(Arc::new(Signature { store, account }))
        }
    };
    Ok(Store { kind: Kind::Azure, bucket, protocol: &Blobs, credentials })
}

/// Refuses names of metadata that Azure would refuse only when the object is complete.
pub(crate) fn check_metadata(options: &Remote) -> Result<()> {
    let names = options.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
    for name in names.filter_map(|name| name.strip_prefix("x-ms-meta-").map(str::to_string)) {
        let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_valid || name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("the header x-ms-meta-{name}"))
                .with_expected("letters, digits and '_' after x-ms-meta-, as Azure requires"));
        }
    }
    Ok(())
}

/// A signature with the key of the account, a shared access signature, or a token.
struct Signature {
    store: MicrosoftAzure,
    account: String,
}

impl Authorize for Signature {
    fn authorize(&self, mut request: HttpRequest) -> Authorized<'_> {
        Box::pin(async move {
            let credential = self.store.credentials().get_credential().await;
            let credential = credential.map_err(|_| store::no_credentials("Azure Blob Storage", CREDENTIALS))?;
            AzureAuthorizer::new(&credential, &self.account)
                .try_authorize(&mut request)
                .map_err(|_| store::cannot_sign())?;
            Ok(request)
        })
    }
}

/// Azure's interface.
pub(crate) struct Blobs;

/// Returns the name of a block. It has to be base64, and those of a blob need the same length.
fn block(upload: &str, number: u32) -> String {
    format!("{upload}{number:08}")
}

impl Blobs {
    fn writing(&self, query: store::Query, object: HeaderMap, create_new: bool) -> Call {
        let mut call = Call { headers: object, ..Call::new(Method::PUT, query) };
        if create_new {
            call.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        call
    }
}

impl Protocol for Blobs {
    fn write_id(&self) -> HeaderName {
        // Names of metadata are identifiers of C#.
        HeaderName::from_static("x-ms-meta-millstream_id")
    }

    fn object_header(&self, name: &HeaderName) -> Option<HeaderName> {
        // The usual headers would describe the body of the request, such as a list of blocks.
        Some(HeaderName::from_static(match name.as_str() {
            "cache-control" => "x-ms-blob-cache-control",
            "content-disposition" => "x-ms-blob-content-disposition",
            "content-encoding" => "x-ms-blob-content-encoding",
            "content-language" => "x-ms-blob-content-language",
            "content-type" => "x-ms-blob-content-type",
            own => {
                const NAMES: [&str; 2] = ["x-ms-access-tier", "x-ms-tags"];
                let describes = NAMES.contains(&own) || own.starts_with("x-ms-meta-") || own.starts_with("x-ms-blob-");
                return describes.then(|| name.clone());
            }
        }))
    }

    fn add_headers(&self, method: &Method, headers: &mut HeaderMap) {
        headers.entry("x-ms-version").or_insert(VERSION);
        if method == Method::GET || method == Method::HEAD {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }

    fn put(&self, object: HeaderMap, body: Bytes, create_new: bool) -> Call {
        let mut call = self.writing(Vec::new(), object, create_new);
        call.headers.insert("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
        add_checksum(&mut call.headers, &body);
        Call { body, ..call }
    }

    fn create(&self, _: HeaderMap) -> Option<Call> {
        None
    }

    fn created(&self, _: &Answer) -> Option<String> {
        None
    }

    fn send_part(&self, upload: &str, number: u32, body: Bytes) -> Call {
        let mut call = Call::new(Method::PUT, vec![("blockid", block(upload, number)), ("comp", "block".to_string())]);
        add_checksum(&mut call.headers, &body);
        Call { body, ..call }
    }

    fn part_tag(&self, upload: &str, number: u32, _: &Answer) -> Option<String> {
        Some(block(upload, number))
    }

    fn complete(&self, _: &str, parts: &[Part], object: HeaderMap, create_new: bool) -> Call {
        // Blocks that are in the blob already are not accepted, so a request that is repeated cannot write it twice.
        let mut body = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        for part in parts {
            body += &format!("<Uncommitted>{}</Uncommitted>", part.tag);
        }
        let body = Bytes::from(body + "</BlockList>");
        let call = self.writing(vec![("comp", "blocklist".to_string())], object, create_new);
        Call { body, ..call }
    }

    fn completes_conditionally(&self) -> bool {
        true
    }

    fn has_completed(&self, answer: &Answer) -> bool {
        answer.status.as_u16() == 201
    }

    fn has_no_upload(&self, _: &Answer) -> bool {
        // No other program can have completed it, because no other one uses its blocks.
        false
    }

    fn has_object(&self, answer: &Answer) -> bool {
        answer.status.as_u16() == 412 || answer.code().as_deref() == Some("BlobAlreadyExists")
    }

    fn find(&self, _: &str) -> Call {
        let query = [("blocklisttype", "uncommitted"), ("comp", "blocklist")];
        Call::new(Method::GET, query.map(|(name, value)| (name, value.to_string())).to_vec())
    }

    fn is_found(&self, upload: &str, answer: &Answer) -> bool {
        let list: Option<BlockList> = document(&answer.body, "BlockList");
        let blocks = list.and_then(|list| list.uncommitted_blocks).unwrap_or_default().blocks;
        blocks.iter().any(|block| block.name.starts_with(upload))
    }

    fn abort(&self, _: &str) -> Option<Call> {
        None
    }

    fn objects_query(&self) -> &'static [(&'static str, &'static str)] {
        &[("comp", "list"), ("maxresults", "1000"), ("restype", "container")]
    }

    fn objects(&self, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<ListedObject>> {
        let page: BlobPage = document(body, "EnumerationResults")?;
        // Accounts with a hierarchical namespace list their directories as well.
        let is_object = |blob: &Blob| blob.properties.resource_type.as_deref() != Some("directory");
        // The parser loses names of blanks only. Such a list is refused, because no blob has an empty name.
        let name = |blob: &Blob| Some(blob.name.decode()).filter(|name| !name.is_empty());
        let entry = |blob: Blob| {
            // Lists have no quotes, and headers do.
            let etag = blob.properties.etag.as_deref().map(|etag| format!("\"{}\"", etag.trim_matches('"')));
            let etag = etag.filter(|etag| is_strong(etag.as_bytes()));
            Some(ListedObject { url: url(&name(&blob)?), size: blob.properties.size, etag })
        };
        let next = page.next_marker.filter(|marker| !marker.is_empty()).map(|marker| vec![("marker", marker)]);
        let blobs = page.blobs.unwrap_or_default().blobs.into_iter().filter(is_object);
        Some((blobs.map(entry).collect::<Option<_>>()?, next))
    }

    fn uploads_query(&self) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    fn uploads(&self, _: &str, _: &dyn Fn(&str) -> String) -> Option<Page<UnfinishedUpload>> {
        None
    }
}

/// Returns the error for what other stores do with uploads.
pub(crate) fn no_uploads() -> Error {
    Error::new(ErrorKind::Unsupported)
        .with_found("a list of unfinished uploads, which Azure Blob Storage does not have")
        .with_expected("s3:// or gs://; Azure discards the blocks of unfinished uploads after a week")
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlockList {
    uncommitted_blocks: Option<Blocks>,
}

#[derive(Default, Deserialize)]
struct Blocks {
    #[serde(rename = "Block", default)]
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Block {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlobPage {
    blobs: Option<BlobList>,
    next_marker: Option<String>,
}

#[derive(Default, Deserialize)]
struct BlobList {
    #[serde(rename = "Blob", default)]
    blobs: Vec<Blob>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Blob {
    name: Name,
    properties: Properties,
}

#[derive(Deserialize)]
struct Name {
    /// Whether characters that XML cannot contain are encoded.
    #[serde(rename = "@Encoded", default)]
    is_encoded: bool,
    #[serde(rename = "$text", default)]
    text: String,
}

impl Name {
    fn decode(&self) -> String {
        match self.is_encoded {
            true => percent_decode_str(&self.text).decode_utf8_lossy().into_owned(),
            false => self.text.clone(),
        }
    }
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "Content-Length")]
    size: u64,
    #[serde(rename = "Etag")]
    etag: Option<String>,
    #[serde(rename = "ResourceType")]
    resource_type: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(body: &str) -> Option<Page<ListedObject>> {
        Blobs.objects(body, &|key| format!("az://a/{key}"))
    }

    #[test]
    fn lists_of_blobs_are_parsed() {
        let blob = |name: &str| {
            format!("<Blob>{name}<Properties><Etag>0x1</Etag><Content-Length>7</Content-Length></Properties></Blob>")
        };
        let blobs = [
            "<Name> a  b </Name>",
            "<Name>&lt;&amp;%41</Name>",
            "<Name Encoded=\"true\">a%0Ab%FF%25</Name>",
            "<Name>é</Name>",
        ];
        let directory =
            blob("<Name>d</Name>").replace("</Properties>", "<ResourceType>directory</ResourceType></Properties>");
        let blobs = blobs.map(blob).concat() + &directory;
        let page = |rest: &str| {
            listed(&format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://a/\" \
                 ContainerName=\"a\"><Prefix>p</Prefix><Blobs>{blobs}</Blobs>{rest}</EnumerationResults>"
            ))
            .unwrap()
        };
        let (entries, next) = page("<NextMarker>2!80</NextMarker>");
        let urls: Vec<_> = entries.iter().map(|entry| entry.url.strip_prefix("az://a/").unwrap()).collect();
        assert_eq!(urls, [" a  b ", "<&%41", "a\nb\u{fffd}%", "é"]);
        assert!(entries.iter().all(|entry| entry.size == 7 && entry.etag.as_deref() == Some("\"0x1\"")));
        assert_eq!(next, Some(vec![("marker", "2!80".to_string())]));
        assert_eq!(page("<NextMarker />").1, None);
        assert_eq!(page("").1, None);
        let empty = listed("<EnumerationResults><Blobs /><NextMarker/></EnumerationResults>").unwrap();
        assert_eq!((empty.0.len(), empty.1), (0, None));
        assert!(listed("<EnumerationResults><Blobs><Blob></Blob></Blobs></EnumerationResults>").is_none());
        let blank = blob("<Name>  </Name>");
        assert!(listed(&format!("<EnumerationResults><Blobs>{blank}</Blobs></EnumerationResults>")).is_none());
    }

    #[test]
    fn only_blocks_of_this_write_are_found() {
        let answer = |blocks: &str| Answer {
            status: http::StatusCode::OK,
            headers: HeaderMap::new(),
            body: format!("\u{feff}<BlockList>{blocks}</BlockList>"),
        };
        let found = |blocks: &str| Blobs.is_found("0123", &answer(blocks));
        let name = block("0123", 7);
        let one = format!("<Block><Name>{name}</Name><Size>5</Size></Block>");
        assert!(found(&format!("<UncommittedBlocks><Block><Name>x</Name></Block>{one}</UncommittedBlocks>")));
        assert!(!found(&format!("<CommittedBlocks>{one}</CommittedBlocks><UncommittedBlocks/>")));
        assert!(!found("<UncommittedBlocks><Block><Name>4567</Name></Block></UncommittedBlocks>"));
        assert!(!found(""));
    }

    #[test]
    fn metadata_that_azure_refuses_is_refused_at_once() {
        let check = |name: &str| check_metadata(&Remote::new("az://a/b").header(name, "c"));
        assert!(["X-MS-Meta-a_b1", "x-ms-meta-_", "a-b", "x-ms-tags"].iter().all(|name| check(name).is_ok()));
        assert!(["x-ms-meta-a-b", "x-ms-meta-", "x-ms-meta-1a"].iter().all(|name| check(name).is_err()));
    }

    #[test]
    fn names_of_blocks_are_base64() {
        let name = block(&"f".repeat(32), 10_000);
        assert_eq!((name.len() % 4, name.len()), (0, 40));
    }
}
