# Decodes any BSON document into dictionaries and vectors, as a Julia program without known types would: with a buffer,
# `read` for each number, and `readuntil` for each key.
module Walk

load(path) = document(IOBuffer(read(path)))

function document(io)
    read(io, Int32)
    members = Dict{String,Any}()
    while (kind = read(io, UInt8)) != 0x00
        key = readuntil(io, '\0')
        members[key] = value(io, kind)
    end
    members
end

function array(io)
    read(io, Int32)
    items = Any[]
    while (kind = read(io, UInt8)) != 0x00
        readuntil(io, '\0')
        push!(items, value(io, kind))
    end
    items
end

function value(io, kind)
    if kind == 0x01
        read(io, Float64)
    elseif kind == 0x02
        text = String(read(io, read(io, Int32) - 1))
        skip(io, 1)
        text
    elseif kind == 0x03
        document(io)
    elseif kind == 0x04
        array(io)
    elseif kind == 0x05
        len = read(io, Int32)
        skip(io, 1)
        read(io, len)
    elseif kind == 0x08
        read(io, Bool)
    elseif kind == 0x0a
        nothing
    elseif kind == 0x10
        read(io, Int32)
    elseif kind == 0x12
        read(io, Int64)
    else
        error("type $kind")
    end
end

end
