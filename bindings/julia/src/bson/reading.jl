# What is known while a file is read.

"""
    ParseCtx(modules...; allow_code = false, memory = nothing, depth = 100_000)

How a file is read: in which modules names are looked up before `Main`, whether it may supply functions, closures,
modules and other bindings, how much memory values without bytes in the file may use, and how deep values may be nested.

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
    # How many values of a type are read before code is compiled for it.
    patience::Int
end

ParseCtx(modules::Module...; allow_code::Bool = false, narrow::Bool = true, memory::Union{Nothing,Integer} = nothing,
    depth::Integer = 100_000, patience::Integer = 2_000) =
    ParseCtx(collect(Module, modules), allow_code, narrow, memory, depth, patience)

# What the bytes of a type in the file mean, once known.
mutable struct TypeEntry
    at::Int
    len::Int
    type::Any
    form::UInt8
    # `Loader{T}()`, once there is code for T.
    loader::Any
    count::Int
end

# An entry of `_backrefs`.
mutable struct Shared
    kind::UInt8
    at::Int
    state::UInt8
    # The object while it is being made, and then itself.
    value::Any
    # Whether something refers to it while it is being made.
    taken::Bool
end

const UNREAD, OPEN, READ = 0x00, 0x01, 0x02

# As many types are found by their bytes at once.
const TYPE_SLOTS = 1024

"The traversal of one document, with what it has learned."
mutable struct Reading <: Cursor
    bytes::Vector{UInt8}
    start::Ptr{UInt8}
    pos::Int
    stop::Int
    # After the last byte of the document.
    end_::Int
    ctx::ParseCtx
    types::Vector{TypeEntry}
    shared::Vector{Shared}
    # The required types of shared objects, as learned by an earlier attempt.
    wanted::Dict{Int,Any}
    # How many elements without bytes are still allowed: nothing else limits them.
    empty_left::Int
    # How many levels are left on this stack, and how many at all.
    room::Int
    depth_left::Int
    # How many types may still get their own code.
    compile_left::Int
    # How many types of dictionaries may be new to this session.
    dictionaries_left::Int
    # Where arrays may lie in the file's own memory: what must stay alive for it; else nothing.
    keeper::Any
    # What is read from the file only when it is wanted (see source.jl); else nothing.
    holes::Any
end

const NO_TYPE = TypeEntry(-1, -1, nothing, 0x00, nothing, 0)

Reading(bytes::Vector{UInt8}, offset::Int, len::Int, ctx::ParseCtx; keeper = nothing, holes = nothing) =
    Reading(bytes, pointer(bytes) + offset, 0, len, len, ctx, fill(NO_TYPE, TYPE_SLOTS), Shared[], Dict{Int,Any}(),
        something(ctx.memory, max(len, 1 << 20)), min(LEVELS, ctx.depth), max(ctx.depth - LEVELS, 0), 16 + len >> 16, 200 + len >> 12, keeper, holes)

# How many levels continue one stack. A level takes some hundred bytes, seldom some thousand; a stack has 4 MB, of which
# the compiler may need one.
const LEVELS = 192

# Calls `read()` one level deeper. Depth is no danger, because the next level gets a new stack at intervals.
@inline function deeper(read::F, r) where {F}
    r.room == 0 && return on_new_stack(read, r)
    r.room -= 1
    x = read()
    r.room += 1
    x
end

@noinline function on_new_stack(read, r)
    levels = min(LEVELS, r.depth_left)
    levels == 0 && out_of_depth(r)
    r.depth_left -= levels
    r.room = levels
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
    r.room = 0
    r.depth_left += levels
    result[]
end

out_of_depth(r::Reading) = too_deep("values nested more than $(r.ctx.depth) deep", "less depth, or a higher limit", r.pos)
