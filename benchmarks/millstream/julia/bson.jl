# BSON in Julia: Millstream.BSON, a runner that only reads the bytes, and a simple traversal of the document.
#
#     bson.jl WORK FILE|COUNT [--once]
#
# The tasks on a FILE (arrays-mapped, arrays-copied, arrays-read) use the model that documents.rs writes. Millstream
# first writes it again, which aligns the arrays; arrays-unaligned maps the original file. The tasks on a COUNT
# (structs-mapped, structs-copied, structs-read, structs-walk) create this many nested structs and write them. The first
# pass is not timed and sums the loaded values, which is the answer; the median of the other passes is printed. With
# --once, the first pass in the process is timed, including compilation.

using Millstream: BSON

include(joinpath(@__DIR__, "..", "..", "competitors", "julia", "walk.jl"))

struct Point
    x::Float64
    y::Float64
end

struct Line
    from::Point
    to::Point
    name::String
end

struct Item
    id::Int64
    lines::Vector{Line}
    label::Union{Nothing,String}
end

# The numbers are small or multiples of one half, so that sums are exact.
item(i) = Item(i, [Line(Point(i % 1000, j / 2), Point(j, i % 77), "line $j of $i") for j in 1:3], i % 4 == 0 ? nothing : "item $i")

function structs_answer(items)
    sum = text = 0.0
    for item in items
        sum += item.id
        text += item.label === nothing ? 0 : sizeof(item.label)
        for line in item.lines
            sum += 2 * (line.from.x + line.from.y + line.to.x + line.to.y)
            text += sizeof(line.name)
        end
    end
    (count = length(items), sum = Int(sum), text = Int(text))
end

# The sum of a tree that the traversal has created.
field(tree, i) = tree["data"][i]
function walked_answer(root)
    items = root["items"]
    sum = text = 0.0
    for item in items
        label = field(item, 3)
        sum += field(item, 1)
        text += label === nothing ? 0 : sizeof(label)
        for line in field(item, 2)
            for point in (field(line, 1), field(line, 2))
                sum += 2 * (field(point, 1) + field(point, 2))
            end
            text += sizeof(field(line, 3))
        end
    end
    (count = length(items), sum = Int(sum), text = Int(text))
end

# All arrays, at any position, as in the answer of the Rust runner for a model.
arrays(x::Array{Float32}) = Any[x]
arrays(x::AbstractDict) = reduce(vcat, map(arrays, collect(values(x))); init = Any[])
arrays(x::AbstractVector) = reduce(vcat, map(arrays, x); init = Any[])
arrays(x) = Any[]
function arrays_answer(root)
    found = arrays(root)
    (count = length(found), floats = sum(length, found))
end

function main(work, subject, once)
    mktempdir(isdir("/dev/shm") ? "/dev/shm" : tempdir()) do folder
        path = joinpath(folder, "input.bson")
        if startswith(work, "structs")
            BSON.bson(path, Dict(:items => [item(i) for i in 1:Base.parse(Int, subject)]))
        elseif work == "arrays-unaligned"
            path = subject
        else
            BSON.bson(path, BSON.load(subject; mmap = true))
        end
        GC.gc()
        load, answer = works[work]
        once && (load = timed_once(load))
        println(join(("$k=$v" for (k, v) in pairs(answer(load(path)))), " "), " ns=", once ? first_pass[] : timed(load, path))
    end
end

const first_pass = Ref(0)
timed_once(load) = path -> (start = time_ns(); x = load(path); first_pass[] = time_ns() - start; x)

function timed(load, path)
    times = Int[]
    while length(times) < 3 || length(times) < 15 && sum(times) < 400_000_000
        GC.gc()
        start = time_ns()
        x = load(path)
        push!(times, time_ns() - start)
        x = nothing
    end
    sort(times)[end÷2+1]
end

const works = Dict(
    "structs-mapped" => (path -> BSON.load(path; mmap = true), root -> structs_answer(root[:items])),
    "structs-copied" => (path -> BSON.load(path), root -> structs_answer(root[:items])),
    "structs-read" => (path -> read(path), bytes -> structs_answer(BSON.load(IOBuffer(bytes))[:items])),
    "structs-walk" => (path -> Walk.load(path), walked_answer),
    "arrays-mapped" => (path -> BSON.load(path; mmap = true), arrays_answer),
    "arrays-copied" => (path -> BSON.load(path), arrays_answer),
    "arrays-unaligned" => (path -> BSON.load(path; mmap = true), arrays_answer),
    "arrays-read" => (path -> read(path), bytes -> arrays_answer(BSON.load(IOBuffer(bytes); mmap = true))),
)

main(ARGS[1], ARGS[2], "--once" in ARGS)
