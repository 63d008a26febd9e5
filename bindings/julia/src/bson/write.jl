# Writes values to a document that BSON.jl can load. Every shared object gets one entry in `_backrefs`, which is the
# last member, and a backref wherever it is used. The length of a document is filled in when it is closed.

"""
    bson(path, doc::AbstractDict)
    bson(io, doc::AbstractDict)
    bson(path; kws...)

Writes a dictionary of values, or the keyword arguments, to a file that [`load`](@ref), BSON.jl and the core can read. The
path can be the URL of an object or a `Millstream.Remote`.

The dictionary is not modified. Before writing, everything is checked: a document must be smaller than 2 GiB, its keys
must not contain a NUL, and the dictionary must not contain itself. Other objects may be shared or contain each other.
Pointers are written as null. Large arrays of bits are aligned, so that they can be mapped.

```jldoctest
julia> path = tempname(); bson(path, name = "run", steps = [1, 2, 3]);

julia> sort(collect(keys(BSON.load(path))))
2-element Array{Symbol,1}:
 :name
 :steps
```
"""
bson(io::IO, doc::AbstractDict) = send(io, written(doc))

function bson(path::Union{AbstractString,Remote}, doc::AbstractDict)
    # This is done before the file is opened, because opening empties it.
    w = written(doc)
    to = resolved(path)
    # Like a file, an object is not compressed.
    to isa Remote ? Writer(io -> send(io, w), to; encode = :off) : open(io -> send(io, w), to, "w")
end

bson(path::Union{AbstractString,Remote}; kws...) = bson(path, Dict{Symbol,Any}(kws))

function written(doc)
    w = Writing()
    survey!(w, doc)
    get(w.met, doc, ONCE) == ONCE || unwritable("a dictionary that is part of itself", "one that is a member of another")
    kind = body(w, doc, true)
    kind == DOCUMENT || unwritable("a root that is written as " * kind_name(kind), "a dictionary")
    w
end

function send(io::IO, w::Writing)
    from = 0
    for (at, xs) in w.lent
        GC.@preserve w unsafe_write(io, pointer(w.out) + from, at - from)
        GC.@preserve xs unsafe_write(io, Ptr{UInt8}(pointer(xs)), sizeof(xs))
        from = at
    end
    GC.@preserve w unsafe_write(io, pointer(w.out) + from, w.len - from)
    nothing
end

# ---- bytes ----

# Reserves space for this many more bytes. All `put`s write into reserved space.
@inline function ensure_space!(w::Writing, count)
    w.len + count <= length(w.out) || resize!(w.out, max(2length(w.out), w.len + count))
    nothing
end

@inline function put(w::Writing, x::T) where {T<:Union{UInt8,Int32,Int64,Float64}}
    ensure_space!(w, sizeof(T))
    # There is enough space.
    GC.@preserve w unsafe_store!(Ptr{T}(pointer(w.out) + w.len), htol(x))
    w.len += sizeof(T)
    nothing
end

function put_from(w::Writing, from::Ptr, count)
    ensure_space!(w, count)
    GC.@preserve w unsafe_copyto!(pointer(w.out) + w.len, Ptr{UInt8}(from), count)
    w.len += count
    nothing
end

put_text(w::Writing, text::String) = GC.@preserve text put_from(w, pointer(text), sizeof(text))
put_text(w::Writing, name::Symbol) =
    GC.@preserve name put_from(w, Base.unsafe_convert(Ptr{UInt8}, name), sizeof(name))

total(w::Writing) = w.len + w.lent_len

# A document whose length is not known yet: the position of the length, and the start of the document.
function open_document!(w::Writing)
    start = (w.len, total(w))
    put(w, Int32(0))
    start
end

function close_document!(w::Writing, (at, start))
    put(w, 0x00)
    len = length_of(total(w) - start)
    GC.@preserve w unsafe_store!(Ptr{Int32}(pointer(w.out) + at), htol(len))
    nothing
end

length_of(len) = len <= typemax(Int32) ? Int32(len) : unwritable("$len bytes", "fewer than 2 GiB in a document")

# Writes an element: its type, which is known only after the payload is written, its key, and its payload.
@inline function element(payload, w::Writing, key)
    at = w.len + 1
    put(w, 0x00)
    put_key(w, key)
    kind = payload()::UInt8
    w.out[at] = kind
    nothing
end

function put_key(w::Writing, key::Union{Symbol,String})
    put_text(w, key)
    put(w, 0x00)
end

# Handles a member whose type has user-defined methods.
function put_member_key(w::Writing, key::Symbol)
    put_key(w, key)
end

function put_key(w::Writing, index::Int)
    count = ndigits(index)
    ensure_space!(w, count + 1)
    for i in count:-1:1
        index, digit = divrem(index, 10)
        w.out[w.len+i] = UInt8('0') + digit
    end
    w.len += count
    put(w, 0x00)
end

function put_string(w::Writing, text)
    put(w, length_of(sizeof(text) + 1))
    put_text(w, text)
    put(w, 0x00)
    STRING
end

put_member(w::Writing, key, text::String) = element(() -> put_string(w, text), w, key)

# ---- values ----

payload(w::Writing, ::Nothing) = NULL
payload(w::Writing, x::Bool) = (put(w, UInt8(x)); BOOLEAN)
payload(w::Writing, x::Int32) = (put(w, x); INT32)
payload(w::Writing, x::Int64) = (put(w, x); INT64)
payload(w::Writing, x::Float64) = (put(w, x); DOUBLE)
payload(w::Writing, x::String) = put_string(w, x)

function payload(w::Writing, x::Symbol)
    start = open_document!(w)
    put_member(w, "tag", "symbol")
    element(() -> put_string(w, x), w, "name")
    close_document!(w, start)
    DOCUMENT
end

function payload(w::Writing, @nospecialize(x))
    x isa Simple && return payload(w, x)
    # Writes them in full wherever they are used, because the survey does not examine them.
    x isa Union{TypeVar,Core.TypeName} && return put_backref(w, x, get(w.met, x, 0))
    if has_identity(x)
        met = get(w.met, x, 0)
        (met == OFTEN || met > 0) && return put_backref(w, x, met)
    end
    w.stack_left == 0 && return on_new_stack(() -> payload(w, x), w)::UInt8
    w.stack_left -= 1
    kind = body(w, x, false)
    w.stack_left += 1
    kind
end

function put_backref(w::Writing, @nospecialize(x), number)
    if number <= 0
        push!(w.order, x)
        number = w.met[x] = length(w.order)
    end
    start = open_document!(w)
    put_member(w, "tag", "backref")
    element(() -> (put(w, Int64(number)); INT64), w, "ref")
    close_document!(w, start)
    DOCUMENT
end

# Writes the value itself, whether it is shared or not.
function body(w::Writing, @nospecialize(x), is_root)
    p = plan(w, typeof(x))
    if p == by_lower
        given = given_for(w, x, p)
        given === x || return payload(w, given)
        # If the result is the object itself, it is written as if there were no method.
        p = plan_of_primitive(x)
    end
    p == by_array && return put_array(w, x)
    start = open_document!(w)
    if p == by_symbols
        for (key, member) in x
            key === :_backrefs && is_root && unwritable("the key \"_backrefs\" in the root", "another key")
            element(() -> payload(w, member), w, key)
        end
    elseif p == by_tuple
        put_member(w, "tag", "tuple")
        put_list(w, "data", x)
    elseif p == by_type
        put_type(w, x)
    elseif p == by_module
        put_member(w, "tag", "ref")
        put_names(w, "path", module_path(x))
    elseif x isa Core.SimpleVector
        put_member(w, "tag", "svec")
        put_list(w, "data", x)
    else
        put_struct(w, x, p)
    end
    is_root && put_shared(w)
    close_document!(w, start)
    DOCUMENT
end

plan_of_primitive(x) = x isa BSONDict ? by_symbols : x isa Union{BSONArray,Vector{UInt8}} ? by_array :
    unwritable("a value of type $(type_name(typeof(x))) that `lower` returns unchanged", "a type that BSON has")

function put_shared(w::Writing)
    isempty(w.order) && return
    element(w, "_backrefs") do
        start = open_document!(w)
        n = 0
        # More may be added in the meantime.
        while n < length(w.order)
            x = w.order[n+1]
            element(() -> body(w, x, false), w, n)
            n += 1
        end
        close_document!(w, start)
        ARRAY
    end
end

# Writes the elements of an iterable as an array.
function put_list(w::Writing, key, xs)
    element(w, key) do
        start = open_document!(w)
        n = 0
        for x in xs
            element(() -> payload(w, x), w, n)
            n += 1
        end
        close_document!(w, start)
        ARRAY
    end
end

function put_struct(w::Writing, @nospecialize(x), p)
    T = typeof(x)
    put_member(w, "tag", "struct")
    put_type_member(w, T)
    if p == by_bits
        put_bits(w, x)
    elseif p == by_dictionary
        put_list(w, "data", (collect(keys(x)), collect(values(x))))
    elseif p == by_structdata
        given = given_for(w, x, p)
        given isa Vector{UInt8} ? element(() -> put_binary(w, given), w, "data") : put_list(w, "data", given)
    else
        element(() -> put_fields(w, x), w, "data")
    end
end

function put_fields(w::Writing, @nospecialize(x))
    start = open_document!(w)
    count = nfields(x)
    # In an immutable value, only the last fields can be missing.
    while count > 0 && !isdefined(x, count) && !is_mutable(typeof(x))
        count -= 1
    end
    for i in 1:count
        field = isdefined(x, i) ? getfield(x, i) : Undef()
        element(() -> payload(w, field), w, i - 1)
    end
    close_document!(w, start)
    ARRAY
end

# Writes the bytes of a value of a primitive type.
function put_bits(w::Writing, x::T) where {T}
    element(w, "data") do
        put(w, Int32(sizeof(T)))
        put(w, 0x00)
        box = Ref(T <: Ptr ? reinterpret(T, C_NULL) : x)
        GC.@preserve box put_from(w, Base.unsafe_convert(Ptr{T}, box), sizeof(T))
        BINARY
    end
end

function put_binary(w::Writing, bytes::Vector{UInt8})
    put(w, length_of(sizeof(bytes)))
    put(w, 0x00)
    put_memory(w, bytes)
    BINARY
end

# Smaller arrays are copied.
const LEAST_LENT = 1 << 16

function put_memory(w::Writing, xs::Array)
    if sizeof(xs) >= LEAST_LENT
        push!(w.lent, (w.len, xs))
        w.lent_len += sizeof(xs)
        length_of(total(w))
    else
        GC.@preserve xs put_from(w, pointer(xs), sizeof(xs))
    end
    nothing
end

# ---- arrays ----

function put_array(w::Writing, @nospecialize(xs))
    T = eltype(xs)
    xs isa Vector{UInt8} && return put_binary(w, xs)
    start = open_document!(w)
    if ndims(xs) == 1 && !isbitstype(T)
        put_elements(w, xs)
        close_document!(w, start)
        return ARRAY
    end
    put_member(w, "tag", "array")
    put_type_member(w, T)
    if isbitstype(T)
        put_bits_array(w, xs)
    else
        put_size(w, size(xs), 0)
        element(w, "data") do
            inner = open_document!(w)
            put_elements(w, xs)
            close_document!(w, inner)
            ARRAY
        end
    end
    close_document!(w, start)
    DOCUMENT
end

function put_elements(w::Writing, xs::Array)
    n = 0
    for i in eachindex(xs)
        x = isassigned(xs, i) ? xs[i] : Undef()
        element(() -> payload(w, x), w, n)
        n += 1
    end
end

# The alignment of a mapped array.
const ALIGNMENT = 16

function put_bits_array(w::Writing, xs::Array{T}) where {T}
    has_pointer(T) && !(T <: Ptr) && unwritable("an array of structs with pointers", "values that are meaningful in another process")
    # Zeros before the key `size`, which readers ignore, move the bytes to a position at which they can be mapped.
    size_len = 10 + mapreduce(n -> 10 + ndigits(n), +, 0:ndims(xs)-1; init = 0) + 1
    padding = sizeof(xs) >= LEAST_MAPPED ? mod(-(total(w) + size_len + 11), ALIGNMENT) : 0
    put_size(w, size(xs), padding)
    element(w, "data") do
        put(w, length_of(sizeof(xs)))
        put(w, 0x00)
        if T <: Ptr
            put_memory(w, fill(reinterpret(T, C_NULL), size(xs)))
        else
            put_memory(w, Base.datatype_haspadding(T) ? without_padding(xs) : xs)
        end
        BINARY
    end
end

function put_size(w::Writing, dims, padding)
    element(w, "size") do
        start = open_document!(w)
        for (i, n) in enumerate(dims)
            put(w, INT64)
            for _ in 1:(i == 1 ? padding : 0)
                put(w, UInt8('0'))
            end
            put_key(w, i - 1)
            put(w, Int64(n))
        end
        close_document!(w, start)
        ARRAY
    end
end

# Writes the values with zeros between the fields, where memory would have arbitrary bytes.
function without_padding(xs::Array{T}) where {T}
    to = similar(xs)
    GC.@preserve xs to begin
        from, into = Ptr{UInt8}(pointer(xs)), Ptr{UInt8}(pointer(to))
        ccall(:memset, Ptr{Cvoid}, (Ptr{Cvoid}, Cint, Csize_t), into, 0, sizeof(xs))
        parts = bit_parts(T, 0)
        for i in 0:length(xs)-1, (at, len) in parts
            unsafe_copyto!(into + i * sizeof(T) + at, from + i * sizeof(T) + at, len)
        end
    end
    to
end

# The positions and lengths of the bytes that a bits value uses.
function bit_parts(@nospecialize(T), at)
    isprimitivetype(T) && return [(at, sizeof(T))]
    parts = Tuple{Int,Int}[]
    for i in 1:fieldcount(T)
        append!(parts, bit_parts(fieldtype(T, i), at + Int(fieldoffset(T, i))))
    end
    parts
end

# ---- types ----

function module_path(m::Module)
    names = Symbol[nameof(m)]
    while parentmodule(m) !== m
        m = parentmodule(m)
        pushfirst!(names, nameof(m))
    end
    names
end

function put_names(w::Writing, key, names)
    element(w, key) do
        start = open_document!(w)
        for (i, name) in enumerate(names)
            element(() -> put_string(w, name), w, i - 1)
        end
        close_document!(w, start)
        ARRAY
    end
end

# Writes the member `type` of a struct or an array. A type's bytes are cached, because they occur repeatedly.
function put_type_member(w::Writing, @nospecialize(T))
    element(w, "type") do
        bytes = get(w.types, T, nothing)
        if bytes === nothing
            at = w.len
            kind = payload(w, T)
            w.types[T] = w.out[at+1:w.len]
            kind
        else
            GC.@preserve bytes put_from(w, pointer(bytes), length(bytes))
            DOCUMENT
        end
    end
end

function put_type(w::Writing, @nospecialize(T))
    if T === Union{}
        put_member(w, "tag", "jl_bottom_type")
    elseif T isa Union
        put_member(w, "tag", "struct")
        put_type_member(w, Union)
        put_list(w, "data", (T.a, T.b))
    elseif T isa UnionAll
        put_member(w, "tag", "unionall")
        element(() -> payload(w, T.var), w, "var")
        element(() -> payload(w, T.body), w, "body")
    elseif is_anonymous(T)
        put_anonymous(w, T)
    else
        put_member(w, "tag", "datatype")
        put_names(w, "name", T === Undef ? [:BSON, :Undef] : [module_path(T.name.module); T.name.name])
        put_list(w, "params", T.parameters)
    end
end
