//! What holds for any text that a server sends or a user writes, for tests and fuzzing.

use millstream_remote::internal;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Parses a text as everything that it could be. Nothing panics, and what is found is consistent.
pub fn check_text(text: &str) {
    check_content_range(text);
    for scheme in ["", "s3://", "gs://b/", "az://b/", "http://", "https://h/"] {
        check_address(&format!("{scheme}{text}"));
    }
    check_document(text);
    for [start, end] in ROOTS {
        check_document(&format!("{start}{text}{end}"));
    }
}

/// The beginnings and ends of the documents that stores send.
const ROOTS: [[&str; 2]; 8] = [
    ["<Error>", "</Error>"],
    ["<Error><Code>", "</Code></Error>"],
    ["<ListBucketResult>", "</ListBucketResult>"],
    ["<ListBucketResult><Contents><Size>1</Size>", "</Contents></ListBucketResult>"],
    ["<ListMultipartUploadsResult><Upload>", "</Upload></ListMultipartUploadsResult>"],
    ["<EnumerationResults><Blobs><Blob>", "</Blob></Blobs></EnumerationResults>"],
    ["<InitiateMultipartUploadResult>", "</InitiateMultipartUploadResult>"],
    ["<BlockList><UncommittedBlocks>", "</UncommittedBlocks></BlockList>"],
];

fn check_document(body: &str) {
    if let Some(text) = internal::error(body) {
        assert!(!text.contains(char::is_control) && text.chars().count() <= 402, "{text:?}");
    }
    // A document has one root, so it is of one kind.
    let kinds = [
        internal::error(body).is_some(),
        internal::objects(body).is_some(),
        internal::blobs(body).is_some(),
        internal::uploads(body).is_some(),
        internal::new_upload(body).is_some(),
        internal::has_completed(body),
        internal::has_blocks("a", body),
    ];
    assert!(kinds.iter().filter(|is_one| **is_one).count() <= 1, "{body:?}: {kinds:?}");
    assert!(internal::new_upload(body).is_none_or(|id| !id.is_empty()), "{body:?}");
}

fn check_content_range(text: &str) {
    let Some((bytes, total)) = internal::content_range(text) else { return };
    assert!(!bytes.is_empty() && total.is_none_or(|total| bytes.end <= total), "{text:?}: {bytes:?}, {total:?}");
    let shown = total.map_or_else(|| "*".into(), |total| total.to_string());
    let again = format!("bytes {}-{}/{shown}", bytes.start, bytes.end - 1);
    assert_eq!(internal::content_range(&again), Some((bytes, total)), "{text:?}");
}

/// The path of a request is exactly the key, whatever its characters are.
fn check_address(text: &str) {
    const BUCKET: &str = "http://host:1/bucket";
    let Some(url) = internal::request_url(text, BUCKET) else { return };
    let (scheme, rest) = text.split_once("://").unwrap();
    if scheme.to_ascii_lowercase().starts_with("http") {
        assert_eq!(internal::request_url(&url, BUCKET).as_deref(), Some(&*url), "{text:?}");
        return;
    }
    let (_, key) = rest.split_once('/').unwrap();
    let path = url.strip_prefix(BUCKET).and_then(|path| path.strip_prefix('/')).unwrap_or_else(|| panic!("{url}"));
    assert!(!path.contains(['?', '#']), "{text:?}: {url}");
    assert_eq!(percent_decode_str(path).decode_utf8().as_deref(), Ok(key), "{url}");
}

/// Lists with these names have these names.
pub fn check_names(names: &[&str]) {
    let encoded = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let plain = |name: &str| name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // XML has no control characters, which is the reason for encoded names.
    let visible: Vec<String> = names.iter().map(|name| name.replace(char::is_control, "")).collect();
    let visible: Vec<&str> = visible.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect();
    check_lists(names, "<EncodingType>url</EncodingType>", " Encoded=\"true\"", encoded);
    check_lists(&visible, "", "", plain);
}

fn check_lists(names: &[&str], kind: &str, attribute: &str, write: impl Fn(&str) -> String) {
    let entries = |form: &dyn Fn(&str, usize) -> String| -> String {
        names.iter().enumerate().map(|(at, name)| form(&write(name), at)).collect()
    };
    let sizes: Vec<_> = (0..names.len() as u64).collect();
    let contents = entries(&|name, at| format!("<Contents><Key>{name}</Key><Size>{at}</Size></Contents>"));
    let list = format!("<ListBucketResult>{kind}{contents}</ListBucketResult>");
    let blobs = entries(&|name, at| {
        let properties = format!("<Properties><Content-Length>{at}</Content-Length></Properties>");
        format!("<Blob><Name{attribute}>{name}</Name>{properties}</Blob>")
    });
    let blobs = format!("<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>");
    let mut pages = vec![(&list, internal::objects(&list))];
    // The parser of XML loses a text of blanks only, so these lists are refused.
    match attribute.is_empty() && names.iter().any(|name| name.trim_matches(' ').is_empty()) {
        true => assert_eq!(internal::blobs(&blobs), None),
        false => pages.push((&blobs, internal::blobs(&blobs))),
    }
    for (list, page) in pages {
        let (found, next) = page.unwrap_or_else(|| panic!("{list:?}"));
        assert_eq!(found.iter().map(|object| &*object.url).collect::<Vec<_>>(), names, "{list:?}");
        assert_eq!(found.iter().map(|object| object.size).collect::<Vec<_>>(), sizes);
        assert_eq!(next, None);
    }

    let uploads = entries(&|name, at| format!("<Upload><Key>{name}</Key><UploadId>{at}</UploadId></Upload>"));
    let last = write(names.last().unwrap_or(&""));
    let next = format!("<IsTruncated>true</IsTruncated><NextKeyMarker>{last}</NextKeyMarker>");
    let list = format!("<ListMultipartUploadsResult>{kind}{next}{uploads}</ListMultipartUploadsResult>");
    let (found, next) = internal::uploads(&list).unwrap_or_else(|| panic!("{list:?}"));
    assert_eq!(found.iter().map(|upload| &*upload.url).collect::<Vec<_>>(), names, "{list:?}");
    assert!(found.iter().enumerate().all(|(at, upload)| upload.id == at.to_string()), "{found:?}");
    assert_eq!(next.unwrap()[0], ("key-marker", names.last().unwrap_or(&"").to_string()), "{list:?}");
}
