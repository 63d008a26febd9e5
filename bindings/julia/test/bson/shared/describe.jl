# Compares a value with its description in JSON, whose forms are in the README of vectors/julia-bson.
module Describe

# ---- JSON: objects as dictionaries, numbers as their text ----

struct Number_
    text::String
end

function json(text::AbstractString)
    value, at = parse_at(codeunits(text), 1)
    value
end

space(b, at) = (while at <= length(b) && b[at] in (0x20, 0x09, 0x0a, 0x0d); at += 1; end; at)

function parse_at(b, at)
    at = space(b, at)
    c = Char(b[at])
    if c == '{'
        members = Dict{String,Any}()
        at = space(b, at + 1)
        while Char(b[at]) != '}'
            key, at = parse_at(b, at)
            at = space(b, at)
            members[key], at = parse_at(b, at + 1)
            at = space(b, at)
            Char(b[at]) == ',' && (at = space(b, at + 1))
        end
        return members, at + 1
    elseif c == '['
        items = Any[]
        at = space(b, at + 1)
        while Char(b[at]) != ']'
            item, at = parse_at(b, at)
            push!(items, item)
            at = space(b, at)
            Char(b[at]) == ',' && (at = space(b, at + 1))
        end
        return items, at + 1
    elseif c == '"'
        return string_at(b, at + 1)
    end
    stop = at
    while stop <= length(b) && !(Char(b[stop]) in ",]} \n")
        stop += 1
    end
    word = String(b[at:stop-1])
    (word == "null" ? nothing : word == "true" ? true : word == "false" ? false : Number_(word)), stop
end

function string_at(b, at)
    bytes = UInt8[]
    while Char(b[at]) != '"'
        if Char(b[at]) == '\\'
            at += 1
            c = Char(b[at])
            if c == 'u'
                append!(bytes, codeunits(string(Char(parse(UInt16, String(b[at+1:at+4]); base = 16)))))
                at += 4
            else
                push!(bytes, c == 'n' ? 0x0a : c == 't' ? 0x09 : c == 'r' ? 0x0d : b[at])
            end
        else
            push!(bytes, b[at])
        end
        at += 1
    end
    String(bytes), at + 1
end

# ---- comparison ----

# The objects that have been compared, by their numbers in the description.
agrees(x, known) = same(x, known, Dict{String,Any}())

function same(@nospecialize(x), known, ids)
    if known isa Dict && haskey(known, "\$id")
        ids[known["\$id"].text] = x
        return same(x, known["\$value"], ids)
    elseif known isa Dict && haskey(known, "\$sameas")
        return ids[known["\$sameas"].text] === x
    end
    body(x, known, ids)
end

function all_same(@nospecialize(xs), known, ids)
    length(xs) == length(known) || return false
    for (i, k) in enumerate(known)
        same(xs[i], k, ids) || return false
    end
    true
end

body(@nospecialize(x), @nospecialize(known), ids) = false
body(::Nothing, ::Nothing, ids) = true
body(x::Bool, known::Bool, ids) = x == known
body(x::String, known::String, ids) = x == known
body(x::Integer, known::Number_, ids) = string(x) == known.text
body(x::T, known::Number_, ids) where {T<:Union{Float16,Float32,Float64}} = x === parse(Float64, known.text) || x === T(parse(Float64, known.text))

const float_bits = Dict(Float16 => UInt16, Float32 => UInt32, Float64 => UInt64)

function body(@nospecialize(x), known::Dict, ids)
    has(key) = haskey(known, key)
    if has("\$int")
        return x isa Integer && string(x) == known["\$int"]
    elseif has("\$float")
        return x isa AbstractFloat && string(reinterpret(float_bits[typeof(x)], x); base = 16, pad = 2sizeof(x)) == known["bits"]
    elseif has("\$bytes_hex")
        return x isa String && bytes2hex(codeunits(x)) == known["\$bytes_hex"]
    elseif has("\$char")
        return x isa Char && string(UInt32(x)) == known["code"].text
    elseif has("\$symbol")
        return x === Symbol(known["\$symbol"])
    elseif has("\$missing")
        return x === missing
    elseif has("\$dict")
        return x isa AbstractDict && of_type(x, known) && length(x) == length(known["\$dict"]) &&
               all(any(quietly_same(k, pair[1]) && same(v, pair[2], ids) for (k, v) in x) for pair in known["\$dict"])
    elseif has("\$set")
        return x isa Set && of_type(x, known) && length(x) == length(known["\$set"]) &&
               all(any(quietly_same(y, k) for y in x) for k in known["\$set"])
    elseif has("\$tuple")
        return x isa Tuple && all_same(x, known["\$tuple"], ids)
    elseif has("\$namedtuple")
        pairs = known["\$namedtuple"]
        return x isa NamedTuple && collect(String.(keys(x))) == [p[1] for p in pairs] && all_same(values(x), [p[2] for p in pairs], ids)
    elseif has("\$pair")
        return x isa Pair && all_same((x.first, x.second), known["\$pair"], ids)
    elseif has("\$complex")
        return x isa Complex && all_same((real(x), imag(x)), known["\$complex"], ids)
    elseif has("\$rational")
        return x isa Rational && all_same((numerator(x), denominator(x)), known["\$rational"], ids)
    elseif has("\$array")
        dims = [parse(Int, n.text) for n in known["size"]]
        x isa Array && collect(Int, size(x)) == dims && length(x) == length(known["\$array"]) || return false
        # For vectors whose elements are not bits, the file does not contain the element type.
        (ndims(x) == 1 && !isbitstype(eltype(x)) || text(eltype(x)) == known["eltype"] || VERSION >= v"1.6" ||
            (ndims(x) == 1 && isempty(x)) || (ndims(x) == 1 && startswith(known["eltype"], "Union{")) || known["eltype"] in ("Any", "Number")) || return false
        for (i, k) in enumerate(known["\$array"])
            (isassigned(x, i) ? same(x[i], k, ids) : is_gap(k)) || return false
        end
        return true
    elseif has("\$bitarray")
        return x isa BitArray && collect(Int, size(x)) == [parse(Int, n.text) for n in known["size"]] && vec(collect(Bool, x)) == known["\$bitarray"]
    elseif has("\$ref")
        return x isa Base.RefValue && of_type(x, known) && same(x[], known["\$ref"], ids)
    elseif has("\$struct")
        T = typeof(x)
        named(T, known["\$struct"]) && length(known["fields"]) == fieldcount(T) || return false
        for (i, f) in enumerate(known["fields"])
            String(fieldname(T, i)) == f[1] || return false
            (isdefined(x, i) ? same(getfield(x, i), f[2], ids) : is_gap(f[2])) || return false
        end
        return true
    elseif has("\$primitive")
        return isprimitivetype(typeof(x)) && named(typeof(x), known["\$primitive"]) && bytes2hex(collect(reinterpret(UInt8, [x]))) == known["bytes_hex"]
    elseif has("\$type")
        return x isa Type && string(nameof(typeof(x))) == known["kind"] && (VERSION >= v"1.6" || x isa UnionAll || text(x) == known["\$type"])
    elseif has("\$module")
        return x isa Module && string(x) == known["\$module"]
    elseif has("\$function")
        return x isa Function && string(parentmodule(x), ".", nameof(x)) == known["\$function"]
    elseif has("\$anonymous")
        fields = fieldnames(typeof(x))
        return x isa Function && length(fields) == length(known["captures"]) &&
               all(String(n) == c[1] && same(getfield(x, n), c[2], ids) for (n, c) in zip(fields, known["captures"]))
    end
    x isa Dict{Symbol} && length(x) == length(known) && all(haskey(x, Symbol(k)) && same(x[Symbol(k)], v, ids) for (k, v) in known)
end

is_gap(known) = known isa Dict && haskey(known, "\$undef")

# Compares keys; many candidates are tried.
quietly_same(@nospecialize(x), known) = body(x, known, Dict{String,Any}())

text(T) = string(T)
named(T, known) = VERSION >= v"1.6" || text(T) == known
of_type(x, known) = named(typeof(x), known["type"])

end
