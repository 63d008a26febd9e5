// Cancel tokens: they end the waits of readers and writers, from any thread or signal handler.
//
//     ms::cancel_token token;
//     ms::reader reader(ms::standard_input{}, {.cancel = &token});
//     // elsewhere: token.cancel();
//
// A waiting call fails with `cancelled` at once, and so does every later one until the token is reset. Nothing is
// lost: after that the next call goes on where it was.
#ifndef MILLSTREAM_CANCEL_HPP
#define MILLSTREAM_CANCEL_HPP

#include <millstream/boundary.hpp>

namespace ms {

/// Ends waits. It may be destroyed while readers and writers still listen to it. All members may be called by several
/// threads at a time.
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

    /// The token of the C ABI, which stays this object's.
    const millstream_cancel_token *get() const noexcept { return handle_.get(); }

  private:
    using handle_type = detail::handle<millstream_cancel_token, millstream_cancel_token_free>;
    handle_type handle_;
};

} // namespace ms

#endif // MILLSTREAM_CANCEL_HPP
