//! The addresses of objects.

use millstream_core::error::{Error, ErrorKind, Result};
use url::Url;

/// The address of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `http://…` or `https://…`
    Web(Url),
    /// `s3://BUCKET/KEY`. The key is taken as it is written: `%`, `#`, `?`, spaces and `//` belong to it.
    S3 { bucket: String, key: String },
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Address> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let url = Url::parse(text).map_err(|error| invalid(text).with_found(error.to_string()))?;
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(invalid(text).with_found("no host"));
                }
                Ok(Address::Web(url))
            }
            "s3" => match rest.split_once('/') {
                Some((bucket, key)) if is_bucket(bucket) && !key.is_empty() => {
                    // URLs would lose these parts of a path.
                    if key.split('/').any(|part| matches!(part, "." | "..")) {
                        return Err(Error::new(ErrorKind::Unsupported)
                            .with_name(text)
                            .with_found("a key with a part that is '.' or '..'")
                            .with_expected("other names, because HTTP clients remove these parts"));
                    }
                    Ok(Address::S3 { bucket: bucket.into(), key: key.into() })
                }
                _ => Err(invalid(text).with_expected("s3://BUCKET/KEY")),
            },
            "gs" | "az" => Err(Error::new(ErrorKind::Unsupported)
                .with_name(shown(text))
                .with_found(format!("{scheme}://"))
                .with_expected("http, https or s3")),
            _ => Err(invalid(text).with_expected("http://…, https://… or s3://BUCKET/KEY")),
        }
    }
}

impl Address {
    /// Parses `s3://BUCKET` or `s3://BUCKET/PREFIX`, and returns both parts.
    pub(crate) fn parse_prefix(text: &str) -> Result<(String, String)> {
        let rest = text.get(5..).filter(|_| text[..5].eq_ignore_ascii_case("s3://")).unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        match is_bucket(bucket) {
            true => Ok((bucket.into(), prefix.into())),
            false => Err(invalid(text).with_expected("s3://BUCKET or s3://BUCKET/PREFIX")),
        }
    }
}

fn is_bucket(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_name(shown(text))
}

/// Returns a URL as messages show it: without user, password, query and fragment, which may be secret.
pub(crate) fn shown(text: &str) -> String {
    if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("s3://")) {
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
            let found = Address::parse(&format!("s3://some.bucket/{key}")).unwrap();
            assert_eq!(found, Address::S3 { bucket: "some.bucket".into(), key: key.into() });
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "a", "s3://", "s3://bucket", "s3://bucket/", "s3:///key", "ftp://a/b", "http://", "s3://b/a/../c"]
        {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert_eq!(Address::parse_prefix("s3://b/a//c").unwrap(), ("b".into(), "a//c".into()));
        assert_eq!(Address::parse_prefix("S3://b").unwrap(), ("b".into(), String::new()));
        for text in ["s3://", "s3:///a", "http://a/b", "s3:/", "é"] {
            assert!(Address::parse_prefix(text).is_err(), "{text}");
        }
        let error = Address::parse("gs://bucket/key").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        assert_eq!(shown("https://me:pass@host/a/b?X-Amz-Signature=1#c"), "https://host/a/b");
        assert_eq!(shown("s3://bucket/a?b#c"), "s3://bucket/a?b#c");
        let error = Address::parse("http://user:pass@:80/?secret").unwrap_err().to_string();
        assert!(!error.contains("pass") && !error.contains("secret"), "{error}");
    }
}
