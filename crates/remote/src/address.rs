//! The addresses of objects.

use millstream_core::error::{Error, ErrorKind, Result};
use url::Url;

/// The address of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `http://…` or `https://…`
    Web(Url),
    /// `s3://BUCKET/KEY`, or that of another store. The key is taken as it is written: `%`, `#`, `?`, spaces and `//` belong
    /// to it.
    Store { kind: Kind, bucket: String, key: String },
}

/// A kind of object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    S3,
    Gcs,
    Azure,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::S3, Kind::Gcs, Kind::Azure];

    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Kind::S3 => "s3",
            Kind::Gcs => "gs",
            Kind::Azure => "az",
        }
    }

    /// Returns the kind of a store's URL, and what follows its `://`.
    fn split(text: &str) -> Option<(Kind, &str)> {
        let (scheme, rest) = text.split_once("://")?;
        Kind::ALL.into_iter().find(|kind| scheme.eq_ignore_ascii_case(kind.scheme())).map(|kind| (kind, rest))
    }

    /// Returns the form of its URLs.
    fn form(self) -> String {
        let bucket = if self == Kind::Azure { "CONTAINER" } else { "BUCKET" };
        format!("{}://{bucket}", self.scheme())
    }

    fn is_bucket(self, name: &str) -> bool {
        // Azure has containers such as `$web`.
        let name = if self == Kind::Azure { name.strip_prefix('$').unwrap_or(name) } else { name };
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    }
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Address> {
        if let Some((kind, rest)) = Kind::split(text) {
            return match rest.split_once('/') {
                Some((bucket, key)) if kind.is_bucket(bucket) && !key.is_empty() => {
                    // URLs would lose these parts of a path.
                    if key.split('/').any(|part| matches!(part, "." | "..")) {
                        return Err(Error::new(ErrorKind::Unsupported)
                            .with_name(text)
                            .with_found("a key with a part that is '.' or '..'")
                            .with_expected("other names, because HTTP clients remove these parts"));
                    }
                    Ok(Address::Store { kind, bucket: bucket.into(), key: key.into() })
                }
                _ => Err(invalid(text).with_expected(kind.form() + "/KEY")),
            };
        }
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        if !["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)) {
            return Err(invalid(text).with_expected(EXPECTED));
        }
        let url = Url::parse(text).map_err(|error| invalid(text).with_found(error.to_string()))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid(text).with_found("no host"));
        }
        Ok(Address::Web(url))
    }

    /// Parses `s3://BUCKET` or `s3://BUCKET/PREFIX`, or a URL of another store, and returns its parts.
    pub(crate) fn parse_prefix(text: &str) -> Result<(Kind, String, String)> {
        let Some((kind, rest)) = Kind::split(text) else {
            return Err(invalid(text).with_expected("s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        match kind.is_bucket(bucket) {
            true => Ok((kind, bucket.into(), prefix.into())),
            false => Err(invalid(text).with_expected(format!("{0} or {0}/PREFIX", kind.form()))),
        }
    }
}

const EXPECTED: &str = "http://…, https://…, s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/KEY";

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_name(shown(text)).with_advice("correct the URL")
}

/// Returns a URL as messages show it: without user, password, query and fragment, which may be secret.
pub(crate) fn shown(text: &str) -> String {
    if Kind::split(text).is_some() {
        return text.into();
    }
    match Url::parse(text) {
        Ok(mut url) => {
            // This fails for URLs that cannot have these parts.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.into()
        }
        Err(_) => "a URL".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_as_they_are_written() {
        for key in ["a", "a/b.csv", "a//b", "a b", "100%", "a#b?c=d", "a\nb", "é/ü", "/a", "a/"] {
            for kind in Kind::ALL {
                let found = Address::parse(&format!("{}://some.bucket/{key}", kind.scheme())).unwrap();
                assert_eq!(found, Address::Store { kind, bucket: "some.bucket".into(), key: key.into() });
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "a", "s3://", "s3://bucket", "s3://bucket/", "s3:///key", "ftp://a/b", "http://", "s3://b/a/../c"]
                .into_iter()
                .chain(["gs://", "gs://bucket", "az://$/key", "gs://$web/key"])
        {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert!(Address::parse("az://$web/key").is_ok());
        assert_eq!(Address::parse_prefix("s3://b/a//c").unwrap(), (Kind::S3, "b".into(), "a//c".into()));
        assert_eq!(Address::parse_prefix("GS://b").unwrap(), (Kind::Gcs, "b".into(), String::new()));
        for text in ["s3://", "s3:///a", "http://a/b", "s3:/", "é"] {
            assert!(Address::parse_prefix(text).is_err(), "{text}");
        }
        let error = Address::parse("az://").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(error.to_string().contains("az://CONTAINER/KEY"), "{error}");
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        assert_eq!(shown("https://me:pass@host/a/b?X-Amz-Signature=1#c"), "https://host/a/b");
        assert_eq!(shown("s3://bucket/a?b#c"), "s3://bucket/a?b#c");
        let error = Address::parse("http://user:pass@:80/?secret").unwrap_err().to_string();
        assert!(!error.contains("pass") && !error.contains("secret"), "{error}");
    }
}
