// Cancel tokens interrupt the waits of readers and writers, from any thread or signal handler.
//
//     millstream::cancel_token token;
//     millstream::reader reader(millstream::standard_input{}, {.cancel = &token});
//     // elsewhere: token.cancel();
//
// A waiting call fails with `cancelled` immediately, and so does every later call until the token is reset. No data is
// lost: after the reset, the next call continues at the same position.
#ifndef MILLSTREAM_CANCEL_HPP
#define MILLSTREAM_CANCEL_HPP

#if __cplusplus <= 201703L
#error "millstream/cancel.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <millstream/boundary.hpp>

namespace millstream {

/// Interrupts waits. It may be destroyed while readers and writers still use it. Several threads may call all members
/// at the same time.
class cancel_token {
  public:
    /// Creates a token that is not cancelled. It uses two file descriptors.
    cancel_token() : handle_(detail::made<handle_type>(millstream_cancel_token_new)) {}

    /// Cancels. May be called from a signal handler.
    void cancel() const noexcept { millstream_cancel_token_cancel(handle_.get()); }

    /// Whether it is cancelled.
    bool is_cancelled() const noexcept { return millstream_cancel_token_is_cancelled(handle_.get()); }

    /// Makes the token usable again.
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
