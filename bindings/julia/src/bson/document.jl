# Reads one member of a file at a time.

"""
    Document(io[, T]; mmap = false, allow_code = false)

The document in `io`, each member of which is read on access: `doc[:key]` as a `T`, `doc[S, :key]` as an `S`.

It scans the document once to find its members and does not cache values: two lookups return two objects. Iteration and
`Dict(doc)` read all members. With `mmap = true`, arrays are part of the memory of an `IOBuffer`, which then must not be
changed.

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:name => "run", :loss => [0.5, 0.25]));

julia> doc = BSON.Document(seekstart(io));

julia> doc[Vector{Float32}, :loss]
2-element Array{Float32,1}:
 0.5
 0.25
```
"""
struct Document{T}
    bytes::Vector{UInt8}
    offset::Int
    len::Int
    keeper::Any
    ctx::ParseCtx
    # The type and the position of each member's payload.
    members::Dict{Symbol,Tuple{UInt8,Int}}
    # The keys in the order of the file.
    order::Vector{Symbol}
end

function Document(io::IO, ::Type{T} = Any, ctx::Union{Nothing,ParseCtx} = nothing; mmap::Bool = false, kws...) where {T}
    source = mmap ? mapped(io) : io isa IOStream ? invoke(copied, Tuple{IO}, io) : copied(io)
    bytes, offset, len, keeper = source
    made = Document{T}(bytes, offset, len, keeper, something(ctx, ParseCtx(; kws...)), Dict(), [])
    attempts(r -> index!(made, r), bytes, offset, len, made.ctx, nothing, nothing)
    made
end

function index!(doc::Document, r::Reading)
    outer = enter(r)
    while true
        key = r.pos + 1
        kind = next(r)
        kind == 0x00 && break
        len = r.pos - 1 - key
        if !is_backrefs(r, key, len)
            name = symbol_at(r, key, len)
            haskey(doc.members, name) || push!(doc.order, name)
            # For duplicate keys, the last value counts, as in a dictionary.
            doc.members[name] = (kind, r.pos)
        end
        skip(r, kind)
    end
    leave(r, outer)
end

Base.getindex(doc::Document{T}, key::Symbol) where {T} = doc[T, key]

function Base.getindex(doc::Document, ::Type{T}, key::Symbol) where {T}
    kind, at = doc.members[key]
    x = attempts(doc.bytes, doc.offset, doc.len, doc.ctx, doc.keeper, nothing) do r
        r.pos, r.stop = at, r.end_
        value(r, kind, T)
    end
    x::T
end

Base.haskey(doc::Document, key::Symbol) = haskey(doc.members, key)
Base.keys(doc::Document) = doc.order
Base.length(doc::Document) = length(doc.order)
Base.eltype(::Type{Document{T}}) where {T} = Pair{Symbol,T}

function Base.iterate(doc::Document, i = 1)
    i > length(doc.order) && return nothing
    (doc.order[i] => doc[doc.order[i]], i + 1)
end

Base.Dict(doc::Document{T}) where {T} = Dict{Symbol,T}(key => doc[key] for key in doc.order)

Base.show(io::IO, doc::Document) = (print(io, "Document("); join(io, map(repr, doc.order), ", "); print(io, ")"))

function Base.show(io::IO, ::MIME"text/plain", doc::Document{T}) where {T}
    print(io, "Document{", T, "} with ", length(doc.order), length(doc.order) == 1 ? " member" : " members")
    isempty(doc.order) || print(io, ": ")
    join(io, map(repr, doc.order), ", ")
end
