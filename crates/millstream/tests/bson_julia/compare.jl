# Loads with BSON.jl what Millstream wrote: julia compare.jl CORPUS FOLDER
# Every file of the corpus that Millstream read and wrote again must load as the original does, and built.bson must hold
# what the test `built` put in. Prints the differences, and exits with 1 if there are any.
import BSON
corpus, folder = ARGS
# How the corpus renders values; and the types that its files name.
include(joinpath(corpus, "sidecar.jl")); using .Sidecar
module Corpus
struct Point; x::Float64; y::Float64; end
struct Line; a::Point; b::Point; name::String; end
struct Box{T}; v::T; end
struct Grid{T,N}; cells::Array{T,N}; label::Symbol; end
mutable struct Node; id::Int; next::Any; end
mutable struct Tree; val::Int32; kids::Vector{Tree}; end
mutable struct Half; a; b; c; end
struct Padded; a::UInt8; b::UInt32; end
struct Empty end
struct Sensor; name::String; gain::Float32; samples::Vector{Int16}; mask::Vector{Bool}; cal::Matrix{Float64}; end
struct Opt; a::Union{Int,Nothing}; b::Union{String,Missing}; c::Any; end
@enum Color::Int32 red=1 green=2 blue=7
abstract type Shape end
struct Circle <: Shape; r::Float64; end
struct Square <: Shape; s::Int; end
double(x) = 2x
primitive type Bits32 32 end
end

text(path) =
    try
        tojson(render(BSON.load(path, Main)))
    catch error
        "error: " * first(sprint(showerror, error), 300)
    end

equal = different = 0
for name in sort(readdir(corpus))
    endswith(name, ".bson") || continue
    original, ours = text(joinpath(corpus, name)), text(joinpath(folder, name))
    if startswith(original, "error: ")
        println(name, " cannot be loaded by this BSON.jl: ", original)
    elseif original == ours
        global equal += 1
    else
        global different += 1
        println(name, "\n  original ", first(original, 500), "\n  ours     ", first(ours, 500))
    end
end

x = BSON.load(joinpath(folder, "built.bson"), Main)
check(what, good) = good || (global different += 1; println("built.bson: ", what, " is ", repr(get(x, what, nothing))))
for (what, value) in (
    :i8 => Int8(-3), :u128 => typemax(UInt128), :f16 => Float16(1.5), :f32 => 0.1f0, :char => 'é', :bool => true,
    :nothing => nothing, :text => "größe", :symbol => :α, :bytes => UInt8[1, 2, 3],
    :matrix => [1.0 3.0 5.0; 2.0 4.0 6.0], :cube => reshape(Int16[1:8;], 2, 2, 2), :zero => fill(2.5f0),
    :none => zeros(0, 3), :halves => Float16[1, Inf], :bools => [true, false], :waves => ComplexF32[1 - im, 0.5 + 2im],
    :bits => BitVector([true, false, true]), :bitmatrix => BitArray([true true false; false true true]),
    :tuple => (Int32(1), "x"), :named => (a = Int32(1), b = "x"), :pair => Int32(1) => "x",
    :complex => Complex{Int32}(1, 2), :rational => Int32(1) // Int32(2), :range => Int32(1):Int32(2),
    :dict => Dict("x" => Int32(7)), :set => Set(Int32[1, 2, 3]), :words => ["x" "x"], :type => Complex{Int32})
    check(what, typeof(x[what]) == typeof(value) && isequal(x[what], value))
end
check(:missing, x[:missing] === missing)
check(:list, x[:list] isa Vector{Any} && x[:list][3] === x[:inner][:same])
check(:circle, x[:circle] isa Corpus.Node && x[:circle].next === x[:circle])

println(equal, " files are equal, ", different, " differ")
exit(different == 0 ? 0 : 1)
