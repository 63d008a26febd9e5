# Lines of a command's output in Julia, read with Base or with Millstream (benchmarks/millstream/julia/lines.jl).
#
#     julia lines.jl WAY COMMAND ARGUMENT...
#
# The first pass runs Julia's compiler; the second is timed, and its allocations are counted.

# Returns the number of lines and their total length in bytes.
function loop(io)
    count = length = 0
    while !eof(io)
        line = readline(io)
        count += 1
        length += sizeof(line)
    end
    close(io)
    (count = count, length = length)
end

function over(lines)
    count = length = 0
    for line in lines
        count += 1
        length += sizeof(line)
    end
    (count = count, length = length)
end

const ways = Dict{String,Function}(
    # As in the README of the original package.
    "open" => command -> loop(open(command)),
    "eachline" => command -> over(eachline(command)),
)

way, command = ARGS[1], Cmd(ARGS[2:end])
haskey(ways, way) || include(joinpath(@__DIR__, "..", "..", "millstream", "julia", "lines.jl"))

function measure(read)
    read(command)
    timed = @timed read(command)
    answer, seconds, collected = timed[1], timed[2], timed[5]
    asked = collected.poolalloc + collected.bigalloc + collected.malloc + collected.realloc
    println(join(("$key=$value" for (key, value) in pairs(answer)), ' '), " ns=", round(Int, 1e9 * seconds), " allocations=", asked)
end
Base.invokelatest(measure, ways[way])
