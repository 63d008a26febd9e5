"""
The files of BSON.jl and BSONqs: Julia values in BSON documents, in and out.

    bson("run.bson", Dict(:weights => rand(3, 3), :step => 7))
    BSON.load("run.bson")

A program written for either package works with `using Millstream: BSON` and `using Millstream.BSON`. The one deliberate
difference: a file cannot supply functions, closures, modules or other bindings unless the caller sets `allow_code =
true`.

It promises: what is written is read back as the same values, with their types, shared and cyclic references kept; the
caller's values are not modified; reading any file results in a value or an error, in memory and time in proportion to
the file, and without a read outside it. Not supported: in `load`, BSON's types that files of Julia never contain
(dates, ObjectIds, regular expressions: `decode` and `documents` read them); and the element type of a vector whose
elements are not bits, which the format cannot represent.

Julia's values must be made by Julia, one by one: a foreign call for each costs more than reading the bytes here, with
code that the compiler makes for each type. So this module does not use the C library; the corpus, which the Rust
implementation also reads, keeps the two consistent.
"""
module BSON

using Mmap: Mmap

export bson

include("errors.jl")
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
include("warm.jl")

end
