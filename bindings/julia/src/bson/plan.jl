# Collects information about values before they are written: how values of each type are written, and which objects are
# reached more than once. The traversal keeps a list of the values to visit, so deep values are safe.

@enum Plan by_fields by_bits by_lower by_structdata by_dictionary by_symbols by_array by_tuple by_type by_module

# How values of a type are written.
function plan_of(@nospecialize(T))
    is_of_caller(which(lower, Tuple{T})) && return by_lower
    T <: Type && return by_type
    T <: Module && return by_module
    T <: Tuple && return by_tuple
    T <: Array && return by_array
    T <: Dict{Symbol} && return by_symbols
    is_of_caller(which(structdata, Tuple{T})) && return by_structdata
    T <: Union{Dict,IdDict} && return by_dictionary
    isprimitivetype(T) ? by_bits : T <: Union{Core.TypeName,Method} ? by_structdata : by_fields
end

is_of_caller(method) = method.module !== @__MODULE__

# Types that are written without looking up their plan.
const Simple = Union{Nothing,Bool,Int32,Int64,Float64,String,Symbol}

mutable struct Writing
    out::Vector{UInt8}
    len::Int
    # Arrays whose memory is written unchanged, and their positions in `out`.
    lent::Vector{Tuple{Int,Any}}
    lent_len::Int
    plans::IdDict{Any,Plan}
    # Types none of whose values can hold a shared object.
    leaves::IdDict{Any,Bool}
    # The objects that have been found: ONCE, OFTEN, or their number in `_backrefs`.
    met::IdDict{Any,Int}
    # The shared objects, by their numbers.
    order::Vector{Any}
    # The results of user-defined `lower` and `structdata` for an object, so that they are called once.
    given::IdDict{Any,Any}
    # The bytes of types that have been written.
    types::IdDict{Any,Vector{UInt8}}
    stack_left::Int
    depth_left::Int
end

const ONCE, OFTEN = -1, -2

Writing() = Writing(Vector{UInt8}(undef, 1024), 0, [], 0, IdDict{Any,Plan}(), IdDict{Any,Bool}(), IdDict{Any,Int}(), [],
    IdDict{Any,Any}(), IdDict{Any,Vector{UInt8}}(), LEVELS, typemax(Int))

plan(w::Writing, @nospecialize(T)) = get!(() -> plan_of(T), w.plans, T)

# Whether an object can be identical to another.
has_identity(@nospecialize(x)) = x isa Array || is_mutable(typeof(x)) && !(x isa Union{String,Symbol,Module,Type,Core.SimpleVector})

# Finds the objects that are reached more than once.
function survey!(w::Writing, root)
    to_do = Any[root]
    while !isempty(to_do)
        x = pop!(to_do)
        x isa Union{Simple,Type,Module} && continue
        if has_identity(x)
            seen = get(w.met, x, 0)
            w.met[x] = seen == 0 ? ONCE : OFTEN
            seen == 0 || continue
        end
        push_parts!(w, to_do, x)
    end
end

function push_parts!(w::Writing, to_do, @nospecialize(x))
    T = typeof(x)
    p = plan(w, T)
    if p == by_array
        is_leaf(w, eltype(T)) || for i in eachindex(x)
            isassigned(x, i) && push!(to_do, x[i])
        end
    elseif p == by_symbols || p == by_dictionary
        for (k, v) in x
            k isa Symbol || push!(to_do, k)
            push!(to_do, v)
        end
    elseif p == by_lower || p == by_structdata
        given = given_for(w, x, p)
        # The result may be the object itself.
        given === x || push!(to_do, given)
    elseif p == by_fields || p == by_tuple
        is_leaf(w, T) || for i in 1:nfields(x)
            isdefined(x, i) && push!(to_do, getfield(x, i))
        end
    end
end

function given_for(w::Writing, @nospecialize(x), p)
    ask() = p == by_lower ? Base.invokelatest(lower, x) : Base.invokelatest(structdata, x)
    has_identity(x) ? get!(ask, w.given, x) : ask()
end

# Whether values of this type certainly contain no object with an identity. A type whose answer is not known yet is
# assumed to contain none.
function is_leaf(w::Writing, @nospecialize(T))
    haskey(w.leaves, T) && return w.leaves[T]
    w.leaves[T] = false
    w.leaves[T] = if T isa Union
        is_leaf(w, T.a) && is_leaf(w, T.b)
    elseif !(T isa DataType) || !isconcretetype(T)
        false
    elseif T <: Simple
        true
    else
        p = plan(w, T)
        p == by_bits || (p == by_fields || p == by_tuple) && !is_mutable(T) && all(F -> is_leaf(w, F), fieldtypes_of(T))
    end
end
