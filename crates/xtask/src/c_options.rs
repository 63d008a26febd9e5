//! The options in the C ABI: generates enums and setters in Rust.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::options::{Builder, Choices, Kind, Link, Setting, linked};
use crate::source::snake_case;
use crate::{NOTICE, comment};

const WIDTH: usize = 120;

/// Generates a C enum for one of the library's enums.
fn enumeration(Choices { name, about, values }: &Choices, choices: &[Choices]) -> String {
    let c = c_name(name);
    let mut out = format!("{}#[repr(u32)]\npub enum {c} {{\n", documented(about, choices));
    for (number, value) in values.iter().enumerate() {
        writeln!(out, "{}{} = {number},", documented(&value.about, choices), value.name).unwrap();
    }
    let pairs: Vec<String> = values.iter().map(|value| format!("    {0} => {name}::{0},\n", value.name)).collect();
    writeln!(out, "}}\n\nchoice!({c} is {name} {{\n{}}});\n", pairs.concat()).unwrap();
    out
}

/// Generates `reader_options.rs` and `writer_options.rs`: the enums of the options, and a setter for each option that
/// does not take a function.
pub fn setters(builder: &Builder, choices: &[Choices]) -> Result<String, String> {
    let Builder { name, options, .. } = builder;
    let setters: Vec<String> = options.iter().filter_map(|setting| setter(name, setting, choices)).collect();
    let setters = setters.join("\n");
    let used: Vec<&Choices> = choices.iter().filter(|found| setters.contains(&c_name(&found.name))).collect();
    let enums: Vec<String> = used.iter().map(|found| enumeration(found, choices)).collect();
    let used: Vec<&str> = used.iter().map(|found| found.name.as_str()).collect();
    formatted(&format!(
        "// {NOTICE}
//! The options of a {name}.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use millstream::{{{}}};

use crate::boundary::{{call, choice, chosen, given, string}};
use crate::cancel::millstream_cancel_token;
use crate::error::{{millstream_code, millstream_error}};
use crate::{name}::millstream_{name}_options;

{}{setters}",
        used.join(", "),
        enums.concat(),
    ))
}

/// Generates the setter of an option; `None` if the option takes a function.
fn setter(builder: &str, Setting { name, about, parameters, call }: &Setting, choices: &[Choices]) -> Option<String> {
    let (mut declared, mut prepared, mut passed, mut unit, mut safety) = (String::new(), String::new(), vec![], "", "");
    for (argument, kind) in parameters {
        let (of, prepare, pass) = match kind {
            Kind::Whole(of) => (of.clone(), String::new(), argument.clone()),
            Kind::Time => {
                unit = "_ns";
                ("u64".into(), String::new(), format!("Duration::from_nanos({argument}_ns)"))
            }
            Kind::Choice(of) => (
                format!("MaybeUninit<{}>", c_name(of)),
                format!("let {argument} = chosen({argument})?;\n"),
                argument.clone(),
            ),
            Kind::Text => {
                safety = "unsafe ";
                let owned = format!("unsafe {{ string({argument}, {argument:?})? }}.to_string_lossy().into_owned()");
                let prepare = format!("// SAFETY: C lends a string for this call.\nlet {argument} = {owned};\n");
                ("*const c_char".into(), prepare, format!("&{argument}"))
            }
            Kind::Cancel => (
                "Option<&millstream_cancel_token>".into(),
                format!("let {argument} = given({argument}, {argument:?})?.0.clone();\n"),
                format!("&{argument}"),
            ),
            Kind::Function => return None,
        };
        writeln!(declared, "    {argument}{}: {of},", if let Kind::Time = kind { "_ns" } else { "" }).unwrap();
        prepared += &prepare;
        passed.push(pass);
    }
    let call = call.replace("{}", &passed.join(", "));
    Some(format!(
        "{}#[unsafe(no_mangle)]
pub {safety}extern \"C\" fn millstream_{builder}_options_set_{name}{unit}(
    options: Option<&mut millstream_{builder}_options>,
{declared}    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {{
    call(error, || {{
        {prepared}given(options, \"options\")?.0.set(move |builder| builder.{call});
        Ok(())
    }})
}}
",
        documented(about, choices)
    ))
}

/// Converts `ReadAhead` to `millstream_read_ahead`.
fn c_name(name: &str) -> String {
    format!("millstream_{}", snake_case(name))
}

fn documented(about: &str, choices: &[Choices]) -> String {
    let about = linked(about, choices, |link| match link {
        Link::Error(kind) => format!("MILLSTREAM_{}", snake_case(kind).to_uppercase()),
        Link::Value(of, value) => format!("{}_{}", c_name(of), snake_case(value)).to_uppercase(),
        Link::Name(name) => format!("`{name}`"),
    });
    comment("///", &about, WIDTH)
}

/// Formats the text with rustfmt.
pub fn formatted(text: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("rustfmt: {error}; install it with `rustup component add rustfmt`");
    let options = ["--edition=2024", "--config=max_width=120,use_small_heuristics=Max"];
    let mut rustfmt =
        Command::new("rustfmt").args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    rustfmt.stdin.take().expect("it is piped").write_all(text.as_bytes()).map_err(failed)?;
    let done = rustfmt.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        return Err(format!("rustfmt {}: is a generated file valid Rust?", done.status));
    }
    String::from_utf8(done.stdout).map_err(|error| error.to_string())
}
