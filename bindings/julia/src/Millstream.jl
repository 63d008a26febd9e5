"""
Reads and writes streams of records fast, using the C library of the same name.

`bindings/julia/README.md` describes the package, with examples. Each module has one file, with the name of the core's
module. Foreign calls are in the file of their module and use `@c` and `@call`. """
module Millstream

# Drop-in for BiBufferedStreams.jl
export BiBufferedStream
# Records
export eachrecord, batches, record
# Errors
export MillstreamError

include("declarations.jl")
include("library.jl")
include("kinds.jl")
include("errors.jl")
include("cancel.jl")
include("commands.jl")
include("available.jl")
include("frame.jl")
include("batch.jl")
include("options.jl")
include("reader.jl")
include("waiting.jl")
include("batches.jl")
include("scan.jl")
include("writer.jl")
include("put.jl")
include("bibuffered.jl")

# BSON documents and the files of BSON.jl: `Millstream.BSON`.
include("bson/BSON.jl")

BSON.documents(source; options...) = Records(batches(source, Documents(); options...), decoded)

@inline decoded(batch::Batch, i) = BSON.decode(record(batch, i))

function __init__()
    open_library()
    atexit(() -> is_exiting[] = true)
end

end
