//! Julia: generates constants and declarations.

use syn::{Expr, ExprLit, GenericArgument, Lit, PathArguments, Type};

use crate::c_source::handle;
use crate::options::{Builder, Kind, Setting};
use crate::source::{Declarations, Enumeration, Function, Structure};
use crate::tables::{ElementType, ErrorKind, Layout};
use crate::text::{comment, each, joined, pascal_case, snake_case};

/// Generates `kinds.jl`: the names of the error kinds and their codes.
pub fn error_kinds(kinds: &[ErrorKind]) -> String {
    let rows = each(kinds, |kind| comment("    #", &kind.meaning) + &format!("    {} = {},\n", kind.name, kind.code));
    format!(
        "
\"\"\"
The kinds of error with their codes, the same in every language: `keys(Millstream.error_kinds)` are what the `kind` of a
[`MillstreamError`](@ref) can be. \"\"\"
const error_kinds = (
{rows})
"
    )
}

/// Generates `elements.jl`: the names and sizes of BSON types.
pub fn element_types(types: &[ElementType]) -> String {
    format!(
        "
# The types of BSON: the byte of each, with MongoDB's name.
const KIND_NAMES = Dict{{UInt8,String}}(
{})

# The size of a payload, of the types for which it is fixed.
const KIND_SIZES = Dict{{UInt8,Int}}(
{})
",
        each(types, |of| format!("    {:#04x} => \"{}\",\n", of.byte, of.alias)),
        each(types, |ElementType { byte, layout, .. }| match layout {
            Layout::Fixed(size) => format!("    {byte:#04x} => {size},\n"),
            Layout::Other(_) => String::new(),
        })
    )
}

/// Generates `declarations.jl`: the declarations of the C ABI that `ccall` needs, and the names of enum values.
pub fn declarations(abi: &Declarations) -> Result<String, String> {
    let mut out = String::new();
    for Structure { name, fields } in &abi.structures {
        out += &format!("\n# As {name} in the header.\nstruct {}\n", structure_name(name));
        for (field, of) in fields {
            let of = type_of(abi, of, false).map_err(|error| format!("{name}: {error}"))?;
            out += &format!("    {field}::{of}\n");
        }
        out += "end\n";
    }
    out += "\n# The values of each enum of the header, in their order: the first is 0.\nconst choices = (\n";
    for Enumeration { name, values } in &abi.enums {
        if values.iter().map(|(_, number)| *number).eq(0..values.len() as u32) {
            let values = joined(values, ", ", |(value, _)| format!(":{value}"));
            out += &format!("    {} = ({values},),\n", name.trim_start_matches("millstream_"));
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
        out += &format!("    :{name} => ({result}, [{}]),\n", types.join(", "));
    }
    Ok(out + ")\n")
}

/// Generates `options.jl`: the names of the options of each builder, and functions that set them.
pub fn options(builders: &[Builder]) -> String {
    each(builders, |Builder { name: builder, options, .. }| {
        let options = || options.iter().filter(|setting| !setting.takes_function());
        let names = each(options(), |setting| format!("    {} = nothing,\n", setting.name));
        let symbols = joined(options(), ", ", |setting| format!(":{}", setting.name));
        let calls = each(options(), |setting| {
            let Setting { name, parameters, .. } = setting;
            let count = parameters.len();
            let values = joined(parameters.iter().zip(1..), ", ", |((_, kind), i)| match count {
                1 => converted(name, kind, name),
                _ => converted(name, kind, &format!("part(:{name}, {name}, {count}, {i})")),
            });
            let setter = format!("{}{name}{}", handle(builder).1, setting.unit());
            match parameters[..] {
                [(_, Kind::Wholes)] => format!(
                    "    if {name} !== nothing\n        numbers = {values}\n        @call {setter}(how, numbers, length(numbers))\n    end\n"
                ),
                _ => format!("    {name} === nothing ||\n        @call {setter}(how, {values})\n"),
            }
        });
        format!(
            "\nconst {builder}_options = ({symbols})\n\nfunction set_{builder}_options(how;\n{names})\n{calls}    nothing\nend\n"
        )
    })
}

/// Converts a value to one that the C ABI accepts, or fails with an error that names the option.
fn converted(option: &str, kind: &Kind, value: &str) -> String {
    match kind {
        Kind::Whole(of) if of == "u32" => format!("min(natural(:{option}, {value}), typemax(UInt32))"),
        Kind::Whole(_) => format!("natural(:{option}, {value})"),
        Kind::Flag => format!("flag(:{option}, {value})"),
        Kind::Wholes => format!("integers(:{option}, {value})"),
        Kind::Time => format!("nanoseconds(:{option}, {value})"),
        Kind::Choice(of) => format!("choice(:{option}, {value}, choices.{})", snake_case(of)),
        Kind::Text => format!("text(:{option}, {value})"),
        Kind::Cancel => format!("token({value})"),
        Kind::Function => String::new(),
    }
}

/// Converts `millstream_command_end` to `CCommandEnd`.
fn structure_name(name: &str) -> String {
    format!("C{}", pascal_case(name.trim_start_matches("millstream_")))
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
        // `arrow.jl` declares them.
        "ArrowArray" | "ArrowArrayStream" | "ArrowSchema" => "Cvoid".into(),
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
