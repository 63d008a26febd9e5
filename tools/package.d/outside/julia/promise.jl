# Uses the installed package: `tools/package --check julia` runs this in an empty environment.
using Millstream

# The end of a stream means that its command succeeded.
got = String[]
failed = try
    foreach(line -> push!(got, String(line)), eachrecord(`sh -c 'echo one; echo two; exit 3'`))
    nothing
catch error
    error
end
@assert failed isa MillstreamError && failed.command.status == 3
@assert got == ["one", "two"]

# A file is there when its writer is closed.
Millstream.Writer("out.txt") do writer
    write(writer, "a 1\n")
end
@assert read("out.txt", String) == "a 1\n"
rm("out.txt")

# Compressed input is decoded.
@assert count(_ -> true, eachrecord("lines.txt.gz")) == 1000

# A document.
@assert [map["total"] for map in Millstream.BSON.documents(Millstream.BSON.encode((total = 7,)))] == [7]

println(dirname(Millstream.library_path[]))
println(Millstream.library_version())
println("all as promised")
