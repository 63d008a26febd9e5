# Objects that have several references, or that contain themselves: the entries of the root's `_backrefs`. An entry is
# read when it is first needed. The object exists before its parts are read, so that they can refer to it.

# Stores the positions of the entries.
function find_shared!(r::Reading)
    outer = enter(r)
    found = false
    while true
        key = r.pos + 1
        kind = next(r)
        kind == 0x00 && break
        if is_backrefs(r, key, r.pos - 1 - key)
            kind == ARRAY || mismatched("_backrefs of type " * kind_name(kind), "an array of the objects that are shared", r.pos)
            found && invalid("a second _backrefs", "one", r.pos)
            found = true
            around = enter(r)
            while (kind = next(r)) != 0x00
                push!(r.shared, Shared(kind, r.pos, UNREAD, nothing, false))
                skip(r, kind)
            end
            leave(r, around)
        else
            skip(r, kind)
        end
    end
    r.pos, r.stop = 0, outer
end

"Thrown if an object was created with one type but needs another."
struct MadeOtherwise <: Exception
    number::Int
    type::Any
end

# Returns the object that a reference refers to.
function shared_object(r::Reading, number, @nospecialize(want), at)
    entry, place = followed(r, number, at)
    if entry.state == UNREAD
        return deeper(() -> read_shared(r, entry, get(r.wanted, place, want)), r)
    elseif entry.state == OPEN
        x = entry.value
        x === nothing && invalid("an immutable value that contains itself", "a mutable value in the cycle", at)
        if !(x isa want)
            # The object created so far cannot be used there: try again with the right type from the start.
            haskey(r.wanted, place) && mismatched("an object that would need two types", "one", at)
            throw(MadeOtherwise(place, want))
        end
        entry.taken = true
        return x
    end
    entry.value
end

# Returns the entry at the end of a chain of references.
function followed(r::Reading, number, at)
    passed = 0
    while true
        1 <= number <= length(r.shared) ||
            invalid("a backref to object $number", "a number from 1 to $(length(r.shared)), the position of an entry in _backrefs", at)
        entry = r.shared[number]
        (entry.state == UNREAD && entry.kind == DOCUMENT) || return entry, Int(number)
        pos, stop = r.pos, r.stop
        r.pos, r.stop = entry.at, entry.at + Int(load(r, Int32, entry.at))
        t = scan(r)
        if t.tag == BACKREF
            r.pos = t.subject
            number = reference(r, t.subject_kind)
        end
        r.pos, r.stop = pos, stop
        t.tag == BACKREF || return entry, Int(number)
        passed += 1
        passed > length(r.shared) && invalid("backrefs that refer to each other", "backrefs that end at an object", at)
    end
end

function read_shared(r::Reading, entry::Shared, @nospecialize(want))
    pos, stop = r.pos, r.stop
    entry.state = OPEN
    # The whole file is allowed, because the end of the entry was checked before.
    r.pos, r.stop = entry.at, r.end_
    x = if entry.kind == DOCUMENT
        document(r, want, entry)
    elseif entry.kind == ARRAY
        vector(r, want, entry)
    else
        value(r, entry.kind, Any)
    end
    r.pos, r.stop = pos, stop
    entry.value = x
    entry.state = READ
    x
end

# Stores the object that is being created.
open!(entry::Shared, @nospecialize(x)) = (entry.value = x; nothing)
