# The functions that packages may extend, with the names of BSON.jl. They define how values are written and created.

const BSONDict = Dict{Symbol,Any}
const BSONArray = Vector{Any}
const Primitive = Union{Nothing,Bool,Int32,Int64,Float64,String,Vector{UInt8},BSONDict,BSONArray}

"""
The representation of an undefined field or element in a file; it is read back as undefined. """
struct Undef end

"""
    lower(x)

Returns the value that is written in place of `x`: a value of a BSON type, or a dictionary or vector of values, which
are lowered in turn.

Add a method for your type to write it in another form. It is read back as that value, unless `BSON.tags` has a function
for its `:tag`.

```jldoctest
julia> struct Celsius; degrees::Float64; end

julia> BSON.lower(x::Celsius) = x.degrees;

julia> BSON.roundtrip(Celsius(36.6))
36.6
```
"""
lower(x) = BSONDict(:tag => "struct", :type => typeof(x), :data => structdata(x))
lower(x::Primitive) = x

"""
    structdata(x)

Returns the values that are written as the fields of `x`: a vector of values, or the bytes of a primitive type.

If you add a method for your type, also add one to [`newstruct!`](@ref), which receives these values.

```jldoctest
julia> mutable struct Cache; path::String; open::Bool; end

julia> BSON.structdata(x::Cache) = Any[x.path];

julia> BSON.initstruct(::Type{Cache}) = Cache("", false);

julia> BSON.newstruct!(x::Cache, path) = (x.path = path; x.open = true; x);

julia> BSON.roundtrip(Cache("/var/cache", false)).open
true
```
"""
function structdata(x)
    T = typeof(x)
    isprimitivetype(T) && return collect(reinterpret(UInt8, [x]))
    Any[isdefined(x, i) ? getfield(x, i) : Undef() for i in 1:fieldcount(T)]
end
structdata(x::Union{Dict,IdDict}) = Any[collect(keys(x)), collect(values(x))]

"""
    initstruct(T)

Returns a value of type `T`, without calling a constructor. [`newstruct!`](@ref) sets its fields.
"""
initstruct(T) = ccall(:jl_new_struct_uninit, Any, (Any,), T)
initstruct(D::Type{<:Union{Dict,IdDict}}) = D()

"""
    newstruct!(x, fields...)

Sets the fields of `x`, which [`initstruct`](@ref) has created, and returns it or another value in its place.
"""
function newstruct!(x, fields...)
    T = typeof(x)
    for (i, field) in enumerate(fields)
        field isa Undef && continue
        value = convert(fieldtype(T, i), field)
        ccall(:jl_set_nth_field, Cvoid, (Any, Csize_t, Any), x, i - 1, value)
    end
    x
end
function newstruct!(d::Union{Dict,IdDict}, keys, values)
    for (k, v) in zip(keys, values)
        d[k] = v
    end
    d
end

"""
Functions that convert documents with a user-defined `tag` to values. The keys are the tags as symbols; each function
receives the document. """
const tags = Dict{Symbol,Any}()
