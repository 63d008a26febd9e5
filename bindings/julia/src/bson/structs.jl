# Creates structs field by field, without their constructors.

function structure(r::Reading, entry::TypeEntry, t::Tagged, @nospecialize(want), object)
    form, T = entry.form, entry.type
    if form == FIELDS
        t.data_kind == ARRAY || fields_missing(T, t)
        object === nothing || return shared_fields(r, T, t.data, object)
        entry.count += 1
        loader = entry.count > r.ctx.patience ? loader_of(r, entry) : nothing
        r.pos = t.data
        return loader === nothing ? fields(r, T) : load_fields(r, loader)
    elseif form == BITS
        t.data_kind == BINARY || invalid("data of type $(kind_name(t.data_kind)) for a $(type_name(T))", "its $(sizeof(T)) bytes", t.data)
        r.pos = t.data
        return primitive(r, T, bytes_here(r)...)
    elseif form == UNDEFINED
        return Undef()
    elseif form == NO_VALUES
        invalid("a value of $(type_name(T))", "a value of a concrete type", t.subject)
    elseif form == INTERNAL
        invalid("a value of type $(type_name(T)), made of parts", "data: values of this type belong to Julia or to another process", t.subject)
    elseif form == CODE && !r.ctx.allow_code
        invalid("a function with a body", "data; use `allow_code = true` to load functions too, if the file is trusted", t.subject)
    end
    special(r, entry, t, object)
end

@noinline fields_missing(T, t) = invalid("data of type $(kind_name(t.data_kind)) for a $(type_name(T))", "an array of its fields", t.data)

function primitive(r::Reading, @nospecialize(T), at, len)
    len == sizeof(T) || invalid("$len bytes for a $(type_name(T))", "$(sizeof(T))", at)
    T === Bool && byte(r, at) > 0x01 && broken("a Bool of $(byte(r, at))", "0 or 1", at)
    # A pointer of another process is meaningless here.
    T <: Ptr && !r.ctx.allow_code && return reinterpret(T, C_NULL)
    ccall(:jl_new_bits, Any, (Any, Ptr{Cvoid}), T, r.start + at)
end

# Reads the fields in the array at `pos` as a value of type T.
function fields(r::Reading, @nospecialize(T))
    at = r.pos
    outer = enter(r)
    count = fieldcount(T)
    xs = Any[]
    gaps = false
    while (kind = next(r)) != 0x00
        length(xs) == count && too_many(T, count, at)
        x = value(r, kind, fieldtype(T, length(xs) + 1))
        gaps |= x isa Undef && !(Undef <: fieldtype(T, length(xs) + 1) && fieldtype(T, length(xs) + 1) !== Any)
        push!(xs, x)
    end
    leave(r, outer)
    made(T, xs, gaps, at)
end

@noinline too_many(T, count, at) = invalid("more fields than the $count of $(type_name(T))", "as many", at)

@static if VERSION >= v"1.7-"
    is_mutable(@nospecialize(T)) = ismutabletype(T)
    least_fields(@nospecialize(T)) = fieldcount(T) - T.name.n_uninitialized
else
    is_mutable(@nospecialize(T)) = T.mutable
    least_fields(@nospecialize(T)) = Int(T.ninitialized)
end

# Creates a value from these fields. The last ones may be missing, and fields of a mutable struct may be undefined.
function made(@nospecialize(T), xs::Vector{Any}, gaps, at)
    count = length(xs)
    if !gaps && (count == fieldcount(T) || count >= least_fields(T))
        return ccall(:jl_new_structv, Any, (Any, Ptr{Any}, UInt32), T, xs, count)
    end
    while count > 0 && xs[count] isa Undef
        count -= 1
    end
    if !is_mutable(T) && any(x -> x isa Undef, view(xs, 1:count)) || any(i -> isbitstype(fieldtype(T, i)), count+1:fieldcount(T)) && !is_mutable(T)
        invalid("$count fields for a $(type_name(T))", "$(fieldcount(T))", at)
    end
    x = ccall(:jl_new_struct_uninit, Any, (Any,), T)
    set_fields!(x, T, xs, count)
end

function set_fields!(@nospecialize(x), @nospecialize(T), xs, count)
    for i in 1:count
        xs[i] isa Undef || set_field!(x, i, xs[i])
    end
    x
end

# For a value that no other code has access to yet, so that even an immutable value may be changed. `xs[i]` has the
# field's type.
set_field!(@nospecialize(x), i, @nospecialize(value)) = ccall(:jl_set_nth_field, Cvoid, (Any, Csize_t, Any), x, i - 1, value)

# Creates a value that other values refer to, perhaps its own fields, so it exists before them.
function shared_fields(r::Reading, @nospecialize(T), at, object)
    r.pos = at
    (isbitstype(T) || sizeof(T) == 0) && return fields(r, T)
    x = ccall(:jl_new_struct_uninit, Any, (Any,), T)
    open!(object, x)
    outer = enter(r)
    count = 0
    while (kind = next(r)) != 0x00
        count == fieldcount(T) && too_many(T, count, at)
        count += 1
        value_at = value(r, kind, fieldtype(T, count))
        value_at isa Undef && Undef !== fieldtype(T, count) || set_field!(x, count, value_at)
    end
    leave(r, outer)
    count < least_fields(T) && invalid("$count fields for a $(type_name(T))", "at least $(least_fields(T))", at)
    x
end
