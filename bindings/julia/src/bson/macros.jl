# Variables in files, and the functions that FileIO calls.

"""
    @save path names...
    @save path name = value ...

Writes variables to a file.

```jldoctest
julia> path = tempname(); a = 1; b = [2.5];

julia> BSON.@save path a b c = a + 1

julia> a = b = nothing; BSON.@load path a b c; (a, b, c)
(1, [2.5], 2)
```
"""
macro save(path, parts...)
    pairs = map(parts) do part
        part isa Symbol && return :($(QuoteNode(part)) => $(esc(part)))
        Meta.isexpr(part, :(=)) && part.args[1] isa Symbol ||
            throw(ArgumentError("@save takes names, and names with values: `@save path a b = 1`, not `$part`"))
        :($(QuoteNode(part.args[1])) => $(esc(part.args[2])))
    end
    :(bson($(esc(path)), Dict{Symbol,Any}($(pairs...))))
end

"""
    @load path names...

Sets variables to the values in a file.
"""
macro load(path, names...)
    all(name -> name isa Symbol, names) || throw(ArgumentError("@load takes names: `@load path a b`"))
    data = gensym("data")
    sets = [:($(esc(name)) = $data[$(QuoteNode(name))]) for name in names]
    quote
        # Types are also looked up in the module of the macro call.
        $data = load($(esc(path)), $__module__)
        $(sets...)
        nothing
    end
end

"Called by FileIO to write a file with a dictionary, with pairs, or with alternating names and values."
fileio_save(f, doc::AbstractDict) = bson(f.filename, doc)
fileio_save(f, members::Pair...) = bson(f.filename, Dict{Symbol,Any}(Symbol(k) => v for (k, v) in members))
function fileio_save(f, args...)
    iseven(length(args)) || throw(ArgumentError("names and values alternate, but these are $(length(args)) arguments"))
    bson(f.filename, Dict{Symbol,Any}(Symbol(args[i]) => args[i+1] for i in 1:2:length(args)))
end

"Called by FileIO to read a whole file, the member with a name, or the members with several names."
fileio_load(f) = load(f.filename)
function fileio_load(f, name, names...)
    data = load(f.filename)
    isempty(names) ? data[Symbol(name)] : map(n -> data[Symbol(n)], (name, names...))
end
