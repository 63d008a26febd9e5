"""
Streams of records at machine speed, over the C library of the same name.

What there is, with examples: `bindings/julia/README.md`. One file for each room, under the names of the core; the foreign
calls of a room are in its file, by `@c` and `@call`.
"""
module Millstream

# Drop-in for BiBufferedStreams.jl
export BiBufferedStream
# Records
export eachrecord, batches, record
# Errors
export MillstreamError

include("library.jl")
include("errors.jl")
include("cancel.jl")
include("commands.jl")
include("available.jl")
include("frame.jl")
include("reader.jl")
include("batches.jl")
include("scan.jl")
include("writer.jl")
include("put.jl")
include("bibuffered.jl")

# BSON documents and the files of BSON.jl: `Millstream.BSON`.
isfile(joinpath(@__DIR__, "bson", "BSON.jl")) && include("bson/BSON.jl")

__init__() = open_library()

end
