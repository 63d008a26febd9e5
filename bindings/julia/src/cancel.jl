# Cancel tokens: they end the waits of readers and writers.

"""
    CancelToken()

Ends the waits of the readers and writers that were given it (`cancel = token`): [`cancel`](@ref) makes their calls fail
with the kind `:cancelled`, the one that waits at once, until [`reset`](@ref). Nothing is lost: the next call goes on.
"""
mutable struct CancelToken
    handle::Ptr{Cvoid}

    function CancelToken()
        out = Ref{Ptr{Cvoid}}(C_NULL)
        @call millstream_cancel_token_new(out::Ptr{Ptr{Cvoid}})
        finalizer(token -> (@c millstream_cancel_token_free(token.handle::Ptr{Cvoid})::Cvoid), new(out[]))
    end
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, token::CancelToken) = token.handle

"""
    cancel(token)

Cancels, from any thread.
"""
cancel(token::CancelToken) = (@c millstream_cancel_token_cancel(token::Ptr{Cvoid})::UInt32; nothing)

"""
    Base.reset(token)

Makes the token usable again.
"""
Base.reset(token::CancelToken) = (@c millstream_cancel_token_reset(token::Ptr{Cvoid})::UInt32; nothing)

"""
    iscancelled(token)

Whether it is cancelled.
"""
iscancelled(token::CancelToken) = @c millstream_cancel_token_is_cancelled(token::Ptr{Cvoid})::Bool
