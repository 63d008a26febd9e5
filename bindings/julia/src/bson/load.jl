# Reading files, with the names of BSON.jl and BSONqs.

"""
    load(source[, mod]; mmap = false, allow_code = false)

Returns the values in a file as a dictionary with symbol keys. `source` is a path, a URL of an object or a
`Millstream.Remote`, or an `IO`, from which one document is read.

Types are looked up in `mod` first, then in `Main`, `Base` and the loaded packages; values are created without calling
their constructors. A vector whose element type the format lost gets the common type of its elements. With `mmap =
true`, large arrays of bits are not copied: they are private views of the file if they are aligned there (always in
files written by this package); no process may truncate the file while it is mapped.

Throws a [`BSONError`](@ref) if a file is damaged or contains a name that is not defined; functions, closures, modules
and other bindings also count as undefined unless `allow_code = true`.

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:a => [1 + 2im, 3 - 1im], :b => "text"));

julia> BSON.load(seekstart(io))[:a]
2-element Array{Complex{Int64},1}:
 1 + 2im
 3 - 1im
```
"""
load(x, modules::Module...; mmap::Bool = false, kws...) = parse(x, ParseCtx(modules...; kws...); mmap = mmap)

"""
    load_compat(source[, mod]; kws...)

Like [`load`](@ref), but vectors without an element type in the file are `Vector{Any}`, as in BSON.jl.

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:names => ["a", "b"]));

julia> BSON.load_compat(seekstart(io))[:names]
2-element Array{Any,1}:
 "a"
 "b"
```
"""
load_compat(x, modules::Module...; mmap::Bool = false, kws...) = parse(x, ParseCtx(modules...; narrow = false, kws...); mmap = mmap)

"""
    parse(source)
    parse(source, ctx::ParseCtx; mmap = false)

Without a context, returns the tree of a file without conversion to Julia types: dictionaries, vectors, and BSON's own
values. With a context, returns the values, like [`load`](@ref).

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:s => :text));

julia> BSON.parse(seekstart(io))[:s][:tag]
"symbol"
```
"""
parse(x::Union{IO,AbstractString,Remote}; mmap::Bool = false) =
    with_reading(r -> branch(r, DOCUMENT, nothing, true), x, ParseCtx(), mmap)

function parse(x::Union{IO,AbstractString,Remote}, ctx::ParseCtx; mmap::Bool = false)
    with_reading(x, ctx, mmap) do r
        document(r, Any, nothing, true)
    end
end

"""
    roundtrip(x, flags...)

Writes `x` and reads it back: with `:compat` by [`load_compat`](@ref), with `:set_root_type` as the type of `x`.

Functions are restored as well, because it reads only what it has just written.

```jldoctest
julia> BSON.roundtrip((1, "two", [3.0]))
(1, "two", [3.0])
```
"""
function roundtrip(x, flags::Symbol...)
    io = IOBuffer()
    bson(io, Dict(:stuff => x))
    seekstart(io)
    ctx = ParseCtx(allow_code = true, narrow = !(:compat in flags))
    :set_root_type in flags ? Document(io, typeof(x), ctx)[:stuff] : parse(io, ctx)[:stuff]
end
