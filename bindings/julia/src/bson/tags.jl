# Recognises documents with a special meaning: those with a known `tag` and exactly its fields. All others are plain
# data.

const PLAIN, SYMBOL, TUPLE, SVEC, DATATYPE, BOTTOM = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05
const UNIONALL, STRUCT, TAGGED_ARRAY, REF, BACKREF, ANONYMOUS = 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b

# A tagged document, with the positions of the payloads of its fields. No tag has two fields that share a slot.
struct Tagged
    tag::UInt8
    subject_kind::UInt8 # of name, type, var, typename, path, ref
    data_kind::UInt8    # of data, params, body
    size_kind::UInt8
    subject::Int
    data::Int
    size::Int
    stop::Int
end

const NO_TAG = Tagged(PLAIN, 0x00, 0x00, 0x00, 0, 0, 0, 0)

# A text of at most eight bytes as a word with the same bytes in memory.
macro w_str(text)
    foldr((b, w) -> w << 8 | UInt64(b), codeunits(text); init = UInt64(0))
end

const NAME, TYPE, VAR, TYPENAME, PATH, REFERENCE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
const DATA, PARAMS, BODY, SIZE = 0x01, 0x02, 0x04, 0x08

# Up to eight bytes at `at`; the others are zero.
@inline function word_at(c::Cursor, at::Int, len::Int)
    if at + 8 <= c.stop
        load(c, UInt64, at) & (len >= 8 ? typemax(UInt64) : (UInt64(1) << 8len) - 1)
    else
        slow_word(c, at, len)
    end
end
@noinline slow_word(c, at, len) = foldr((i, w) -> w << 8 | UInt64(byte(c, at + i)), 0:min(len, 8)-1; init = UInt64(0))

# Classifies the document at `pos`. Moves past it if it is tagged, and does not move if it is plain.
@noinline function scan(c::Cursor, is_root::Bool = false)
    before = c.pos
    outer = enter(c)
    name = UInt64(0)
    name_len = -1
    subject_kind = data_kind = size_kind = 0x00
    subjects = datas = 0x00
    subject = data = size = 0
    while true
        key = c.pos + 1
        kind = next(c)
        kind == 0x00 && break
        len = c.pos - 1 - key
        payload = c.pos
        w = len <= 8 ? word_at(c, key, len) : typemax(UInt64)
        if w == w"tag" && kind == STRING && name_len < 0
            at, name_len = text_here(c)
            name = word_at(c, at, name_len)
            name_len > 8 && !long_tag(c, at, name_len) && (name_len = 99)
            continue
        end
        field = w == w"type" ? TYPE : w == w"name" ? NAME : w == w"ref" ? REFERENCE :
                w == w"var" ? VAR : w == w"path" ? PATH : w == w"typename" ? TYPENAME : 0x00
        if field != 0x00 && subjects == 0x00
            subjects, subject_kind, subject = field, kind, payload
        elseif field == 0x00
            field = w == w"data" ? DATA : w == w"params" ? PARAMS : w == w"body" ? BODY :
                    w == w"size" ? SIZE : 0x00
            if field == SIZE && datas & SIZE == 0x00
                size_kind, size = kind, payload
            elseif field != 0x00 && field != SIZE && datas & ~SIZE == 0x00
                data_kind, data = kind, payload
            elseif is_root && is_backrefs(c, key, len)
                skip(c, kind)
                continue
            else
                return plain(c, before, outer)
            end
            datas |= field
        else
            return plain(c, before, outer)
        end
        skip(c, kind)
    end
    tag = tag_of(name, name_len, subjects, datas)
    tag == PLAIN && return plain(c, before, outer)
    tagged = Tagged(tag, subject_kind, data_kind, size_kind, subject, data, size, c.stop)
    leave(c, outer)
    tagged
end

@inline function plain(c, before, outer)
    c.pos = before
    c.stop = outer
    NO_TAG
end

# For the two tags that are longer than a word, the part after the word.
@noinline function long_tag(c, at, len)
    text = unsafe_string(c.start + at, len)
    text == "jl_bottom_type" || text == "jl_anonymous"
end

@noinline is_backrefs(c, key, len) = len == 9 && unsafe_string(c.start + key, len) == "_backrefs"

function tag_of(name, len, subjects, datas)
    if name == w"struct" && len == 6
        subjects == TYPE && datas == DATA && return STRUCT
    elseif name == w"array" && len == 5
        subjects == TYPE && datas == DATA | SIZE && return TAGGED_ARRAY
    elseif name == w"datatype" && len == 8
        subjects == NAME && datas == PARAMS && return DATATYPE
    else
        return rarer_tag(name, len, subjects, datas)
    end
    PLAIN
end

@noinline function rarer_tag(name, len, subjects, datas)
    has(w, n, s, d) = name == w && len == n && subjects == s && datas == d
    has(w"backref", 7, REFERENCE, 0x00) && return BACKREF
    has(w"symbol", 6, NAME, 0x00) && return SYMBOL
    has(w"tuple", 5, 0x00, DATA) && return TUPLE
    has(w"svec", 4, 0x00, DATA) && return SVEC
    has(w"unionall", 8, VAR, BODY) && return UNIONALL
    has(w"ref", 3, PATH, 0x00) && return REF
    name == w"jl_botto" && len == 14 && subjects == 0x00 && datas == 0x00 && return BOTTOM
    name == w"jl_anony" && len == 12 && subjects == TYPENAME && datas == PARAMS && return ANONYMOUS
    PLAIN
end
