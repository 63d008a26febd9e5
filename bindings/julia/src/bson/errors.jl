# Errors: one type, with the codes of the core's table (crates/core/src/error.rs).

"""
An error in a file, or in a value to be written.

`code` and `name` are the same in every language of Millstream: 25 `document_invalid`, 26 `document_truncated`, 27
`too_deep`, 28 `key_missing`, 29 `shape_mismatch`, 30 `value_out_of_range`, 32 `julia_invalid`, 33 `memory_limit`. `offset` is the byte of
the document, or -1.

```jldoctest
julia> try BSON.load(IOBuffer([0x06, 0x00])) catch e; e.name end
:document_truncated
```
"""
struct BSONError <: Exception
    code::Int
    name::Symbol
    found::String
    expected::String
    offset::Int
end

function Base.showerror(io::IO, e::BSONError)
    print(io, "BSON: found ", e.found, ", expected ", e.expected)
    e.offset >= 0 && print(io, ", at byte ", e.offset)
end

problem(code, name, found, expected, at) = throw(BSONError(code, name, string(found), string(expected), at))

@noinline broken(found, expected, at) = problem(25, :document_invalid, found, expected, at)
@noinline truncated(found, expected, at) = problem(26, :document_truncated, found, expected, at)
@noinline too_deep(found, expected, at = -1) = problem(27, :too_deep, found, expected, at)
@noinline mismatched(found, expected, at) = problem(29, :shape_mismatch, found, expected, at)
@noinline unwritable(found, expected) = problem(30, :value_out_of_range, found, expected, -1)
@noinline invalid(found, expected, at) = problem(32, :julia_invalid, found, expected, at)
@noinline limited(found, expected, at) = problem(33, :memory_limit, found, expected, at)
