# Framers, which define records.

"""
Finds the ends of records: [`Lines`](@ref), [`Delimiter`](@ref), [`AnyOf`](@ref), [`Fixed`](@ref),
[`LengthPrefixed`](@ref), [`Documents`](@ref), [`Csv`](@ref) or [`JsonLines`](@ref). """
mutable struct Framer
    handle::Ptr{Cvoid}
    # The call that creates it.
    text::String
    # The dialect as the library parses it, of a framer for CSV.
    dialect::Union{String,Nothing}

    function Framer(handle, text, dialect)
        framer = new(handle, text, dialect)
        finalizer(framer -> (@c millstream_framer_free(framer.handle)), framer)
    end
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, framer::Framer) = framer.handle

# Creates a framer with a function that stores its handle in a reference.
function framer(make, text, dialect = nothing)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    make(out)
    Framer(out[], text, dialect)
end

delimited(keep) = keep ? 0x00000001 : 0x00000000

and_keep(keep) = keep ? "; keep = true" : ""

"""
    Lines(; keep = false)

Records are lines, which end with a line feed; the last line need not. Unless `keep` is true, the line feed and a
carriage return before it are not part of the record. """
Lines(; keep::Bool = false) = framer("Lines($(and_keep(keep)))") do out
    @call millstream_framer_lines(delimited(keep), out)
end

"""
    Delimiter(delimiter; keep = false)

Records end with a byte, a character or a string; the last record need not.
"""
function Delimiter(delimiter::Union{UInt8,Char,AbstractString,AbstractVector{UInt8}}; keep::Bool = false)
    bytes = delimiter isa UInt8 ? [delimiter] : delimiter isa AbstractVector ? Vector{UInt8}(delimiter) :
        Vector{UInt8}(codeunits(string(delimiter)))
    framer("Delimiter($(repr(delimiter))$(and_keep(keep)))") do out
        @call millstream_framer_delimiter(bytes, length(bytes), delimited(keep), out)
    end
end

is_among(ends, byte) = unsafe_load(ends, byte + 1)

"""
    AnyOf(bytes; keep = false)

Records end after any of these bytes.
"""
function AnyOf(bytes; keep::Bool = false)
    ends = zeros(Bool, 256)
    foreach(byte -> ends[UInt8(byte)+1] = true, bytes)
    # The library queries each byte while it creates the framer, and not later.
    ask = @cfunction(is_among, Bool, (Ptr{Bool}, UInt8))
    framer("AnyOf($(repr(bytes))$(and_keep(keep)))") do out
        @call millstream_framer_predicate(ask, ends, delimited(keep), out)
    end
end

"""
    Fixed(length)

Records have `length` bytes. A stream that ends inside a record is an error.
"""
Fixed(length::Integer) = framer("Fixed($length)") do out
    @call millstream_framer_fixed(length, out)
end

"""
    LengthPrefixed(T; endian = :little, counts = :payload)

Records are preceded by their length, a number of an unsigned type such as `UInt32`, which counts the bytes after it or,
with `counts = :itself`, also its own. """
LengthPrefixed(::Type{T}; endian = :little, counts = :payload) where {T<:Unsigned} =
    framer("LengthPrefixed($T; endian = $(repr(endian)), counts = $(repr(counts)))") do out
    @call millstream_framer_length_prefixed(sizeof(T), choice(:endian, endian),
        choice(:counts, counts, choices.prefix_counts), out)
end

"""
    Documents()

Records are consecutive BSON documents, as written by mongodump. """
Documents() = framer("Documents()") do out
    @call millstream_framer_bson(out)
end

"""
    JsonLines(; check = false, depth = 128)

Records are lines of newline-delimited JSON. With `check`, each line that is not blank is one value in UTF-8, with at
most `depth` arrays and objects inside each other; any other line is an error of kind `:json_invalid` or `:too_deep`.
All lines are records; [`skips`](@ref) is true for blank ones. The elements of an array are records by the option
`json_elements` of readers.
"""
function JsonLines(; check::Bool = false, depth::Union{Nothing,Integer} = nothing)
    depth === nothing || check || wrong(:depth, depth, "no limit for lines that are not checked, or check = true")
    limit = something(depth, 128)
    options = check ? "; check = true$(depth === nothing ? "" : ", depth = $depth")" : ""
    framer("JsonLines($options)") do out
        @call millstream_framer_json_lines(check, limit, out)
    end
end

"""
    skips(framer, content)

Returns whether the content of a record that this framer has found is not a record of the format: a blank line of
newline-delimited JSON or of CSV, or a comment of CSV.
"""
function skips(framer::Framer, content::Union{AbstractString,AbstractVector{UInt8}})
    bytes = content isa AbstractVector ? content : codeunits(content)
    found = Ref(false)
    @call millstream_framer_skips(framer, bytes, length(bytes), found)
    found[]
end

"""
    Csv(; options...)

Records are those of CSV: RFC 4180 with any line end by default. [`rows`](@ref) and [`namedtuples`](@ref) have their
fields. A quote that the dialect does not allow is an error of kind `:csv_invalid`.

Options, with their defaults first; a byte is an ASCII character or a `UInt8`:
- `delimiter`: `','`, the byte between two fields
- `quotechar`: `'"'`, the byte around fields that contain delimiters, line ends or quotes; `nothing` for none
- `escape`: `nothing`, or the byte that makes the next byte content
- `doubled_quotes`: `true`, two quotes in a quoted field are one quote of its content
- `comment`: `nothing`, or the byte that makes a line a comment if it is the first one
- `line_end`: `:any`, `:lf`, `:crlf`, `:cr`
- `blank_records`: `false`, or `true` if a blank line is a record of one empty field
- `literal_quotes`: `false`, or `true` if a quote in a field that does not begin with one is content
- `detect_mark`: `true`, a byte order mark of UTF-8 is skipped, and one of UTF-16 is an error
"""
function Csv(; options...)
    check_options(:Csv, options, csv_options)
    dialect = join(("$(option === :quotechar ? :quote : option)=$(csv_value(option, value))" for (option, value) in pairs(options)), " ")
    shown = join(("$option = $(repr(value))" for (option, value) in pairs(options)), ", ")
    framer(isempty(shown) ? "Csv()" : "Csv(; $shown)", dialect) do out
        @call millstream_framer_csv(dialect, out)
    end
end

const csv_options = (:delimiter, :quotechar, :escape, :doubled_quotes, :comment, :line_end, :blank_records, :literal_quotes, :detect_mark)

# The value of an option as the library parses it.
function csv_value(option, value)
    if option === :line_end
        return value in (:any, :lf, :crlf, :cr) ? value : wrong(option, value, "one of :any, :lf, :crlf, :cr")
    elseif option in (:delimiter, :quotechar, :escape, :comment)
        value === nothing && option !== :delimiter && return "none"
        is_byte = value isa UInt8 || value isa AbstractChar && isascii(value)
        return is_byte ? string(UInt8(value); base = 16, pad = 2) : wrong(option, value, "an ASCII character or a UInt8")
    end
    value isa Bool ? (value ? "on" : "off") : wrong(option, value, "true or false")
end
