# Millstream's runners for `benchmarks/competitors/julia/lines.jl`.
using Millstream

# The drop-in replacement, first with a command that Julia opens, as at the beginning of its README, and then with a
# command that it starts itself.
ways["bibuffered-open"] = command -> loop(BiBufferedStream(open(command)))
ways["bibuffered"] = command -> loop(BiBufferedStream(command))
ways["eachrecord"] = command -> over(eachrecord(command))

# The position of each record, without accessing its bytes.
ways["batches"] = function (command)
    count = length = 0
    for batch in batches(command)
        count += Base.length(batch)
        for i in 1:Base.length(batch)
            length += Base.length(record(batch, i))
        end
    end
    (count = count, length = length)
end
