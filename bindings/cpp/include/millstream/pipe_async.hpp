// The stage of a pipe that waits for several operations at once; see pipe.hpp. This header is internal.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_ASYNC_HPP
#define MILLSTREAM_PIPE_ASYNC_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_async.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream/pipe_chains.hpp>
#include <millstream/pipe_items.hpp>

namespace millstream::detail::piping {

/// What a function returns that starts an operation: an object whose `get()` waits for the result, such as std::future.
template <class T>
concept result_later = requires(T later) {
    { later.get() } -> std::move_constructible;
};

/// A chain followed by a stage that starts operations, and waits for up to `most` of them.
template <class Chain, class F>
class then_async {
    using later = std::invoke_result_t<F &, typename Chain::out>;

  public:
    using in = typename Chain::in;
    using out = decltype(std::declval<later &>().get());

    then_async(Chain &&chain, F &&function, std::size_t most)
        : chain_(std::move(chain)), function_(std::move(function)), most_(most) {}

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return after([&] { return chain_.run(input, at, between_.collect(at)); }, wait_time::zero(), at, sink);
    }
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return after([&] { return chain_.settle(patience, at, between_.collect(at)); }, patience, at, sink);
    }
    std::uint64_t oldest() const noexcept {
        return std::min(chain_.oldest(), begun_.empty() ? no_record : begun_.front().record);
    }
    bool is_done() const noexcept { return chain_.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain_.report(stages);
        stages.push_back(stats_);
    }

  private:
    /// An operation that has begun.
    struct operation {
        std::uint64_t record;
        std::optional<later> result;
        std::exception_ptr thrown; // by the function that starts it

        /// Whether `finish` would not wait. Waits until it is so, but not longer than `patience`.
        bool is_ready(wait_time patience) {
            if (thrown != nullptr || patience == until_all)
                return true;
            if constexpr (requires { result->wait_for(patience) != std::future_status::timeout; })
                return result->wait_for(patience) != std::future_status::timeout;
            else
                return patience > patience.zero();
        }
        out finish() {
            if (thrown != nullptr)
                std::rethrow_exception(thrown);
            return result->get();
        }
    };

    /// Drops the operations if no more results are needed, or if an exception ends the pipe.
    struct dropping {
        then_async &stage;
        bool goes_on = false;
        ~dropping() {
            if (!goes_on)
                stage.begun_.clear();
        }
    };

    /// Starts an operation for each item that the earlier stages collect as soon as another one has ended, and passes
    /// on the results that are ready: all of them if no item follows.
    template <class Act, class Sink>
    flow after(Act act, wait_time patience, context &at, Sink &&sink) {
        dropping at_end{*this};
        between_.clear();
        waiting failed;
        const flow state = failed.during(at, act);
        const auto began = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < between_.size(); ++i) {
            if (begun_.size() == most_ && pass_on(at, sink) == flow::enough)
                return flow::enough;
            begin(between_.record(i), between_.take(i));
        }
        for (auto left = state == flow::enough ? until_all : patience; !begun_.empty() && begun_.front().is_ready(left);
             left = left == until_all ? left : patience.zero())
            if (pass_on(at, sink) == flow::enough)
                return flow::enough;
        if (at.measures)
            stats_.time += std::chrono::steady_clock::now() - began;
        failed.go_on(at);
        at_end.goes_on = state == flow::more;
        return state;
    }

    void begin(std::uint64_t record, typename Chain::out &&item) {
        operation &begun = begun_.emplace_back(operation{record, std::nullopt, nullptr});
        try {
            begun.result.emplace(std::invoke(function_, std::move(item)));
        } catch (...) {
            begun.thrown = std::current_exception();
        }
    }

    /// Waits for the result of the first operation, and passes it on.
    template <class Sink>
    flow pass_on(context &at, Sink &&sink) {
        operation first = std::move(begun_.front());
        begun_.pop_front();
        at.record = first.record;
        ++stats_.items;
        try {
            return sink(first.finish());
        } catch (...) {
            at.caught();
            return flow::more;
        }
    }

    Chain chain_;
    F function_;
    std::size_t most_;
    items<typename Chain::out> between_{};
    std::deque<operation> begun_{};
    stage_stats stats_{.name = "async"};
};

} // namespace millstream::detail::piping

#endif // C++20
#endif // MILLSTREAM_PIPE_ASYNC_HPP
