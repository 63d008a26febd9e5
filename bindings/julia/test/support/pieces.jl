# An IO that delivers bytes a few at a time.
struct Pieces <: IO
    io::IOBuffer
    most::Int
end
Base.eof(pieces::Pieces) = eof(pieces.io)
Base.bytesavailable(pieces::Pieces) = min(pieces.most, bytesavailable(pieces.io))
Base.unsafe_read(pieces::Pieces, to::Ptr{UInt8}, count::UInt) = unsafe_read(pieces.io, to, count)
