"""
The files of BSON.jl and BSONqs: Julia values in BSON documents, in and out.

    bson("run.bson", Dict(:weights => rand(3, 3), :step => 7))
    BSON.load("run.bson")

A program that was written for either package runs with `using Millstream: BSON` and `using Millstream.BSON`. The one
deliberate difference: a file cannot hand out functions, closures, modules or other bindings unless the caller says
`allow_code = true`.

It promises: what is written is read back as the same values, with their types, shared and cyclic references kept; the
caller's values are untouched; whatever a file says, reading it gives a value or an error, in memory and time that are in
proportion to the file, and no read outside of it. What it does not do: read BSON's types that files of Julia never have
(dates, ObjectIds, regular expressions; the core does), or keep the element type of a vector whose elements are not bits,
which the format has no place for.

Julia's values must be made by Julia, one by one: a foreign call for each costs more than reading the bytes here, with
code that the compiler makes for each type. So this room does not stand on the C library; the corpus, which the core's
`bson/julia` reads as well, holds the two together.
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
include("warm.jl")

end
