# Types of many kinds, in Main, where files refer to them.
isdefined(Main, :BSONTypes) || @eval Main module BSONTypes
mutable struct Foo
    x::Any
end
struct Of{A}
    x::A
end
struct Nothing_ end
struct Wide
    i8::Int8
    u16::UInt16
    f32::Float32
    c::Char
    z::Complex{Float32}
    s::Symbol
    t::Tuple{Int,String}
    n::NamedTuple{(:a, :b),Tuple{Int,Float64}}
    d::Dict{String,Int}
    o::Union{Nothing,Float64}
    m::Union{Missing,String}
    v::Vector{Of{Int}}
    w::Matrix{Float32}
    b::Vector{UInt8}
    any::Any
    p::Ptr{Cvoid}
end
mutable struct Tree
    name::String
    kids::Vector{Tree}
    up::Union{Nothing,Tree}
end
mutable struct Some_
    first::Any
    last::String
    Some_() = new()
    Some_(x) = new(x)
end
struct Cons
    head::Int
    tail::Union{Nothing,Cons}
end
mutable struct Cell
    tail::Any
end
# A type whose author defines how it is written.
mutable struct Cache
    path::String
    opened::Int
end
struct Celsius
    degrees::Float64
end
struct Padded
    a::UInt8
    b::UInt32
end
struct Pointing
    a::Ptr{Cvoid}
end
end
