# How a reader is waited for: as Julia tasks do, so that others run and Ctrl-C works.
#
# If nothing else can end a wait, the reader's task waits itself. If a timeout or a token can, another task waits, and
# both wait for an event that any of them notifies. An interrupted wait continues, and the next one takes it over:
# nothing that it finds is lost.

# Waits with `wait_for_it` and returns its result; or `nothing` if the reader's timeout or its token ended the wait. The
# library reports a cancel when it is called; it learns about a timeout here, unless `is_ready()` now.
function wait_within(wait_for_it, is_ready, reader)
    reader.stall_timeout == 0 && reader.cancel === nothing && return wait_for_it()
    pending = reader.pending
    if pending === nothing
        pending = reader.pending = Pending(wait_for_it)
    elseif !pending.ended
        # As it was, but for the one that ended the wait before.
        pending.event = Base.Event()
        pending.ended && notify(pending.event)
    end
    event = pending.event
    is_late = Ref(false)
    alarm = reader.stall_timeout == 0 ? nothing : Timer(_ -> (is_late[] = true; notify(event)), reader.stall_timeout)
    try
        while_waking(() -> wait(event), reader.cancel, event)
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

# Continues reading, once Julia has waited for something to read, until `is_enough(bytes, length)` of the unread bytes;
# or until only the library can know more: at the end, with an error to report, and for sources that Julia cannot wait
# for.
function await(is_enough, reader::Reader)
    check_open(reader)
    give_back(reader)
    while true
        @call millstream_reader_buffer(reader, reader.buffer, reader.len)
        reader.len[] > 0 && is_enough(reader.buffer[], reader.len[]) && return
        await_readable(reader) || return
        error = Ref{Ptr{Cvoid}}(C_NULL)
        code = @c millstream_reader_fill(reader, reader.buffer, reader.len, reader.added, error)
        if code == record_too_long
            # The call that follows reports that, with its position.
            @c millstream_error_free(error[])
            return
        end
        code == 0 || with_failure(() -> throw_error(code, error[]), reader.source)
        reader.added[] == 0 && return
    end
end

const record_too_long = 6

# Waits until a read would find bytes. Returns whether it would: not at the end, not after a timeout or a cancel, and not where
# Julia cannot know.
function await_readable(reader::Reader)
    reader.source isa Outside || reader.is_ours || return false
    reader.waits && throw(only_one_task())
    reader.waits = true
    try
        reader.source isa Outside ? await_io(reader, reader.source.io) : await_fd(reader)
    finally
        reader.waits = false
    end
end

only_one_task() = ErrorException("another task is already waiting for this stream: only one at a time can read it")

function await_io(reader, io)
    reader.cancel !== nothing && iscancelled(reader.cancel) && return false
    reader.pending === nothing && bytesavailable(io) > 0 && return true
    wait_within(() -> eof(io), () -> bytesavailable(io) > 0, reader) === false
end

function await_fd(reader)
    while isopen(reader)
        reader.cancel !== nothing && iscancelled(reader.cancel) && return false
        fd = @c millstream_reader_waits_for(reader)
        fd < 0 && return false
        ready = poll_now(fd)
        # At the end of a pipe there is no byte, and a command's exit may have to be waited for.
        ready == 0 || return ready & POLLIN != 0
        watch(reader, fd)
        watcher = reader.watcher
        wait_within(() -> wait(watcher), () -> poll_now(fd) != 0, reader)
    end
    false
end

const POLLIN = Cshort(1)

# What a file descriptor is ready for, without waiting.
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

# Before the library closes the file descriptor, so that Julia does not keep waiting for another one with the same
# number.
function unwatch(reader)
    reader.watcher === nothing || close(reader.watcher)
    reader.watcher = nothing
    reader.watched = -1
    reader.pending = nothing
end
