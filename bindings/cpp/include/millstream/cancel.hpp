// Cancel tokens: they end the waits of readers and writers, from any thread or signal handler.
//
//     millstream::cancel_token token;
//     millstream::reader reader(millstream::standard_input{}, {.cancel = &token});
//     // elsewhere: token.cancel();
//
// A waiting call fails with `cancelled` immediately, and so does every later one until the token is reset. Nothing is
// lost: after that the next call continues where it was.
#ifndef MILLSTREAM_CANCEL_HPP
#define MILLSTREAM_CANCEL_HPP

#if __cplusplus <= 201703L
#error "millstream/cancel.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <millstream/boundary.hpp>

namespace millstream {

/// Ends waits. It may be destroyed while readers and writers still use it. All members may be called by several threads
/// at a time.
class cancel_token {
  public:
    /// A token that is not cancelled. It holds two file descriptors.
    cancel_token() : handle_(detail::made<handle_type>(millstream_cancel_token_new)) {}

    /// Cancels. May be called from a signal handler.
    void cancel() const noexcept { millstream_cancel_token_cancel(handle_.get()); }

    /// Whether it is cancelled.
    bool is_cancelled() const noexcept { return millstream_cancel_token_is_cancelled(handle_.get()); }

    /// Makes it usable again.
    void reset() const noexcept { millstream_cancel_token_reset(handle_.get()); }

    /// The C ABI's token, which this object keeps.
    const millstream_cancel_token *get() const noexcept { return handle_.get(); }

  private:
    using handle_type = detail::handle<millstream_cancel_token, millstream_cancel_token_free>;
    handle_type handle_;
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_CANCEL_HPP
