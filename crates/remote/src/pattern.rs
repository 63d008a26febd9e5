//! What patterns of names are, for files and for objects. Matching them is left to the crate globset.

/// Returns whether a name is a pattern.
pub fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Returns whether a URL is a pattern of objects, which only stores can list.
pub fn is_pattern_of_objects(url: &str) -> bool {
    let schemes = ["s3://", "gs://", "az://"];
    let start = url.get(..5).unwrap_or_default();
    is_pattern(url) && schemes.iter().any(|scheme| start.eq_ignore_ascii_case(scheme))
}

/// Returns the part of a pattern up to its last `/` before any special character.
pub fn fixed_part(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    &pattern[..pattern[..end].rfind('/').map_or(0, |slash| slash + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_ends_with_a_directory() {
        for (pattern, part) in [("a/b*", "a/"), ("*", ""), ("/x/y/**/z", "/x/y/"), ("s3://b/c-{1,2}/*", "s3://b/")] {
            assert_eq!(fixed_part(pattern), part, "{pattern}");
        }
    }

    #[test]
    fn only_stores_have_patterns_of_objects() {
        assert!(is_pattern_of_objects("S3://b/*") && is_pattern_of_objects("az://b/**/c"));
        assert!(
            !is_pattern_of_objects("https://host/*")
                && !is_pattern_of_objects("s3://b/c")
                && !is_pattern_of_objects("*")
        );
    }
}
