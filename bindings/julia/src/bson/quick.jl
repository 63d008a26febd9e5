# Code for each type, which the compiler makes: what is common and right, without a look-up or an allocation for each field.
# What it cannot decide it leaves to the careful way, which reads the same bytes again and knows the errors.

"What reads the fields of a `T`: found with the type, so that one call leads to the code for it."
struct Loader{T} end

"The answer of `attempt` where the careful way has to go on; nothing has been passed."
struct NotQuick end

# A type with more parts is not worth the compiler's time.
const LARGEST_COMPILED = 100

# The types that have code already: later files need no patience.
const compiled = IdDict{Any,Nothing}()
const compiled_lock = ReentrantLock()

has_code(@nospecialize(T)) = lock(() -> haskey(compiled, T), compiled_lock)

# The loader of a type, or nothing: not every type is worth one, and a file cannot ask for any number of them.
@noinline function loader_of(r::Reading, entry::TypeEntry)
    entry.loader === nothing || return entry.loader === NotQuick() ? nothing : entry.loader
    T = entry.type
    if fieldcount(T) <= LARGEST_COMPILED && type_size(T, LARGEST_COMPILED) > 0 && r.compile_left > 0
        r.compile_left -= 1
        lock(() -> compiled[T] = nothing, compiled_lock)
        entry.loader = Loader{T}()
    else
        entry.loader = NotQuick()
        nothing
    end
end

# The fields in the array at `pos`, as a value.
@noinline load_fields(r::Reading, ::Loader{T}) where {T} = quick_fields(r, T)

# The type that values of type W mostly have, if that can be known.
function likely(@nospecialize(W))
    W isa Union || return W isa DataType && isconcretetype(W) ? W : Union{}
    parts = filter(T -> T !== Nothing && T !== Missing, Base.uniontypes(W))
    length(parts) == 1 ? likely(parts[1]) : Union{}
end

# `() -> quick_fields(r, T)`, which a generated function cannot say.
struct FieldsOf{T}
    r::Reading
end
(fields::FieldsOf{T})() where {T} = quick_fields(fields.r, T)

# Whether values of type F may hold a T, and so be as deep as the data. Such fields go by the loader of their type, and not
# by code inside of code, of which the compiler would find no end.
function reaches(@nospecialize(F), @nospecialize(T), seen = Set{Any}())
    F === T && return true
    F in seen && return false
    push!(seen, F)
    length(seen) > LARGEST_COMPILED && return true
    F isa Union && return reaches(F.a, T, seen) || reaches(F.b, T, seen)
    F isa DataType && isconcretetype(F) || return false
    F <: Array && return reaches(eltype(F), T, seen)
    any(G -> reaches(G, T, seen), fieldtypes_of(F))
end

@generated function quick_fields(r::Reading, ::Type{T}) where {T}
    count = fieldcount(T)
    names = [Symbol(:field, i) for i in 1:count]
    steps = Expr[]
    for i in 1:count
        F = fieldtype(T, i)
        R = reaches(F, T) ? Union{} : likely(F)
        read = if is_mutable(T) && !isbitstype(F)
            # Perhaps undefined.
            quote
                field = quick(r, kind, $R, $F)
                field isa Undef && $(!(Undef <: F) || F === Any) &&
                    return go_on(r, $T, Any[$(names[1:i-1]...), field], at, outer)::$T
                $(names[i]) = field::$F
            end
        else
            :($(names[i]) = quick(r, kind, $R, $F)::$F)
        end
        push!(steps, quote
            kind = next(r)
            kind == 0x00 && return go_on(r, $T, Any[$(names[1:i-1]...)], at, outer)::$T
            $read
        end)
    end
    quote
        r.room == 0 && return on_new_stack(FieldsOf{$T}(r), r)::$T
        r.room -= 1
        at = r.pos
        outer = enter(r)
        $(steps...)
        next(r) == 0x00 || too_many($T, $count, at)
        leave(r, outer)
        r.room += 1
        $(Expr(:new, T, names...))
    end
end

# The rest of the fields, after a gap or the end.
@noinline function go_on(r::Reading, @nospecialize(T), xs::Vector{Any}, at, outer)
    while (kind = next(r)) != 0x00
        length(xs) == fieldcount(T) && too_many(T, fieldcount(T), at)
        push!(xs, value(r, kind, fieldtype(T, length(xs) + 1)))
    end
    leave(r, outer)
    r.room += 1
    made(T, xs, true, at)
end

# A value of type W (or undefined), which is most likely an R.
@inline function quick(r::Reading, kind::UInt8, ::Type{R}, ::Type{W}) where {R,W}
    Nothing <: W && kind == NULL && return nothing
    if R !== Union{}
        x = attempt(r, kind, R)
        x isa NotQuick || return x
    end
    careful(r, kind, W)
end

@noinline careful(r, kind, ::Type{W}) where {W} = value(r, kind, W)::Union{W,Undef}

@inline attempt(r::Reading, kind, ::Type{String}) = kind == STRING ? read_string(r) : NotQuick()
@inline attempt(r::Reading, kind, ::Type{Int64}) = kind == INT64 ? read_bits(r, Int64) : NotQuick()
@inline attempt(r::Reading, kind, ::Type{Int32}) = kind == INT32 ? read_bits(r, Int32) : NotQuick()
@inline attempt(r::Reading, kind, ::Type{Float64}) = kind == DOUBLE ? read_bits(r, Float64) : NotQuick()
@inline attempt(r::Reading, kind, ::Type{Bool}) = kind == BOOLEAN ? read_bool(r) : NotQuick()
@inline attempt(r::Reading, kind, ::Type{Nothing}) = kind == NULL ? nothing : NotQuick()

@inline function attempt(r::Reading, kind, ::Type{Symbol})
    kind == DOCUMENT || return NotQuick()
    before = r.pos
    t = scan(r)
    if t.tag == SYMBOL && t.subject_kind == STRING
        behind, outer = r.pos, r.stop
        r.pos, r.stop = t.subject, t.stop
        x = read_symbol(r)
        r.pos, r.stop = behind, outer
        return x
    end
    r.pos = before
    NotQuick()
end

# A struct or a primitive type.
@inline function attempt(r::Reading, kind, ::Type{T}) where {T}
    kind == DOCUMENT || return NotQuick()
    before = r.pos
    t = scan(r)
    if t.tag == STRUCT
        entry = type_entry(r, t.subject_kind, t.subject)
        if entry.type === T
            behind, outer = r.pos, r.stop
            r.pos, r.stop = t.data, t.stop
            if entry.form == FIELDS && t.data_kind == ARRAY
                x = quick_fields(r, T)
                r.pos, r.stop = behind, outer
                return x
            elseif isprimitivetype(T) && entry.form == BITS && t.data_kind == BINARY && T !== Bool && !(T <: Ptr)
                at, len = bytes_here(r)
                if len == sizeof(T)
                    r.pos, r.stop = behind, outer
                    return unsafe_load(Ptr{T}(r.start + at))
                end
            end
            r.stop = outer
        end
    end
    r.pos = before
    NotQuick()
end

@generated function attempt(r::Reading, kind, ::Type{T}) where {T<:Tuple}
    count = fieldcount(T)
    count <= 16 || return :(NotQuick())
    # Once elements have been read there is no way back: reading them again at each level would have no end.
    steps = [quote
        kind = next(r)
        $(Symbol(:part, i)) = defined(quick(r, kind, $(likely(fieldtype(T, i))), $(fieldtype(T, i))), $(fieldtype(T, i)), r.pos)
    end for i in 1:count]
    quote
        kind == DOCUMENT && r.room > 0 || return NotQuick()
        before, outer = r.pos, r.stop
        t = scan(r)
        t.tag == TUPLE && t.data_kind == ARRAY || return not_quick(r, before, outer)
        behind = r.pos
        r.pos, r.stop = t.data, t.stop
        count_elements(r) == $count || return not_quick(r, before, outer)
        r.room -= 1
        enter(r)
        $(steps...)
        r.room += 1
        r.pos, r.stop = behind, outer
        $(Expr(:tuple, (Symbol(:part, i) for i in 1:count)...))
    end
end

@inline defined(x, ::Type{T}, at) where {T} = x isa T ? x : no_gap_here(T, at)
@noinline no_gap_here(T, at) = mismatched("an undefined value", "one of type $(type_name(T))", at)

@noinline function not_quick(r, before, outer)
    r.pos, r.stop = before, outer
    NotQuick()
end

@inline function attempt(r::Reading, kind, ::Type{Array{T,N}}) where {T,N}
    if N == 1 && kind == ARRAY && r.room > 0
        r.room -= 1
        outer = enter(r)
        xs = quick_vector(r, T)
        leave(r, outer)
        r.room += 1
        return xs
    elseif N == 1 && T === UInt8 && kind == BINARY
        at, len = bytes_here(r)
        return bits(r, UInt8, (len,), at, len)::Vector{UInt8}
    elseif kind == DOCUMENT && isbitstype(T)
        before = r.pos
        t = scan(r)
        if t.tag == TAGGED_ARRAY && t.data_kind == BINARY
            entry = type_entry(r, t.subject_kind, t.subject)
            if entry.type === T && (entry.form == FIELDS || entry.form == BITS) && !has_pointer(T)
                behind, outer = r.pos, r.stop
                r.stop = t.stop
                dims = quick_sizes(r, t, Val(N))
                r.pos = t.data
                at, len = bytes_here(r)
                if dims !== nothing
                    xs = checked_bits(r, T, dims, count_of(dims, t.size), at, len)::Array{T,N}
                    r.pos, r.stop = behind, outer
                    return xs
                end
                r.stop = outer
            end
        end
        r.pos = before
    end
    NotQuick()
end

function quick_sizes(r, t, ::Val{N}) where {N}
    dims = sizes(r, t)
    length(dims) == N ? ntuple(i -> dims[i], Val(N)) : nothing
end

# The elements up to `stop`.
function quick_vector(r::Reading, ::Type{T}) where {T}
    xs = Vector{T}(undef, 0)
    begin_ = r.pos
    i = 0
    while (kind = next(r)) != 0x00
        x = quick(r, kind, likely_type(T), T)
        if x isa Undef && !(Undef <: T && T !== Any)
            isbitstype(T) && no_gap_here(T, r.pos)
            i += 1
            resize!(xs, i)
            continue
        end
        i += 1
        # From the first one, how many there are; the file has at least three bytes for each.
        i == 1 && sizehint!(xs, min((r.stop - begin_) ÷ max(r.pos - begin_, 3) + 1, 1 << 24))
        push!(xs, x)
    end
    xs
end

@generated likely_type(::Type{T}) where {T} = likely(T)

# ---- plain arrays whose elements are of one type ----

# Arrays with fewer bytes are left to the careful way.
const LEAST_RUN = 1 << 12

# The elements up to `stop`, if there are many of one common type, or of the type that is wanted; else nothing, and nothing
# has been passed.
function common_vector(r::Reading, @nospecialize(T))
    r.stop - r.pos < LEAST_RUN && return nothing
    before = r.pos
    kind = next(r)
    loader = if kind == STRING
        Loader{String}()
    elseif kind == INT64
        Loader{Int64}()
    elseif kind == DOUBLE
        Loader{Float64}()
    elseif kind == BOOLEAN
        Loader{Bool}()
    elseif kind == DOCUMENT
        t = scan(r)
        if t.tag == STRUCT
            entry = type_entry(r, t.subject_kind, t.subject)
            # As many as there would be if all were as long.
            entry.count += (r.stop - before) ÷ max(r.pos - before, 1)
            entry.form in (FIELDS, BITS) && entry.count > r.ctx.patience ? loader_of(r, entry) : nothing
        elseif t.tag == SYMBOL
            Loader{Symbol}()
        end
    end
    r.pos = before
    loader === nothing && return nothing
    (T === nothing || T === typeof_loaded(loader)) || return nothing
    run_of(r, loader)
end

typeof_loaded(::Loader{T}) where {T} = T

# A vector of all elements, if each is a T; else nothing, and nothing has been passed.
@noinline function run_of(r::Reading, ::Loader{T}) where {T}
    before, stop = r.pos, r.stop
    xs = Vector{T}(undef, 0)
    while (kind = next(r)) != 0x00
        x = attempt(r, kind, T)
        x isa NotQuick && return mixed(r, xs, kind)
        isempty(xs) && sizehint!(xs, min((stop - before) ÷ max(r.pos - before, 3) + 1, 1 << 24))
        push!(xs, x)
    end
    r.ctx.narrow ? xs : Vector{Any}(xs)
end

# The rest of elements of which one is of another type.
@noinline function mixed(r::Reading, begun, kind)
    xs = Vector{Any}(begun)
    gaps = false
    while true
        x = value(r, kind, Any)
        gaps |= x isa Undef
        push!(xs, x)
        kind = next(r)
        kind == 0x00 && break
    end
    gaps ? with_gaps(Any, xs) : typed(r, xs, nothing)
end
