"""
Streams of records at machine speed, over the C library of the same name.

What there is, with examples: `bindings/julia/README.md`. One file for each room, under the names of the core; the foreign
calls of a room are in its file, by `@c`.
"""
module Millstream

include("library.jl")

# BSON documents and the files of BSON.jl: `Millstream.BSON`.
isfile(joinpath(@__DIR__, "bson", "BSON.jl")) && include("bson/BSON.jl")

__init__() = open_library()

end
