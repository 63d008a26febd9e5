# Resolves names in a file to types, by lookup in modules and application to parameters. Only types are returned, unless
# the caller allows code.

# The maximum number of parts of a type. A few bytes in a file can double the size of a type, and the work that Julia
# does for it.
const LARGEST_TYPE = 10_000

# Types with more bytes than this are read again at each occurrence.
const LONGEST_KEPT = 4096

# Returns the type at this payload and how its values are built. The same bytes always mean the same type.
@noinline function type_entry(r::Reading, kind::UInt8, at::Int)
    kind == DOCUMENT || no_type(kind, at)
    len = Int(load(r, Int32, at)) # `scan` has checked it
    # Long types may be nested, and would be hashed again at each level.
    len <= LONGEST_KEPT || return new_type_entry(r, -1, at, len)
    hash = type_hash(r, at, len)
    entry = @inbounds r.types[hash&(TYPE_SLOTS-1)+1]
    same_bytes(r, entry, at, len) ? entry : new_type_entry(r, hash, at, len)
end

@noinline no_type(kind, at) = invalid("a value of type " * kind_name(kind), "a type", at)

@inline function same_bytes(r, entry, at, len)
    entry.len == len || return false
    entry.at == at || ccall(:memcmp, Cint, (Ptr{UInt8}, Ptr{UInt8}, Csize_t), r.start + at, r.start + entry.at, len) == 0
end

# Hashes eight bytes at a time. A type's document has at least eight; the last word may overlap the previous one.
@inline function type_hash(r, at, len)
    len < 8 && return len
    h = UInt64(len)
    i = at
    last = at + len - 8
    while i < last
        h = (h ⊻ load(r, UInt64, i)) * 0x9e3779b97f4a7c15
        h ⊻= h >> 29
        i += 8
    end
    h = (h ⊻ load(r, UInt64, last)) * 0x9e3779b97f4a7c15
    Int((h ⊻ h >> 32) & 0xffffffff)
end

@noinline function new_type_entry(r, hash, at, len)
    pos, stop = r.pos, r.stop
    # Its document has been checked, with all enclosing documents.
    r.pos, r.stop = at, at + len
    T = deeper(() -> value(r, DOCUMENT, Any), r)
    T isa Type || invalid("something that is not a type", "a type", at)
    r.pos, r.stop = pos, stop
    entry = TypeEntry(at, len, T, form_of(r, T, at), nothing, has_code(T) ? r.ctx.patience : 0)
    hash >= 0 && (r.types[hash&(TYPE_SLOTS-1)+1] = entry)
    entry
end

# Returns the names in an array as symbols, without a `Main` before Base and Core.
function read_path(r::Reading, kind, at)
    kind == ARRAY || invalid("names of type " * kind_name(kind), "an array of them", at)
    outer_pos, outer = r.pos, r.stop
    r.pos, r.stop = at, at + Int(load(r, Int32, at))
    around = enter(r)
    path = Symbol[]
    while (kind = next(r)) != 0x00
        kind == STRING || invalid("a name of type " * kind_name(kind), "a string", r.pos)
        length(path) < 100 || limited("more than 100 names", "the names of modules and of an item in them", at)
        push!(path, read_symbol(r))
    end
    r.pos, r.stop = outer_pos, outer
    isempty(path) && invalid("no name", "the names of modules and of an item in them", at)
    length(path) > 1 && path[1] === :Main && path[2] in (:Base, :Core) && popfirst!(path)
    path
end

# Returns the binding at the end of a path that starts in the given modules, in Main, or in the root module of that
# name; or nothing.
function look_up(r::Reading, path)
    for m in r.ctx.modules
        found = follow(m, path)
        found === nothing || return found
        # The module itself is the first name, or `Main` was written in its place.
        if length(path) > 1 && (path[1] === nameof(m) || path[1] === :Main)
            found = follow(m, view(path, 2:length(path)))
            found === nothing || return found
        end
    end
    rest = view(path, 2:length(path))
    first(path) === :Main && return isempty(rest) ? Some(Main) : follow(Main, rest)
    for m in (Core, Base)
        first(path) === nameof(m) && return isempty(rest) ? Some(m) : follow(m, rest)
    end
    for m in Base.loaded_modules_array()
        if first(path) === nameof(m)
            found = isempty(rest) ? Some(m) : follow(m, rest)
            found === nothing || return found
        end
    end
    follow(Main, path)
end

function follow(m::Module, path)
    found = m
    for name in path
        found isa Module && isdefined(found, name) || return nothing
        found = getfield(found, name)
    end
    Some{Any}(found)
end

shown(path) = (text = join(path, '.'); length(text) > 200 ? first(text, 200) * "…" : text)

function named_type(r::Reading, path, at)
    path[end] === :Undef && path[1] in (:BSON, :BSONqs, :Millstream) && return Undef
    name = String(path[end])
    if startswith(name, '#') && !r.ctx.allow_code
        invalid("the function $(shown(path))", "data; use `allow_code = true` to load functions too, if the file is trusted", at)
    end
    found = look_up(r, path)
    found === nothing && invalid("the type $(shown(path)), which is not defined here",
        "a type of Main, Base, a loaded package, or the module given; load its package first", at)
    T = something(found)
    T isa Type || invalid("the name $(shown(path)), which is not a type", "a type", at)
    T
end

function datatype(r::Reading, t::Tagged)
    at = t.subject
    T = named_type(r, read_path(r, t.subject_kind, at), at)
    params = read_params(r, t.data_kind, t.data)
    (isempty(params) && T !== Tuple) ? T : apply_type(r, T, params, at)
end

# A list, or an array of bits if all of them are numbers.
function read_params(r::Reading, kind, at)
    pos, stop = r.pos, r.stop
    r.pos, r.stop = at, at + Int(load(r, Int32, at))
    params = if kind == ARRAY
        elements(r)
    elseif kind == DOCUMENT
        value(r, DOCUMENT, Any)
    end
    r.pos, r.stop = pos, stop
    params isa Vector || invalid("type parameters that are not a list", "an array of them", at)
    length(params) <= LARGEST_TYPE || limited("a type of $(length(params)) parameters", "at most $LARGEST_TYPE", at)
    params
end

# Files of other machines have integers of 32 bits here.
parameter(x::Int32) = Int(x)
parameter(x) = x

function apply_type(r::Reading, @nospecialize(T), params, at)
    params = Any[parameter(p) for p in params]
    bounded = all(p -> !(p isa Integer) || -LARGEST_TYPE <= p <= LARGEST_TYPE, params) || !has_vararg(T)
    bounded || limited("a type with a part for each of $(maximum(p for p in params if p isa Integer))", "at most $LARGEST_TYPE", at)
    made = try
        Core.apply_type(T, params...)
    catch e
        e isa InterruptException && rethrow()
        invalid("parameters that $(type_name(T)) cannot have", "those that its definition accepts", at)
    end
    type_size(made, LARGEST_TYPE) > 0 || limited("a type of more than $LARGEST_TYPE parts", "fewer", at)
    made
end

# Whether a number among the parameters determines the number of fields, in the type itself or in a field.
function has_vararg(@nospecialize(T), depth = 3)
    T = Base.unwrap_unionall(T)
    T isa DataType || return T isa Union && (has_vararg(T.a, depth) || has_vararg(T.b, depth))
    T.name === Tuple.name && return true
    is_vararg(T) && return true
    depth > 0 && isdefined(T, :types) && any(F -> F isa Type && F !== T && has_vararg(F, depth - 1), T.types)
end

is_vararg(@nospecialize(T)) = T isa DataType && T.name.name === :Vararg

# Subtracts the number of parts of a type from `left`; the result is 0 or less if there are too many.
function type_size(@nospecialize(T), left)
    left > 0 || return left
    left -= 1
    if T isa UnionAll
        left = type_size(T.body, left)
    elseif T isa Union
        left = type_size(T.b, type_size(T.a, left))
    elseif T isa DataType
        for p in T.parameters
            left = p isa Type ? type_size(p, left) : p isa Tuple ? left - length(p) : left - 1
            left > 0 || break
        end
    end
    left
end

# The name without the parameters, which may be long.
type_name(@nospecialize(T)) = (T = Base.unwrap_unionall(T); T isa DataType ? string(T.name.name) : "a Union")
