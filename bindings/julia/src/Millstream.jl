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

# Declares names as public that are too general to be exported: programs write `using Millstream: Reader`. Julia has had a
# keyword for them since version 1.11.
macro public(names...)
    list = :(const public_names = $names)
    esc(VERSION >= v"1.11" ? Expr(:toplevel, Expr(:public, names...), list) : list)
end

@public(Reader, Writer, Command, Shell, Mapped, Remote, Tcp, UnixSocket, progress, name, Framer, Lines, Delimiter, AnyOf, Fixed,
    LengthPrefixed, Documents, Csv, JsonLines, skips, Batch, rows, namedtuples, dicts, next_line, next_frame, skip_record, scan, rest_of_line, columns, columns!, ColumnBatches, rejected, rejects, schema, Timestamp, Decimal, parallel, map_async, CancelToken,
    cancel, iscancelled, CommandEnd, error_kinds, library_version, BSON)

include("declarations.jl")
include("library.jl")
include("kinds.jl")
include("errors.jl")
include("cancel.jl")
include("remote.jl")
include("commands.jl")
include("available.jl")
include("bytestream.jl")
include("frame.jl")
include("batch.jl")
include("options.jl")
include("reader.jl")
include("input.jl")
include("waiting.jl")
include("batches.jl")
include("csv.jl")
include("scan.jl")
include("columns.jl")
include("arrow.jl")
include("pipe.jl")
include("writer.jl")
include("put.jl")
include("bibuffered.jl")

# BSON documents and the files of BSON.jl: `Millstream.BSON`.
include("bson/BSON.jl")

function BSON.documents(source; options...)
    check_options(:documents, options, options_for(source))
    Records(batches_of(source, Documents(); options...), decoded)
end

@inline decoded(batch::Batch, i) = BSON.decode(record(batch, i))

include("show.jl")

include("warm.jl")

function __init__()
    open_library()
    atexit(() -> is_exiting[] = true)
end

end
