# Values whose parts must be consistent, and values that other code builds.

function special(r::Reading, entry::TypeEntry, t::Tagged, object)
    form, T = entry.form, entry.type
    if form == DICTIONARY
        dictionary(r, T, t, object)
    elseif form == BIT_ARRAY
        bit_array(r, T, t)
    elseif form == UNION
        parts = list(r, t, "struct")
        all(p -> p isa Type || p isa TypeVar, parts) || invalid("a Union with other parts", "types", t.data)
        made = Union{parts...}
        type_size(made, LARGEST_TYPE) > 0 ? made : limited("a type of more than $LARGEST_TYPE parts", "fewer", t.data)
    elseif form == TYPE_VARIABLE
        parts = list(r, t, "struct")
        is_bound(p) = p isa Type || p isa TypeVar
        length(parts) == 3 && parts[1] isa Symbol && is_bound(parts[2]) && is_bound(parts[3]) ||
            invalid("a TypeVar with other parts", "a symbol and two types", t.data)
        TypeVar(parts...)
    elseif form == CUSTOM
        custom(r, T, t, object)
    elseif form == CODE
        code_value(r, T, t, object)
    else
        checked(r, T, t)
    end
end

# Uses the user-defined methods for the type.
function custom(r::Reading, @nospecialize(T), t, object)
    x = Base.invokelatest(initstruct, T)
    object === nothing || open!(object, x)
    parts = if t.data_kind == BINARY
        r.pos = t.data
        Any[bytes_value(r, bytes_here(r)...)]
    else
        list(r, t, "struct")
    end
    Base.invokelatest(newstruct!, x, parts...)
end

function dictionary(r::Reading, @nospecialize(T), t, object)
    t.data_kind == ARRAY || fields_missing(T, t)
    # Julia compiles code for each type of dictionary, and a file may have any number of types.
    if !has_code(T)
        r.dictionaries_left > 0 || limited("dictionaries of too many types", "fewer types for a file of its size", t.data)
        r.dictionaries_left -= 1
        lock(() -> compiled[T] = nothing, compiled_lock)
    end
    d = initstruct(T)
    object === nothing || open!(object, d)
    r.pos = t.data
    outer = enter(r)
    parts = Any[]
    for E in (keytype(T), valtype(T))
        kind = next(r)
        kind == 0x00 && break
        push!(parts, value(r, kind, Any))
    end
    next(r) == 0x00 && length(parts) == 2 && parts[1] isa Vector && parts[2] isa Vector && length(parts[1]) == length(parts[2]) ||
        invalid("a dictionary with other parts", "a vector of keys and an equally long vector of values", t.data)
    leave(r, outer)
    try
        fill_dictionary!(d, parts[1], parts[2])
    catch e
        e isa InterruptException && rethrow()
        mismatched("a key or a value that a $(type_name(T)) cannot have", "others", t.data)
    end
end

function fill_dictionary!(d, ks::Vector, vs::Vector)
    sizehint!(d, length(ks))
    for i in eachindex(ks)
        d[ks[i]] = vs[i]
    end
    d
end

# The sizes of a vector are arbitrary bytes.
function bit_array(r::Reading, ::Type{BitArray{N}}, t) where {N}
    parts = list(r, t, "struct")
    bad(found) = invalid(found, "a BitArray's chunks, its length and its sizes", t.data)
    length(parts) == 3 || bad("$(length(parts)) parts")
    chunks, len, dims = parts
    chunks isa Vector{UInt64} || bad("chunks that are not of 64 bits")
    len isa Union{Int32,Int64} && 0 <= len <= 64 * length(chunks) && length(chunks) == cld(len, 64) ||
        bad("a length that does not match its chunks")
    if N == 1
        dims = (len,)
    else
        dims isa NTuple{N,Union{Int32,Int64}} && all(>=(0), dims) && count_of(dims, t.data) == len ||
            bad("sizes that do not match its length")
    end
    bits = BitArray{N}(undef, Int.(dims))
    copyto!(bits.chunks, chunks)
    # Bits after the last one must be zero; Julia relies on this.
    len % 64 == 0 || (bits.chunks[end] &= typemax(UInt64) >> (64 - len % 64))
    bits
end

# Types of Base that trust what their constructors have checked.
const CHECKED_TYPES = Any[SubString, SubArray, Base.ReshapedArray, Base.ReinterpretArray, Base.GenericIOBuffer, Regex]

is_checked(@nospecialize(T)) = any(C -> T <: C, CHECKED_TYPES)

# Calls the constructors with the same parts.
function checked(r::Reading, @nospecialize(T), t)
    parts = list(r, t, "struct")
    x = try
        rebuilt(T, parts)
    catch e
        e isa Union{InterruptException,BSONError} && rethrow()
        nothing
    end
    x isa T ? x : invalid("parts of a $(type_name(T)) that do not fit together", "matching parts", t.data)
end

rebuilt(::Type{<:SubString}, p) = (n = p[2] + p[3]; SubString(p[1], p[3] == 0 ? 1 : p[2] + 1, p[3] == 0 ? 0 : thisind(p[1], n)))
rebuilt(::Type{<:SubArray}, p) = view(p[1], p[2]...)
rebuilt(::Type{<:Base.ReshapedArray}, p) = Base.ReshapedArray(p[1], check_count(p[1], p[2]), p[3])
rebuilt(::Type{<:Base.ReinterpretArray{T}}, p) where {T} = reinterpret(T, p[1])
rebuilt(::Type{Regex}, p) = p[2] isa Integer && p[3] isa Integer ? Regex(p[1], p[2], p[3]) : nothing
function rebuilt(::Type{T}, p) where {T<:Base.GenericIOBuffer}
    data, readable, writable, seekable, append, size, maxsize, ptr, mark = p
    data isa Vector{UInt8} && 0 <= size <= length(data) && size <= maxsize && 1 <= ptr && mark <= size || return nothing
    io = T(data, readable, writable, seekable, append, maxsize)
    io.size, io.ptr, io.mark = size, ptr, mark
    io
end

check_count(parent, dims) = prod(dims) == length(parent) && all(>=(0), dims) ? dims : throw(DimensionMismatch("sizes"))
