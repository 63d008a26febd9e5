# Waits for a reader in the way of Julia tasks, so that other tasks run and Ctrl-C works.
#
# If there is no timeout and no token, the reader's task waits itself. Otherwise another task waits, and the reader's
# task waits for an event that the other task, the timeout or the token notifies. An interrupted wait continues in the
# background, and the next wait uses its result, so that no data is lost.

# Waits with `wait_for_it` and returns its result, or `nothing` if the reader's timeout, its token or its waker ended the
# wait. The library reports a cancellation when it is called; a timeout is passed to it here, unless `is_ready()` now.
function wait_within(wait_for_it, is_ready, reader)
    reader.has_timeout || reader.cancel !== nothing || reader.waker !== nothing || return wait_for_it()
    pending = reader.pending
    if pending === nothing
        pending = reader.pending = Pending(wait_for_it)
    elseif !pending.ended
        # The previous state, without the cause that ended the previous wait.
        pending.event = Base.Event()
        pending.ended && notify(pending.event)
    end
    event = pending.event
    is_late = Ref(false)
    alarm = reader.has_timeout ? Timer(_ -> (is_late[] = true; notify(event)), wait_limit(reader)) : nothing
    try
        while_waking(() -> while_waking(() -> wait(event), reader.cancel, event), reader.waker, event)
    finally
        alarm === nothing || close(alarm)
    end
    if pending.ended
        reader.pending = nothing
        pending.failure === nothing || throw(pending.failure)
        return pending.found
    end
    is_late[] && isopen(reader) && !is_ready() && @call millstream_reader_stall(reader)
    nothing
end

# The seconds that a wait may take: the stall timeout, or the rest of the total timeout.
wait_limit(reader) = (@c millstream_reader_wait_limit_ns(reader)) / 1e9

# Reads, after Julia has waited for data, until `is_enough(bytes, length)` is true for the unread bytes. It stops
# earlier if only the library can continue: at the end, if there is an error to report, and for sources that Julia
# cannot wait for. Returns false if the reader's waker ended the wait.
function await(is_enough, reader::Reader)
    check_open(reader)
    settle(reader)
    while true
        @call millstream_reader_buffer(reader, reader.buffer, reader.len)
        reader.len[] > 0 && is_enough(reader.buffer[], reader.len[]) && return true
        readable = await_readable(reader)
        readable === nothing && return false
        readable || return true
        error = Ref{Ptr{Cvoid}}(C_NULL)
        code = @c millstream_reader_fill(reader, reader.buffer, reader.len, reader.added, error)
        if code == record_too_long
            # The call that follows reports the error, with its position.
            @c millstream_error_free(error[])
            return true
        end
        code == 0 || reading(() -> throw_error(code, error[]), reader)
        reader.added[] == 0 && return true
    end
end

const record_too_long = 6

# Waits until a read would find bytes. Returns false at the end, after a timeout or a cancellation, and if Julia cannot
# determine this; `nothing` if the reader's waker ended the wait.
function await_readable(reader::Reader)
    reader.source isa Union{Outside,Remote} || reader.is_ours || return false
    reader.waits && throw(only_one_task())
    reader.waits = true
    try
        reader.source isa Outside ? await_io(reader, reader.source.io) :
        reader.source isa Remote ? await_object(reader) : await_fd(reader)
    finally
        reader.waits = false
    end
end

only_one_task() = ErrorException("another task is already waiting for this stream: only one at a time can read it")

function await_io(reader, io)
    reader.cancel !== nothing && iscancelled(reader.cancel) && return false
    reader.pending === nothing && bytesavailable(io) > 0 && return true
    is_at_end = wait_within(() -> eof(io), () -> bytesavailable(io) > 0, reader)
    is_at_end === nothing && is_awake(reader.waker) ? nothing : is_at_end === false
end

# Threads of the library receive an object and apply the time limits. There is no descriptor that Julia could wait for, so
# it asks again and again. The library does not know whether it has data after a batch that ended at its limit, and after a
# cancellation; then the call that follows waits itself.
function await_object(reader)
    pause = 0.001
    while isopen(reader) && (@c millstream_reader_waits(reader)) == waits_yes
        reader.cancel !== nothing && iscancelled(reader.cancel) && return false
        is_awake(reader.waker) && return nothing
        sleep(pause)
        pause = min(2 * pause, 0.01)
    end
    isopen(reader)
end

function await_fd(reader)
    while isopen(reader)
        reader.cancel !== nothing && iscancelled(reader.cancel) && return false
        fd = @c millstream_reader_waits_for(reader)
        if fd < 0
            # The library would wait itself: results come first.
            would_wait = reader.waker !== nothing && (@c millstream_reader_waits(reader)) == waits_yes
            return would_wait ? nothing : false
        end
        ready = poll_now(fd)
        # At the end of a pipe there are no bytes, and it may be necessary to wait for the command's exit.
        ready == 0 || return ready & POLLIN != 0
        is_awake(reader.waker) && return nothing
        watch(reader, fd)
        watcher = reader.watcher
        wait_within(() -> wait(watcher), () -> poll_now(fd) != 0, reader)
    end
    false
end

const POLLIN = Cshort(1)

# MILLSTREAM_WAITS_YES
const waits_yes = 2

# Returns the operations for which a file descriptor is ready, without waiting.
function poll_now(fd)
    asked = Ref((Cint(fd), POLLIN, Cshort(0)))
    count = ccall(:poll, Cint, (Ptr{Cvoid}, Culong, Cint), asked, 1, 0)
    count > 0 ? asked[][3] : Cshort(0)
end

function watch(reader, fd)
    reader.watched == fd && return
    unwatch(reader)
    reader.watcher = FDWatcher(RawFD(fd), true, false)
    reader.watched = fd
end

# Called before the library closes the file descriptor, so that Julia does not continue to wait for another descriptor
# with the same number.
function unwatch(reader)
    reader.watcher === nothing || close(reader.watcher)
    reader.watcher = nothing
    reader.watched = -1
    reader.pending = nothing
end
