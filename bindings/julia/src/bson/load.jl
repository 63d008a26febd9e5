# Reading files, with the names of BSON.jl and BSONqs.

"""
    load(source[, mod]; mmap = false, allow_code = false)

The values in a file: a dictionary with symbol keys. `source` is a path or an `IO`, from which one document is read.

Types are looked up in `mod` first, then in `Main`, `Base` and the loaded packages; values are made without calling
their constructors. A vector whose element type the format lost gets the common type of its elements. With `mmap =
true`, large arrays of bits are not copied: they are private views of the file if they are aligned there (always in
files written by this package); no process may truncate the file meanwhile.

Throws a [`BSONError`](@ref) for a file that is damaged, or names something that is not defined here; functions,
closures, modules and other bindings also count as undefined unless `allow_code = true`.

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

Without a context: the tree of a file before types are raised: dictionaries, vectors, and BSON's own values. With one:
the values, like [`load`](@ref).

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:s => :text));

julia> BSON.parse(seekstart(io))[:s][:tag]
"symbol"
```
"""
parse(x::Union{IO,AbstractString}; mmap::Bool = false) =
    with_reading(r -> branch(r, DOCUMENT, nothing, true), x, ParseCtx(), mmap)

function parse(x::Union{IO,AbstractString}, ctx::ParseCtx; mmap::Bool = false)
    with_reading(x, ctx, mmap) do r
        document(r, Any, nothing, true)
    end
end

"""
    roundtrip(x, flags...)

`x` written and read back: with `:compat` by [`load_compat`](@ref), with `:set_root_type` as the type that `x` has.

It reads only what it has just written, so functions are restored as well.

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
