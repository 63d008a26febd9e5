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
#include <exception>
#include <functional>
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
        between_.clear();
        waiting failed;
        const flow state = failed.during(at, [&] { return chain_.run(input, at, between_.collect(at)); });
        results all(*this);
        const auto began = std::chrono::steady_clock::now();
        const flow handed = each_of(all, at, sink);
        if (at.measures)
            stats_.time += std::chrono::steady_clock::now() - began;
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept { return chain_.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain_.report(stages);
        stages.push_back(stats_);
    }

  private:
    /// The results for the items of a batch. Taking one starts the operations that may be in progress meanwhile.
    class results {
      public:
        explicit results(then_async &stage) : stage_(stage), begun_(std::min(stage.most_, size())) {}

        std::size_t size() const noexcept { return stage_.between_.size(); }
        std::uint64_t record(std::size_t index) const noexcept { return stage_.between_.record(index); }

        out take(std::size_t index) {
            for (; count_ < size() && count_ - index < stage_.most_; ++count_)
                begun_[count_ % begun_.size()].start(stage_.function_, stage_.between_.take(count_));
            ++stage_.stats_.items;
            return begun_[index % begun_.size()].finish();
        }

      private:
        struct operation {
            std::optional<later> result;
            std::exception_ptr thrown; // by the function that starts it

            void start(F &function, typename Chain::out &&item) {
                try {
                    result.emplace(std::invoke(function, std::move(item)));
                } catch (...) {
                    thrown = std::current_exception();
                }
            }
            out finish() {
                if (thrown != nullptr)
                    std::rethrow_exception(std::exchange(thrown, nullptr));
                // Even if it throws, the operation is over.
                later ended = *std::exchange(result, std::nullopt);
                return ended.get();
            }
        };

        then_async &stage_;
        std::vector<operation> begun_;
        std::size_t count_ = 0;
    };

    Chain chain_;
    F function_;
    std::size_t most_;
    items<typename Chain::out> between_{};
    stage_stats stats_{.name = "async"};
};

} // namespace millstream::detail::piping

#endif // C++20
#endif // MILLSTREAM_PIPE_ASYNC_HPP
