//! Julia: generates constants and declarations.

use std::fmt::Write as _;

use syn::{Expr, ExprLit, GenericArgument, Lit, PathArguments, Type};

use crate::options::{Builder, Kind, Setting};
use crate::source::{Declarations, Enumeration, ErrorKind, Function, Structure, snake_case};
use crate::{NOTICE, comment};

/// Generates `kinds.jl`: the names of the error kinds and their codes.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let mut rows = String::new();
    for kind in kinds {
        rows += &comment("    #", &kind.meaning, 120);
        writeln!(rows, "    {} = {},", kind.name, kind.code).unwrap();
    }
    format!(
        "# {NOTICE}

\"\"\"
The kinds of error with their codes, the same in every language: `keys(Millstream.error_kinds)` are what the `kind` of a
[`MillstreamError`](@ref) can be. \"\"\"
const error_kinds = (
{rows})
"
    )
}

/// Generates `declarations.jl`: the declarations of the C ABI that `ccall` needs, and the names of enum values.
pub fn declarations(abi: &Declarations) -> Result<String, String> {
    let mut out = format!("# {NOTICE}\n");
    for Structure { name, fields } in &abi.structures {
        writeln!(out, "\n# As {name} in the header.\nstruct {}", structure_name(name)).unwrap();
        for (field, of) in fields {
            writeln!(out, "    {field}::{}", type_of(abi, of, false).map_err(|error| format!("{name}: {error}"))?)
                .unwrap();
        }
        out += "end\n";
    }
    out += "\n# The values of each enum of the header, in their order: the first is 0.\nconst choices = (\n";
    for Enumeration { name, values } in &abi.enums {
        if values.iter().map(|(_, number)| *number).eq(0..values.len() as u32) {
            let values: Vec<String> = values.iter().map(|(value, _)| format!(":{value}")).collect();
            writeln!(out, "    {} = ({},),", name.trim_start_matches("millstream_"), values.join(", ")).unwrap();
        }
    }
    out += ")\n\n# The type of each function's result, and those of its parameters.\n";
    out += "const declarations = Dict{Symbol,Tuple{Type,Vector{Type}}}(\n";
    for Function { name, parameters, result } in &abi.functions {
        let lengths = parameters.iter().skip(1).map(|(_, of)| is_length(of)).chain([false]);
        let types = parameters.iter().zip(lengths).map(|((_, of), has_length)| type_of(abi, of, !has_length));
        let types: Result<Vec<String>, String> = types.collect();
        let types = types.map_err(|error| format!("{name}: {error}"))?;
        let result = result.as_ref().map_or(Ok("Cvoid".into()), |result| type_of(abi, result, false))?;
        writeln!(out, "    :{name} => ({result}, [{}]),", types.join(", ")).unwrap();
    }
    Ok(out + ")\n")
}

/// Generates `options.jl`: functions that set the given options of readers and writers.
pub fn options(builders: &[Builder]) -> String {
    let mut out = format!("# {NOTICE}\n");
    for Builder { name: builder, options, .. } in builders {
        let options: Vec<&Setting> = options.iter().filter(|setting| !takes_function(setting)).collect();
        let names: Vec<String> = options.iter().map(|setting| format!("    {} = nothing,", setting.name)).collect();
        writeln!(out, "\nfunction set_{builder}_options(how;\n{}\n)", names.join("\n")).unwrap();
        for Setting { name, parameters, .. } in options {
            let unit = if let [(_, Kind::Time)] = &parameters[..] { "_ns" } else { "" };
            let converted: Vec<String> = match &parameters[..] {
                [(_, kind)] => vec![converted(name, kind, name)],
                several => several
                    .iter()
                    .enumerate()
                    .map(|(i, (_, kind))| {
                        converted(name, kind, &format!("part(:{name}, {name}, {}, {})", several.len(), i + 1))
                    })
                    .collect(),
            };
            let converted = converted.join(", ");
            writeln!(
                out,
                "    {name} === nothing ||\n        @call millstream_{builder}_options_set_{name}{unit}(how, {converted})"
            )
            .unwrap();
        }
        out += "    nothing\nend\n";
    }
    out
}

fn takes_function(setting: &Setting) -> bool {
    setting.parameters.iter().any(|(_, kind)| matches!(kind, Kind::Function))
}

/// Converts a value to one that the C ABI accepts, or fails with an error that names the option.
fn converted(option: &str, kind: &Kind, value: &str) -> String {
    match kind {
        Kind::Whole(of) if of == "u32" => format!("min(natural(:{option}, {value}), typemax(UInt32))"),
        Kind::Whole(_) => format!("natural(:{option}, {value})"),
        Kind::Time => format!("nanoseconds(:{option}, {value})"),
        Kind::Choice(of) => format!("choice(:{option}, {value}, choices.{})", snake_case(of)),
        Kind::Text => format!("text(:{option}, {value})"),
        Kind::Cancel => format!("token({value})"),
        Kind::Function => String::new(),
    }
}

/// Converts `millstream_command_end` to `CCommandEnd`.
fn structure_name(name: &str) -> String {
    let words = name.trim_start_matches("millstream_").split('_');
    words.fold("C".to_string(), |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

fn is_length(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.is_ident("usize"))
}

/// Julia's type for a type of the ABI. Characters are NUL-terminated text if `is_text`, otherwise bytes whose length is
/// the next parameter.
fn type_of(abi: &Declarations, of: &Type, is_text: bool) -> Result<String, String> {
    let path = match of {
        Type::Path(path) => path.path.segments.last().ok_or("an empty path")?,
        Type::Ptr(pointer) => return pointer_to(abi, &pointer.elem, is_text),
        Type::Reference(reference) => return pointer_to(abi, &reference.elem, is_text),
        Type::Array(array) => {
            let Expr::Lit(ExprLit { lit: Lit::Int(len), .. }) = &array.len else {
                return Err("an array without a plain number for its length".into());
            };
            return Ok(format!("NTuple{{{len},{}}}", type_of(abi, &array.elem, false)?));
        }
        _ => return Err("a type that has no counterpart in Julia".into()),
    };
    let name = path.ident.to_string();
    if let PathArguments::AngleBracketed(inner) = &path.arguments {
        let Some(GenericArgument::Type(inner)) = inner.args.first() else { return Err(format!("{name} of what?")) };
        return match name.as_str() {
            "Option" | "MaybeUninit" => type_of(abi, inner, is_text),
            "Box" | "NonNull" => pointer_to(abi, inner, is_text),
            _ => Err(format!("`{name}` has no counterpart in Julia")),
        };
    }
    Ok(match name.as_str() {
        "bool" => "Bool".into(),
        "c_char" => "Cchar".into(),
        "u8" | "u16" | "u32" | "u64" => name.replace('u', "UInt"),
        "i8" | "i16" | "i32" | "i64" => name.replace('i', "Int"),
        "f32" | "f64" => name.replace('f', "Float"),
        "usize" => "Csize_t".into(),
        "isize" => "Cssize_t".into(),
        "millstream_code" => "UInt32".into(),
        _ if abi.enums.iter().any(|found| found.name == name) => "UInt32".into(),
        _ if abi.callbacks.contains(&name) => "Ptr{Cvoid}".into(),
        _ if abi.structures.iter().any(|found| found.name == name) => structure_name(&name),
        _ => return Err(format!("`{name}` has no counterpart in Julia")),
    })
}

fn pointer_to(abi: &Declarations, of: &Type, is_text: bool) -> Result<String, String> {
    let name = match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    Ok(match name.as_str() {
        "c_char" if is_text => "Cstring".into(),
        "c_char" => "Ptr{UInt8}".into(),
        "c_void" if is_text => "Ptr{Cvoid}".into(),
        "c_void" => "Ptr{UInt8}".into(),
        // A handle.
        _ if name.starts_with("millstream_") && type_of(abi, of, false).is_err() => "Ptr{Cvoid}".into(),
        _ => format!("Ptr{{{}}}", type_of(abi, of, false)?),
    })
}
