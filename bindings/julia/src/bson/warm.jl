# Runs the common cases while the package is precompiled, so that the first load of a session is faster.

let io = IOBuffer()
    bson(io, Dict(:a => Any[1, "b", :c, (1, 2.5), nothing], :d => Dict("e" => [1.5, 2.0]), :f => 1 + 2im, :g => UInt8[1]))
    load(seekstart(io))
    parse(seekstart(io))
    Document(seekstart(io))[:f]
end
