# Reads one value of a MongoDB document as a given type, without decoding the rest of the document.

const Key = Union{AbstractString,Symbol}

"""
    get_path(T, document, keys...)

Returns the value at the end of a key path as a `T`, or `nothing` if there is none. `document` contains the bytes of a
MongoDB document, as for [`decode`](@ref), and only this value is decoded. In arrays the keys are positions, and the
first is "0".

```jldoctest
julia> document = BSON.encode((name = "run", scores = [1, 2.5], runs = [(loss = 0.5,), (loss = 0.25,)]));

julia> BSON.get_path(Vector{Float64}, document, "scores")
2-element Array{Float64,1}:
 1.0
 2.5

julia> BSON.get_path(Float64, document, "runs", "1", "loss")
0.25
```

| `T` | BSON |
|---|---|
| an integer or floating-point type | a number of any type with exactly this value; a `Float32` or `Float16` is rounded |
| `Vector{T}` | an array of values of `T`; if `T` is a number type, also a binary that contains such numbers |
| `Union{T,Missing}`, `Union{T,Nothing}` | a value of `T`, or null |
| `Any`, or a type that [`decode`](@ref) returns, such as `Map` | a value of this type |

It throws a [`BSONError`](@ref): `:shape_mismatch` for a value of another type, `:value_out_of_range` for a number that a
`T` cannot represent.
"""
get_path(::Type{T}, document, keys::Key...) where {T} = value_along(() -> nothing, T, document, keys)

"""
    require_path(T, document, keys...)

Like [`get_path`](@ref), for a value that must exist; otherwise the [`BSONError`](@ref) is `:key_missing`.

    for order in eachrecord("dump/shop/orders.bson.gz", Documents())
        total += sum(BSON.require_path(Vector{Float64}, order, "amounts"))
    end
"""
require_path(::Type{T}, document, keys::Key...) where {T} = value_along(() -> no_value(keys), T, document, keys)

@noinline no_value(keys) = problem(28, :key_missing, "no value", "one at " * join(keys, "."), -1)

# Returns the value at the end of a path, or what `otherwise` returns.
function value_along(otherwise, ::Type{T}, document::Bytes, keys) where {T}
    GC.@preserve document begin
        walk = Walk(pointer(document), 0, length(document), 0)
        kind = follow(walk, keys)
        kind == 0x00 ? otherwise() : read_as(T, walk, kind)
    end
end

value_along(otherwise, ::Type{T}, document::String, keys) where {T} =
    value_along(otherwise, T, codeunits(document), keys)
value_along(otherwise, ::Type{T}, document::AbstractVector{UInt8}, keys) where {T} =
    value_along(otherwise, T, Vector{UInt8}(document), keys)

# Moves to the payload of the value at the end of a path. Returns its type, or 0 if there is none.
function follow(walk::Walk, keys)
    kind = DOCUMENT
    for key in keys
        kind == DOCUMENT || kind == ARRAY || return 0x00
        enter(walk)
        name = String(key)
        kind = kind == DOCUMENT ? seek_key(walk, codeunits(name)) : seek_position(walk, tryparse(Int, name))
        kind == 0x00 && return kind
    end
    kind
end

function seek_key(walk, key)
    while true
        at = walk.pos + 1
        kind = next(walk)
        kind == 0x00 && return kind
        len = walk.pos - 1 - at
        len == length(key) && all(i -> byte(walk, at + i - 1) == key[i], 1:len) && return kind
        pass(walk, kind)
    end
end

function seek_position(walk, position)
    left = something(position, -1)
    while left >= 0
        kind = next(walk)
        (kind == 0x00 || left == 0) && return kind
        pass(walk, kind)
        left -= 1
    end
    0x00
end

# Moves past a value of any type.
function pass(walk, kind)
    if haskey(KIND_SIZES, kind) || kind in (STRING, DOCUMENT, ARRAY, BINARY)
        skip(walk, kind)
    else
        read_value(walk, kind)
    end
    nothing
end

# ---- values of a type ----

function read_as(::Type{T}, walk::Walk, kind) where {T}
    if kind == NULL && T !== Any
        Missing <: T && return missing
        Nothing <: T && return nothing
    end
    T isa Union && return read_as(Union{filter(S -> !(S in (Missing, Nothing)), Base.uniontypes(T))...}, walk, kind)
    at = walk.pos
    value = read_value(walk, kind)
    value isa T || mismatched(kind_name(kind), "a value of type $T", at)
    value
end

function read_as(::Type{T}, walk::Walk, kind) where {T<:Base.BitInteger}
    at = walk.pos
    value = kind == INT32 ? Int64(read_bits(walk, Int32)) :
        kind == INT64 ? read_bits(walk, Int64) :
        kind == DOUBLE ? read_bits(walk, Float64) : mismatched(kind_name(kind), "a number", at)
    isinteger(value) && typemin(T) <= value <= typemax(T) || does_not_fit(value, T, at)
    T(value)
end

function read_as(::Type{T}, walk::Walk, kind) where {T<:Base.IEEEFloat}
    kind == DOUBLE && return T(read_bits(walk, Float64))
    kind == INT32 && return T(Float64(read_bits(walk, Int32)))
    at = walk.pos
    kind == INT64 || mismatched(kind_name(kind), "a number", at)
    value = read_bits(walk, Int64)
    Float64(value) == value || does_not_fit(value, Float64, at)
    T(Float64(value))
end

@noinline does_not_fit(value, T, at) =
    problem(30, :value_out_of_range, string(value), "a number that $T represents exactly", at)

function read_as(::Type{Vector{T}}, walk::Walk, kind) where {T}
    kind == BINARY && T <: Union{Base.BitInteger,Base.IEEEFloat} && return read_numbers(T, walk)
    kind == ARRAY || mismatched(kind_name(kind), "an array", walk.pos)
    values = T[]
    read_members((_, _, kind) -> push!(values, read_as(T, walk, kind)), walk)
    values
end

function read_numbers(::Type{T}, walk) where {T}
    at = walk.pos
    from, len = bytes_here(walk)
    len % sizeof(T) == 0 || mismatched("a binary of $len bytes", "a multiple of $(sizeof(T))", at)
    T[load(walk, T, from + i * sizeof(T)) for i in 0:div(len, sizeof(T))-1]
end
