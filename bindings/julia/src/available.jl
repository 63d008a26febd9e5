# Reads bytes from any `IO` as soon as some are available.

# Writes at least one and at most `size` bytes to `to`, and waits only for the first. Returns their number, 0 at the
# end.
function take_available(io::IO, to::Ptr{UInt8}, size::Int)
    eof(io) && return 0
    count = min(bytesavailable(io), size)
    if count > 0
        unsafe_read(io, to, count)
        count
    else
        # This IO does not report how many bytes are available.
        unsafe_store!(to, read(io, UInt8))
        1
    end
end

# An `IO` as a source of the library, and the exception that it has thrown.
mutable struct Outside
    io::IO
    failure::Any
end

function fill_from_outside(user::Ptr{Cvoid}, space::Ptr{UInt8}, size::Csize_t)::Cssize_t
    outside = unsafe_pointer_to_objref(user)::Outside
    try
        take_available(outside.io, space, Int(size))
    catch failure
        outside.failure = failure
        -Libc.EIO
    end
end

function write_to_outside(user::Ptr{Cvoid}, bytes::Ptr{UInt8}, count::Csize_t)::Cssize_t
    outside = unsafe_pointer_to_objref(user)::Outside
    try
        unsafe_write(outside.io, bytes, count)
    catch failure
        outside.failure = failure
        -Libc.EIO
    end
end

# Calls the library; an exception of the `IO` is rethrown instead of the library's error for it.
function with_failure(call, outside)
    try
        call()
    catch
        outside isa Outside && outside.failure !== nothing || rethrow()
        failure, outside.failure = outside.failure, nothing
        throw(failure)
    end
end
