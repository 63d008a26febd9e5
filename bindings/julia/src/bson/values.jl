# Reads any value, with the type in the file or converted to the requested type. This is the slow path, which handles
# all input and compiles no code; `quick` handles common and valid input.

# Reads the value at `pos` and moves past it.
function value(r::Reading, kind::UInt8, @nospecialize(want))
    if kind == DOCUMENT
        at = r.pos
        return fit(r, document(r, want), want, at)
    end
    at = r.pos
    x = if kind == STRING
        read_string(r)
    elseif kind == INT64
        read_bits(r, Int64)
    elseif kind == DOUBLE
        read_bits(r, Float64)
    elseif kind == BOOLEAN
        read_bool(r)
    elseif kind == NULL
        nothing
    elseif kind == INT32
        read_bits(r, Int32)
    elseif kind == ARRAY
        return fit(r, deeper(() -> vector(r, want, nothing), r), want, at)
    elseif kind == BINARY
        bytes_value(r, bytes_here(r)...)
    else
        unknown(r, kind)
    end
    fit(r, x, want, at)
end

# Converts a value to the requested type.
function fit(r::Reading, @nospecialize(x), @nospecialize(want), at)
    x isa want && return x
    x isa Undef && want !== Union{} && return x
    made = try
        convert(want, x)
    catch e
        e isa InterruptException && rethrow()
        mismatched("a value of type $(type_name(typeof(x)))", "one that can be converted to $(type_name(want))", at)
    end
    made isa want ? made : mismatched("a value of type $(type_name(typeof(x)))", "one of $(type_name(want))", at)
end

# Returns the value that a document represents.
function document(r::Reading, @nospecialize(want), object = nothing, is_root = false)
    at = r.pos
    t = scan(r, is_root)
    after, outer = r.pos, r.stop
    if t.tag == PLAIN
        x = deeper(() -> plain_document(r, object, is_root), r)
        return x
    end
    r.stop = t.stop
    x = if t.tag == STRUCT
        entry = type_entry(r, t.subject_kind, t.subject)
        deeper(() -> structure(r, entry, t, want, object), r)
    elseif t.tag == BACKREF
        r.pos = t.subject
        shared_object(r, reference(r, t.subject_kind), want, at)
    elseif t.tag == TAGGED_ARRAY
        of = type_entry(r, t.subject_kind, t.subject)
        deeper(() -> tagged_array(r, of, t, object), r)
    elseif t.tag == SYMBOL
        t.subject_kind == STRING || invalid("a symbol's name of type " * kind_name(t.subject_kind), "a string", at)
        r.pos = t.subject
        read_symbol(r)
    elseif t.tag == TUPLE
        deeper(() -> tuple_value(r, t, want), r)
    elseif t.tag == DATATYPE
        deeper(() -> datatype(r, t), r)
    else
        deeper(() -> rarer(r, t, at), r)
    end
    r.pos, r.stop = after, outer
    x
end

function reference(r::Reading, kind)
    kind == INT64 ? read_bits(r, Int64) : kind == INT32 ? Int64(read_bits(r, Int32)) :
        invalid("a backref of type " * kind_name(kind), "an integer", r.pos)
end

function rarer(r::Reading, t, at)
    if t.tag == BOTTOM
        Union{}
    elseif t.tag == SVEC
        Core.svec(list(r, t, "svec")...)
    elseif t.tag == UNIONALL
        r.pos = t.subject
        var = value(r, t.subject_kind, Any)
        r.pos = t.data
        body = value(r, t.data_kind, Any)
        var isa TypeVar && (body isa Type || body isa TypeVar) || invalid("a UnionAll with other parts", "a TypeVar and a type", at)
        UnionAll(var, body)
    elseif t.tag == REF
        path = read_path(r, t.subject_kind, t.subject)
        r.ctx.allow_code || invalid("the binding $(shown(path))",
            "data; use `allow_code = true` to load modules and other bindings too, if the file is trusted", at)
        found = look_up(r, path)
        found === nothing && invalid("the name $(shown(path)), which is not defined here", "a module", at)
        something(found)
    else
        r.ctx.allow_code ||
            invalid("a function with a body", "data; use `allow_code = true` to load functions too, if the file is trusted", at)
        anonymous_type(r, t)
    end
end

# Reads the elements of a tag's list.
function list(r::Reading, t::Tagged, tag)
    t.data_kind == ARRAY || invalid("data of type " * kind_name(t.data_kind), "the array that the tag \"$tag\" requires", t.data)
    r.pos = t.data
    elements(r)
end

# Reads the elements of the array at `pos`, of any type, and moves past it.
function elements(r::Reading)
    outer = enter(r)
    xs = Any[]
    while (kind = next(r)) != 0x00
        push!(xs, value(r, kind, Any))
    end
    leave(r, outer)
    xs
end

# Longer tuples are unusual, and compiling code for them is slow.
const LONGEST_TUPLE = LARGEST_TYPE

function tuple_value(r::Reading, t, @nospecialize(want))
    t.data_kind == ARRAY || invalid("data of type " * kind_name(t.data_kind), "the array that a tuple requires", t.data)
    r.pos = t.data
    outer = enter(r)
    wants = want isa DataType && want <: Tuple && isconcretetype(want) ? want : nothing
    xs = Any[]
    while (kind = next(r)) != 0x00
        length(xs) < LONGEST_TUPLE || limited("a tuple of more than $LONGEST_TUPLE elements", "fewer", t.data)
        part = wants !== nothing && length(xs) < fieldcount(wants) ? fieldtype(wants, length(xs) + 1) : Any
        push!(xs, value(r, kind, part))
    end
    leave(r, outer)
    (xs...,)
end

# Reads a document without a special meaning, or with one that user code has registered in `tags`.
function plain_document(r::Reading, object, is_root)
    members = BSONDict()
    object === nothing || open!(object, members)
    outer = enter(r)
    while true
        key = r.pos + 1
        kind = next(r)
        kind == 0x00 && break
        len = r.pos - 1 - key
        if is_root && is_backrefs(r, key, len)
            skip(r, kind)
            continue
        end
        name = symbol_at(r, key, len)
        members[name] = value(r, kind, Any)
    end
    leave(r, outer)
    if !isempty(tags)
        tag = get(members, :tag, nothing)
        tag isa String && haskey(tags, Symbol(tag)) && return Base.invokelatest(tags[Symbol(tag)], members)
    end
    members
end
