//! Random texts as answers of servers and as addresses. `fuzz/fuzz_targets/remote_answers.rs` has the same checks.

mod checks;

use checks::{check_names, check_text};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_text_is_parsed_without_a_panic(text in any::<String>()) {
        check_text(&text);
    }

    #[test]
    fn texts_like_those_of_servers_are_parsed_without_a_panic(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "<Key>", "</Key>", "<Code>", "</Code>", "<Size>", "</Size>", "<Contents>", "</Contents>", "<Name>",
                "<Name Encoded=\"true\">", "</Name>", "<Properties>", "</Properties>", "<Content-Length>",
                "</Content-Length>", "<UploadId>", "</UploadId>", "<IsTruncated>true</IsTruncated>", "<Block/>",
                "<EncodingType>url</EncodingType>", "<Initiated>2026-11-27T15:00:00.000Z</Initiated>", "<![CDATA[",
                "]]>", "<!--", "-->", "<?xml version=\"1.0\"?>", "<!DOCTYPE a [<!ENTITY b \"c\">]>", "&b;", "&amp;",
                "&#x41;", "&#0;", "\u{feff}", "bytes ", "0-0/1", "18446744073709551615", "-", "/", "*", "a", "%41",
                "%", "+", " ", "\r\n", "é", "..", "?", "#", "@", ":",
            ]),
            0..12,
        ),
    ) {
        check_text(&parts.concat());
    }

    #[test]
    fn ranges_are_parsed_without_a_panic(text in "(bytes )?[0-9*/ -]{0,30}") {
        check_text(&text);
    }

    #[test]
    fn lists_have_the_names_that_were_written(names in prop::collection::vec(any::<String>(), 0..5)) {
        check_names(&names.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect::<Vec<_>>());
    }
}

#[test]
fn names_with_blanks_and_line_ends_survive_a_list() {
    check_names(&[" ", " a", "a ", "\n", "a\r\nb", "\u{feff}a", "a+b", "100%", "%41", "&amp;", "<a>", "]]>", "é/ü"]);
}
