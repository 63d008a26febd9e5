# The tree of a file without conversion to Julia types: dictionaries, vectors and BSON's own values.

function tree(r::Reading, kind::UInt8)
    kind == DOCUMENT || kind == ARRAY || return value(r, kind, Any)
    if kind == DOCUMENT
        at = r.pos
        t = scan(r)
        if t.tag == BACKREF
            after, outer = r.pos, r.stop
            r.pos, r.stop = t.subject, t.stop
            number = reference(r, t.subject_kind)
            r.pos, r.stop = after, outer
            return shared_tree(r, number, at)
        end
        r.pos = at
    end
    deeper(() -> branch(r, kind, nothing, false), r)
end

function branch(r::Reading, kind, entry, is_root)
    kind == ARRAY ? tree_vector(r, entry) : kind == DOCUMENT ? tree_document(r, entry, is_root) : value(r, kind, Any)
end

function tree_vector(r::Reading, entry)
    xs = Any[]
    entry === nothing || open!(entry, xs)
    outer = enter(r)
    while (kind = next(r)) != 0x00
        push!(xs, tree(r, kind))
    end
    leave(r, outer)
    xs
end

function tree_document(r::Reading, entry, is_root)
    members = BSONDict()
    entry === nothing || open!(entry, members)
    outer = enter(r)
    while true
        key = r.pos + 1
        kind = next(r)
        kind == 0x00 && break
        len = r.pos - 1 - key
        if is_root && is_backrefs(r, key, len)
            skip(r, kind)
        else
            name = symbol_at(r, key, len)
            members[name] = tree(r, kind)
        end
    end
    leave(r, outer)
    members
end

function shared_tree(r::Reading, number, at)
    entry, _ = followed(r, number, at)
    entry.state == UNREAD || return entry.value
    entry.state = OPEN
    pos, stop = r.pos, r.stop
    r.pos, r.stop = entry.at, r.end_
    x = deeper(() -> branch(r, entry.kind, entry, false), r)
    r.pos, r.stop = pos, stop
    entry.value, entry.state = x, READ
    x
end
