"""
Reads and writes the files of BSON.jl and BSONqs, which contain Julia values in BSON documents.

    bson("run.bson", Dict(:weights => rand(3, 3), :step => 7))
    BSON.load("run.bson")

A program written for either package works with `using Millstream: BSON` and `using Millstream.BSON`. There is one
deliberate difference: a file cannot supply functions, closures, modules or other bindings unless the caller sets
`allow_code = true`.

Values are read back with the same types and with shared and cyclic references; the caller's values are not modified.
Reading any file results in a value or an error, uses memory and time in proportion to the file, and never reads outside
of it. Two things are not supported: `load` does not read BSON types that Julia's files never contain (dates, ObjectIds,
regular expressions; `decode` and `documents` read them), and the format cannot represent the element type of a vector
whose elements are not bits.

Julia values can be created only in Julia, one at a time. A foreign call for each value would cost more than decoding
the bytes here, with code that Julia specialises for each type. So this module uses the C library only to open URLs; a
corpus that the Rust implementation also reads keeps the two consistent.
"""
module BSON

using Mmap: Mmap

using ..Millstream: @public, Reader, Remote, Writer, resolved

export bson

@public(load, parse, tags, lower, structdata, initstruct, newstruct!, roundtrip, fileio_load, fileio_save, load_compat, Document,
    decode, encode, documents, get_path, require_path, Map, ObjectId, Binary, RegularExpression, Timestamp, Code, CodeWithScope, FarDateTime, Name,
    DBPointer, Undef, Undefined, MinKey, MaxKey, Decimal128, BSONError)

include("errors.jl")
include("elements.jl")
include("cursor.jl")
include("tags.jl")
include("extend.jl")
include("reading.jl")
include("types.jl")
include("forms.jl")
include("values.jl")
include("arrays.jl")
include("structs.jl")
include("checked.jl")
include("shared.jl")
include("quick.jl")
include("tree.jl")
include("source.jl")
include("load.jl")
include("document.jl")
include("plan.jl")
include("write.jl")
include("closures.jl")
include("macros.jl")
include("mongo.jl")
include("path.jl")
include("warm.jl")

end
