# Objects as sources and sinks, in a store on this machine: `tools/object-server`.
using Millstream, Test
using Millstream: BSON, CancelToken, ColumnBatches, Command, Mapped, Reader, Remote, UnixSocket, Writer, cancel, columns,
    dicts, name, namedtuples, next_line, parallel, rows
using Millstream.BSON: bson, @save, @load

const root = joinpath(@__DIR__, "..", "..", "..")

failure(call) = try call() catch error; error end
kind(call) = failure(call).kind
lines_of(source; options...) = collect(eachrecord(source; options...))

@testset "which texts are URLs" begin
    vectors = [split(line, '\t') for line in eachline(joinpath(root, "vectors", "urls.tsv")) if !startswith(line, '#')]
    @test length(vectors) > 5
    for (text, expected) in vectors
        @test (Millstream.resolved(text) isa Remote) == Base.parse(Bool, expected)
    end
    @test Millstream.resolved("\xff") == "\xff"
    # A file with such a name.
    mktempdir() do directory
        mkpath(joinpath(directory, "s3:", "bucket"))
        cd(directory) do
            Writer(writer -> put!(writer, "a\n"), "./s3://bucket/key")
            @test lines_of("./s3://bucket/key") == ["a"]
        end
    end
end

@testset "options" begin
    url = "https://host/a"
    message(call) = sprint(showerror, failure(call)::ArgumentError)
    @test occursin("unknown option anonymus of Remote: expected one such as anonymous",
        message(() -> Remote(url; anonymus = true)))
    @test occursin("anonymous cannot be 1: expected true or false", message(() -> Remote(url; anonymous = 1)))
    for option in ((range_size = -1,), (connections = 1.5,), (idle_timeout = "1",), (endpoint = 1,), (retry_for = -1,))
        @test occursin("$(only(keys(option))) cannot be", message(() -> Remote(url; option...)))
    end
    for headers in (["A" => 1], "A" => "secret", [("A", "secret")], "secret", 1, ["A" => "secret\0"])
        refused = message(() -> Remote(url; headers = headers))
        @test occursin("headers are pairs of texts", refused) && !occursin("secret", refused)
    end
    refused = message(() -> Remote("$url?secret\0"))
    @test occursin("NUL", refused) && !occursin("secret", refused)
    # What only the library checks, without a request.
    @test kind(() -> Reader(Remote("no URL"))) == :invalid_option
    @test kind(() -> Writer(Remote("s3://bucket/key"; part_size = 1, anonymous = true))) == :invalid_option
    refused = failure(() -> Reader(Remote(url; headers = ["A" => "secret\n"])))
    @test refused.kind == :invalid_option && !occursin("secret", refused.message)
end

@testset "how a remote object is shown" begin
    for (url, expected) in ("https://host/a" => "https://host/a", "HTTPS://secret@[::1]:12?secret" => "HTTPS://[::1]:12",
        "http://user:secret@host:12/a/b?secret#secret" => "http://host:12/a/b", "gs://bucket/a" => "gs://bucket/a",
        "s3://bucket/a?b#c" => "s3://bucket/a?b#c", "http://a:secret@b:secret@host/" => "http://host/",
        "http://user:sec/ret@host/" => "a URL", "http:///user:secret@host/" => "a URL", "http://\\a:secret@host/" => "a URL",
        "secret" => "a URL")
        remote = Remote(url; headers = ["Authorization" => "secret"])
        @test repr(remote) == repr(MIME"text/plain"(), remote) == "Remote($(repr(expected)))"
    end
end

@testset "what objects cannot be" begin
    for url in ("s3://bucket/key", Remote("s3://bucket/key"))
        @test occursin("cannot be mapped", sprint(showerror, failure(() -> Mapped(url))::ArgumentError))
        @test occursin("cannot be a socket", sprint(showerror, failure(() -> UnixSocket(url))::ArgumentError))
        @test occursin("cannot be mapped", sprint(showerror, failure(() -> BSON.load(url; mmap = true))::ArgumentError))
        @test kind(() -> Reader(url; follow = :growing)) == :invalid_option
        @test kind(() -> Reader(url; pin = :identity)) == :invalid_option
        @test kind(() -> Writer(url; existing = :append)) == :invalid_option
    end
    for url in ("gs://bucket", "az://container/")
        @test kind(() -> Reader(url)) == kind(() -> Writer(url)) == :invalid_option
    end
    refused = failure(() -> Writer("http://user:secret@127.0.0.1:1/a?secret"))
    @test refused.kind == :unsupported && refused.name == "http://127.0.0.1:1/a" && !occursin("secret", refused.message)
end

# ---- with a store ----

if Sys.which("python3") === nothing
    get(ENV, "CI", "") == "true" && error("python3 is missing: see tools/setup")
    @warn "SKIPPED: python3 is missing: see tools/setup"
else

# It reports connections that a reader has closed early.
const store = open(pipeline(`python3 $(joinpath(root, "tools", "object-server"))`; stderr = devnull), "r+")
const address = readline(store)
object(key; options...) = Remote("s3://bucket/$key"; endpoint = address, anonymous = true, options...)
web(key; options...) = Remote("$address/bucket/$key"; options...)
put_object(key, bytes) = Writer(writer -> write(writer, bytes), object(key); encode = :off)
is_missing(key) = kind(() -> Reader(object(key))) == :open_failed

@testset "what is written is read" begin
    for key in ("a.txt", "with spaces/ä?#%.txt", "a.txt.gz", "a.txt.zst")
        writer = Writer(object(key))
        @test repr(writer) == "Writer($(repr("s3://bucket/$key")))"
        put!(writer, "one\n", 2, '\n')
        @test is_missing(key)
        close(writer)
        @test lines_of(object(key)) == ["one", "2"]
    end
    @test read(Reader(object("a.txt.gz"); decode = :off))[1:2] == [0x1f, 0x8b]
    @test repr(Reader(web("a.txt"))) == "Reader($(repr("$address/bucket/a.txt")))"
    # An empty object, and one of several ranges.
    put_object("empty", "")
    @test lines_of(object("empty")) == []
    bytes = rand(UInt8, 3_000_000)
    put_object("large", bytes)
    for read_ahead in (nothing, :auto, :off)
        options = read_ahead === nothing ? () : (read_ahead = read_ahead,)
        @test Reader(read, object("large"; range_size = 500_000, connections = 3); options...) == bytes
    end
    # Early ends.
    Reader(reader -> (@test read(reader, 10) == bytes[1:10]), object("large"))
    @test codeunits(first(eachrecord(object("large"), Millstream.Fixed(10)))) == bytes[1:10]
end

@testset "every function that takes a path" begin
    put_object("people.csv", "name,age\nAnn,41\nBob,17\n")
    put_object("late.csv", "n\n" * "1\n"^20_000 * "2.5\n")
    put_object("people.json", "{\"people\": [{\"name\": \"Ann\"}, {\"name\": \"Bob\"}]}")
    put_object("documents.bson", [BSON.encode(BSON.Map("a" => 1)); BSON.encode(BSON.Map("a" => 2))])
    put_object("values.bson", (io = IOBuffer(); bson(io, Dict(:a => [1, 2])); take!(io)))
    all_lines = ["name,age", "Ann,41", "Bob,17"]
    for at in (object, web, key -> "$address/bucket/$key")
        people = at("people.csv")
        @test readlines(Reader(people)) == all_lines
        @test Reader(count, people) == 3
        @test lines_of(people) == all_lines
        @test collect(Iterators.flatten(batches(people))) == all_lines
        @test collect(parallel(length, eachrecord(people))) == length.(all_lines)
        @test collect(rows(people))[2] == ["Ann", "41"]
        @test first(namedtuples(people)) == (name = "Ann", age = "41")
        @test first(dicts(people)) == Dict("name" => "Ann", "age" => "41")
        @test columns(people, (name = String, age = String); separator = ',').age == ["age", "41", "17"]
        @test columns(people).age == [41, 17]
        @test [batch.name for batch in ColumnBatches(people)] == [["Ann", "Bob"]]
        @test last(columns(at("late.csv"); infer = :all).n) == 2.5
        @test columns(at("people.json"); json_elements = "/people").name == ["Ann", "Bob"]
        @test [document["a"] for document in BSON.documents(at("documents.bson"))] == [1, 2]
        for load in (BSON.load, BSON.load_compat, source -> BSON.parse(source, BSON.ParseCtx()))
            @test load(at("values.bson")) == Dict(:a => [1, 2])
        end
        @test haskey(BSON.parse(at("values.bson")), :a)
        @load at("values.bson") a
        @test a == [1, 2]
        @test BSON.fileio_load((filename = at("values.bson"),)) == Dict(:a => [1, 2])
        people isa Remote && @test lines_of(Command(`cat`; stdin = people)) == all_lines
        people isa String && @test lines_of(pipeline(people, `cat`, `tail -n 1`)) == all_lines[3:3]
    end
    bson(object("a.bson"), Dict(:a => 1))
    @test BSON.load(object("a.bson")) == Dict(:a => 1)
    bson(object("a.bson.gz"); b = 2)
    @test BSON.load(object("a.bson.gz")) == Dict(:b => 2)
    x = 3
    @save object("a.bson") x
    @test BSON.load(object("a.bson")) == Dict(:x => 3)
    # URLs of a store, whose settings are in the environment.
    withenv("AWS_ENDPOINT_URL" => address, "AWS_SKIP_SIGNATURE" => "true") do
        Writer(writer -> put!(writer, "one\n"), "s3://bucket/by-url.gz")
        @test lines_of("S3://bucket/by-url.gz") == ["one"]
        bson("s3://bucket/by-url.bson"; a = 1)
        @test BSON.load("s3://bucket/by-url.bson") == Dict(:a => 1)
        BSON.fileio_save((filename = "s3://bucket/by-url.bson",), :a => 2)
        @test BSON.load("s3://bucket/by-url.bson") == Dict(:a => 2)
    end
end

@testset "a writer that is not closed leaves no object" begin
    @test failure(() -> Writer(writer -> (put!(writer, "lost"); error("mine")), object("lost"))) == ErrorException("mine")
    abandoned = Writer(object("lost"); capacity = 1)
    write(abandoned, "lost")
    finalize(abandoned)
    @test !isopen(abandoned) && is_missing("lost")
    @test_throws ArgumentError bson(object("lost"), Dict(Symbol("a\0") => 1))
    @test is_missing("lost")
end

@testset "an object that exists" begin
    put_object("exists", "old\n")
    created(key) = Writer(writer -> put!(writer, "new\n"), object(key); existing = :create_new)
    refused = failure(() -> created("exists"))
    @test refused.kind == :already_exists && refused.name == "s3://bucket/exists"
    @test lines_of(object("exists")) == ["old"]
    created("new")
    @test lines_of(object("new")) == ["new"]
end

@testset "objects that are missing or cut" begin
    for (source, expected) in (object("none") => "s3://bucket/none", web("none?secret") => "$address/bucket/none")
        missing_one = failure(() -> Reader(source))
        @test missing_one.kind == :open_failed && missing_one.name == expected
        @test startswith(missing_one.message, "$expected: open failed") && !occursin("secret", missing_one.message)
    end
    lines = ["line $i" for i in 1:100_000]
    put_object("lines", join(string.(lines, '\n')))
    for use in (eachrecord, eachline ∘ Reader, source -> parallel(identity, eachrecord(source)))
        found = String[]
        source = web("cut/lines"; headers = ["Authorization" => "secret"])
        cut = failure(() -> foreach(line -> push!(found, line), use(source)))
        cut isa MillstreamError || rethrow(cut)
        @test cut.kind == :remote_failed && cut.name == "$address/bucket/cut/lines"
        @test occursin("at byte $(cut.offset)", cut.message)
        @test 40_000 < length(found) < 60_000 && found == lines[1:length(found)]
        @test !occursin("secret", sprint(showerror, cut) * repr(MIME"text/plain"(), cut))
    end
    @test kind(() -> columns(web("cut/lines"), Millstream.Lines())) == :remote_failed
    # Without a version of the object, it cannot be read twice.
    put_object("once.csv", "n\n1\n")
    refused = failure(() -> columns(web("once/once.csv"); infer = :all))
    @test refused.kind == :invalid_option && occursin("an object without ranges or a strong ETag", refused.found)
    @test columns(web("once/once.csv")).n == [1]
    @test kind(() -> lines_of(Command(`cat`; stdin = web("cut/lines")))) == :remote_failed
    @test kind(() -> lines_of(Command(`cat`; stdin = web("none")))) == :open_failed
    # A command that needs only the first line.
    @test lines_of(Command(`head -n 1`; stdin = web("lines"))) == lines[1:1]
end

@testset "headers in $(nameof(typeof(headers)))" for headers in (["X-First" => "one", "X-Second" => "two"],
    Dict("X-First" => "one", "X-Second" => "two"), ("X-First" => "one", SubString("X-Second") => SubString("two")),
    Channel(headers -> foreach(pair -> put!(headers, pair), ("X-First" => "one", "X-Second" => "two"))))
    remote = web("headers"; headers = headers)
    @test issubset(["x-first: one", "x-second: two"], lines_of(remote))
    @test !occursin("one", repr(remote)) && !occursin("one", repr(Reader(remote)))
end

close(store.in)
@test success(store)

# ---- waiting ----

# Sends the rest of an object when it gets a line.
const halting_server = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
connection.recv(65536)
connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 8\\r\\n\\r\\none\\ntw")
if sys.stdin.readline():
    connection.sendall(b"o\\n")
"""

# Calls `use` with a reader whose first line was read, while nothing more has arrived, and a function that sends the rest.
function with_halted(use; options...)
    server = open(`python3 -c $halting_server`, "r+")
    url = "http://127.0.0.1:$(readline(server))/a"
    use(Reader(url; options...), () -> println(server))
    close(server.in)
    wait(server)
end

@testset "other tasks run while a reader waits" begin
    with_halted() do reader, send_rest
        @test next_line(reader) == "one"
        @async send_rest()
        @test next_line(reader) == "two" && next_line(reader) === nothing
    end
end

@testset "a wait is interrupted by $kind" for kind in ("an interrupt", "a token")
    token = CancelToken()
    with_halted(cancel = token) do reader, send_rest
        @test next_line(reader) == "one"
        task = @async failure(() -> next_line(reader))
        yield()
        kind == "a token" ? cancel(token) : schedule(task, InterruptException(); error = true)
        @test kind == "a token" ? fetch(task).kind == :cancelled : fetch(task) isa InterruptException
        reset(token)
        send_rest()
        @test next_line(reader) == "two" && next_line(reader) === nothing
    end
end

@testset "time limits, and closing" begin
    for (options, expected) in ((stall_timeout = 0.05,) => :stalled, (total_timeout = 0.5,) => :timed_out)
        with_halted(; options...) do reader, _
            @test next_line(reader) == "one"
            @test kind(() -> next_line(reader)) == expected
        end
    end
    with_halted() do reader, _
        @test next_line(reader) == "one"
        task = @async failure(() -> next_line(reader))
        yield()
        close(reader)
        @test fetch(task) isa MillstreamError
    end
end

end
