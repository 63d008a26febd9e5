# The files in vectors/julia-bson, and their types, which are in Main, where they were defined.

const folder = normpath(@__DIR__, "..", "..", "..", "..", "..", "vectors", "julia-bson")
const names = sort([splitext(f)[1] for f in readdir(folder) if endswith(f, ".bson")])
@assert length(names) >= 55

isdefined(Main, :Corpus) || @eval Main module Corpus
struct Point
    x::Float64
    y::Float64
end
struct Line
    a::Point
    b::Point
    name::String
end
struct Box{T}
    v::T
end
struct Grid{T,N}
    cells::Array{T,N}
    label::Symbol
end
mutable struct Node
    id::Int
    next::Any
end
mutable struct Tree
    val::Int32
    kids::Vector{Tree}
    Tree(v) = new(v, Tree[])
end
mutable struct Half
    a::Any
    b::Any
    c::Any
    Half() = new()
end
struct Padded
    a::UInt8
    b::UInt32
end
struct Empty end
struct Sensor
    name::String
    gain::Float32
    samples::Vector{Int16}
    mask::Vector{Bool}
    cal::Matrix{Float64}
end
struct Opt
    a::Union{Int,Nothing}
    b::Union{String,Missing}
    c::Any
end
@enum Color::Int32 red = 1 green = 2 blue = 7
abstract type Shape end
struct Circle <: Shape
    r::Float64
end
struct Square <: Shape
    s::Int
end
const ORIGIN = Point(0.0, 0.0)
double(x) = 2x
primitive type Bits32 32 end
end
