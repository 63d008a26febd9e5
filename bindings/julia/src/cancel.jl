# Cancel tokens, which interrupt the waits of readers and writers, and interruptible waits.

"""
    CancelToken()

Interrupts the waits of the readers and writers that use it (`cancel = token`). After [`cancel`](@ref), their calls fail
with the kind `:cancelled` until [`reset`](@ref); a waiting call fails immediately. No data is lost: the next call
continues. """
mutable struct CancelToken
    handle::Ptr{Cvoid}
    # Wakes Julia's own waits, which the library does not know about.
    waits::Vector{Base.Event}
    lock::ReentrantLock

    function CancelToken()
        out = Ref{Ptr{Cvoid}}(C_NULL)
        @call millstream_cancel_token_new(out)
        token = new(out[], Base.Event[], ReentrantLock())
        finalizer(token -> (@c millstream_cancel_token_free(token.handle)), token)
    end
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, token::CancelToken) = token.handle

"""
    cancel(token)

Cancels the token, from any thread.
"""
function cancel(token::CancelToken)
    @c millstream_cancel_token_cancel(token)
    lock(() -> foreach(notify, token.waits), token.lock)
end

"""
    Base.reset(token)

Makes the token usable again.
"""
Base.reset(token::CancelToken) = (@c millstream_cancel_token_reset(token); nothing)

"""
    iscancelled(token)

Whether the token is cancelled.
"""
iscancelled(token::CancelToken) = @c millstream_cancel_token_is_cancelled(token)

# Calls `act`. During the call, the token notifies `event` when it is cancelled, also if it is cancelled already.
function while_waking(act, token::CancelToken, event)
    lock(() -> push!(token.waits, event), token.lock)
    iscancelled(token) && notify(event)
    try
        act()
    finally
        lock(() -> filter!(!=(event), token.waits), token.lock)
    end
end

while_waking(act, ::Nothing, _) = act()

token(value) = value isa Union{CancelToken,Nothing} ? value : wrong(:cancel, value, "a CancelToken")

# A wait in a separate task, with its result or its failure when it is available.
mutable struct Pending
    event::Base.Event
    found::Any
    failure::Any
    ended::Bool

    Pending(wait_for_it) = start(new(Base.Event(), nothing, nothing, false), wait_for_it)
end

function start(pending::Pending, wait_for_it)
    @async begin
        try
            pending.found = wait_for_it()
        catch failure
            pending.failure = failure
        end
        pending.ended = true
        notify(pending.event)
    end
    pending
end

# Ends the waits of a reader when the results of a stage can be passed on. Other threads set it.
mutable struct Waker
    condition::Threads.Condition
    is_ready::Bool
    event::Union{Base.Event,Nothing}

    Waker() = new(Threads.Condition(), false, nothing)
end

is_awake(waker::Waker) = waker.is_ready
is_awake(::Nothing) = false

function while_waking(act, waker::Waker, event)
    set(event) = lock(() -> (waker.event = event; waker.is_ready && event !== nothing && notify(event)), waker.condition)
    set(event)
    try
        act()
    finally
        set(nothing)
    end
end
