# The state while a file is read.

"""
    ParseCtx(modules...; allow_code = false, memory = nothing, depth = 100_000)

The options for reading a file: the modules in which names are looked up before `Main`, whether the file may supply
functions, closures, modules and other bindings, how much memory values without bytes in the file may use, and how deep
values may be nested.

```jldoctest
julia> io = IOBuffer(); bson(io, Dict(:f => sin));

julia> BSON.parse(seekstart(io), BSON.ParseCtx(allow_code = true))[:f](0.0)
0.0
```
"""
struct ParseCtx
    modules::Vector{Module}
    allow_code::Bool
    # Whether a vector whose elements have a common type gets that type, as in BSONqs but not in BSON.jl.
    narrow::Bool
    memory::Union{Nothing,Int}
    depth::Int
    # The number of values of a type that are read before code is compiled for it.
    patience::Int
end

ParseCtx(modules::Module...; allow_code::Bool = false, narrow::Bool = true, memory::Union{Nothing,Integer} = nothing,
    depth::Integer = 100_000, patience::Integer = 2_000) =
    ParseCtx(collect(Module, modules), allow_code, narrow, memory, depth, patience)

# The meaning of the bytes of a type in the file.
mutable struct TypeEntry
    at::Int
    len::Int
    type::Any
    form::UInt8
    # `Loader{T}()`, if there is code for T.
    loader::Any
    count::Int
end

# An entry of `_backrefs`.
mutable struct Shared
    kind::UInt8
    at::Int
    state::UInt8
    # The object while it is being created, and then the finished object.
    value::Any
    # Whether another value refers to it while it is being created.
    taken::Bool
end

const UNREAD, OPEN, READ = 0x00, 0x01, 0x02

# The number of types in the cache that finds types by their bytes.
const TYPE_SLOTS = 1024

"The traversal of one document, and its state."
mutable struct Reading <: Cursor
    bytes::Vector{UInt8}
    start::Ptr{UInt8}
    pos::Int
    stop::Int
    # The position after the last byte of the document.
    end_::Int
    ctx::ParseCtx
    types::Vector{TypeEntry}
    shared::Vector{Shared}
    # The required types of shared objects, which an earlier attempt has determined.
    wanted::Dict{Int,Any}
    # The number of elements without bytes that are still allowed; there is no other limit for them.
    empty_left::Int
    # The number of levels left on this stack, and in total.
    stack_left::Int
    depth_left::Int
    # The number of types that may still get their own code.
    compile_left::Int
    # The number of dictionary types that may be new in this session.
    dictionaries_left::Int
    # If arrays may use the file's own memory, the object that must stay alive for them; otherwise nothing.
    keeper::Any
    # The parts that are read from the file on demand (see source.jl); otherwise nothing.
    holes::Any
end

const NO_TYPE = TypeEntry(-1, -1, nothing, 0x00, nothing, 0)

Reading(bytes::Vector{UInt8}, offset::Int, len::Int, ctx::ParseCtx; keeper = nothing, holes = nothing) =
    Reading(bytes, pointer(bytes) + offset, 0, len, len, ctx, fill(NO_TYPE, TYPE_SLOTS), Shared[], Dict{Int,Any}(),
        something(ctx.memory, max(len, 1 << 20)), min(LEVELS, ctx.depth), max(ctx.depth - LEVELS, 0), 16 + len >> 16, 200 + len >> 12, keeper, holes)

# The number of levels per stack. A level takes a few hundred bytes, rarely a few thousand; a stack has 4 MB, of which
# the compiler may need one.
const LEVELS = 192

# Calls `read()` one level deeper. Deep values are safe, because levels get a new stack at intervals.
@inline function deeper(read::F, r) where {F}
    r.stack_left == 0 && return on_new_stack(read, r)
    r.stack_left -= 1
    x = read()
    r.stack_left += 1
    x
end

@noinline function on_new_stack(read, r)
    levels = min(LEVELS, r.depth_left)
    levels == 0 && out_of_depth(r)
    r.depth_left -= levels
    r.stack_left = levels
    result, failure = Ref{Any}(), Ref{Any}()
    task = Task() do
        try
            result[] = read()
        catch e
            failure[] = e
        end
        nothing
    end
    schedule(task)
    wait(task)
    isassigned(failure) && throw(failure[])
    r.stack_left = 0
    r.depth_left += levels
    result[]
end

out_of_depth(r::Reading) = too_deep("values nested more than $(r.ctx.depth) deep", "less depth, or a higher limit", r.pos)
