//! `vectors/splits.tsv`.

use super::{Event, sequential, union};
use data_encoding::HEXLOWER;
use millstream::frame::CsvDialect;
use millstream::splits::{Framing, Splits};
use millstream::{Decode, Reader};

const SPLITS: &str = include_str!("../../../../vectors/splits.tsv");

fn framing(words: &str) -> Framing {
    match words.split(' ').collect::<Vec<_>>()[..] {
        ["lines"] => Framing::Lines,
        ["bytes", hex] => Framing::Delimiter { bytes: HEXLOWER.decode(hex.as_bytes()).unwrap() },
        ["fixed", len] => Framing::Fixed { len: len.parse().unwrap() },
        ["prefix", text] => Framing::LengthPrefixed { prefix: text.parse().unwrap() },
        ["bson"] => Framing::Bson,
        ["csv"] => Framing::Csv { dialect: CsvDialect::new() },
        _ => panic!("unknown framing {words}"),
    }
}

#[test]
fn splits() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines = SPLITS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let [name, words, size, input, expected, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not six columns: {line}");
        };
        std::fs::write(file.path(), HEXLOWER.decode(input.as_bytes()).unwrap()).unwrap();
        let builder = Splits::builder().decode(Decode::Off);
        let plan = builder.plan(file.path(), framing(words), size.parse().unwrap()).unwrap();
        let options = || Reader::builder().decode(Decode::Off);
        let (mut splits, mut ended) = (Vec::new(), "end".to_string());
        for split in &plan {
            let mut reader = options().split(split).unwrap();
            let mut events = Vec::new();
            super::read(&mut reader, &mut *split.framing().framer().unwrap(), 1, 0, &mut events);
            let records = events.iter().filter_map(|event| match event {
                Event::Record(bytes) => Some(HEXLOWER.encode(bytes)),
                Event::Error { kind, .. } => {
                    ended = kind.name().to_string();
                    None
                }
                Event::Skipped => unreachable!("no record is too long"),
            });
            let records = records.collect::<Vec<_>>();
            let number = split.first_record().map_or("?".to_string(), |number| number.to_string());
            let records = if records.is_empty() { "-".to_string() } else { records.join(",") };
            splits.push(format!("{}-{}#{number}:{records}", split.begin(), split.end().unwrap()));
        }
        assert_eq!((splits.join(" ").as_str(), ended.as_str()), (expected, end), "{name}");
        assert_eq!(union(&plan, 1, options), sequential(file.path(), &framing(words), options), "{name}");
    }
}
