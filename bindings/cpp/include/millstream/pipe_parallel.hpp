// The stages of a pipe that run on several threads; see pipe.hpp. This header is internal.
//
// The items of a batch are divided into parts. The threads, of which the caller's is one, each take the next part that
// is not taken, until all are done. Then the results are passed on in the order of the items. So memory is bounded by
// the results for one batch.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_PARALLEL_HPP
#define MILLSTREAM_PIPE_PARALLEL_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_parallel.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include <millstream/pipe_chains.hpp>
#include <millstream/pipe_items.hpp>
#include <millstream/pipe_stages.hpp>

namespace millstream::detail::piping {

/// Stages without state between items, so that several threads can each have a copy.
template <class Stage>
inline constexpr bool is_stateless = false;
template <class F>
inline constexpr bool is_stateless<map_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<filter_map_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<flat_map_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<pieces_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<rewrite_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<filter_stage<F>> = true;
template <class F>
inline constexpr bool is_stateless<inspect_stage<F>> = true;
template <class Item>
inline constexpr bool is_stateless<start<Item>> = true;
template <class Chain, class Stage>
inline constexpr bool is_stateless<fused<Chain, Stage>> = is_stateless<Chain> &&is_stateless<Stage>;

/// A few threads that share the parts of a job. They block all signals, so that the program's own threads handle them.
class crew {
  public:
    /// Starts the threads.
    explicit crew(std::size_t threads) {
        sigset_t all, before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            while (threads_.size() < threads)
                threads_.emplace_back([this] { serve(); });
        } catch (...) {
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            end();
            throw;
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    crew(const crew &) = delete;
    crew &operator=(const crew &) = delete;
    ~crew() { end(); }

    /// Calls `job(i)` for each `i` below `count`, on these threads and on the caller's, and returns when all calls have
    /// returned. The job does not throw.
    template <class Job>
    void run(std::size_t count, Job job) {
        std::unique_lock lock(mutex_);
        job_ = &job;
        call_ = [](void *called, std::size_t i) { (*static_cast<Job *>(called))(i); };
        next_ = done_ = 0;
        count_ = count;
        wake_.notify_all();
        take_parts(lock);
        all_done_.wait(lock, [&] { return done_ == count_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable wake_, all_done_;
    bool ends_ = false;
    void *job_ = nullptr;
    void (*call_)(void *, std::size_t) = nullptr;
    std::size_t next_ = 0, done_ = 0, count_ = 0;
    std::vector<std::thread> threads_;

    void take_parts(std::unique_lock<std::mutex> &lock) {
        while (next_ < count_) {
            const std::size_t taken = next_++;
            lock.unlock();
            call_(job_, taken);
            lock.lock();
            if (++done_ == count_)
                all_done_.notify_one();
        }
    }

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return ends_ || next_ < count_; });
            if (ends_)
                return;
            take_parts(lock);
        }
    }

    void end() noexcept {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        wake_.notify_all();
        for (std::thread &thread : threads_)
            thread.join();
    }
};

/// Some of the items between two stages.
template <class Items>
class slice_of {
  public:
    slice_of(Items &items, std::size_t from, std::size_t to) noexcept : items_(items), from_(from), to_(to) {}

    std::size_t size() const noexcept { return to_ - from_; }
    std::uint64_t record(std::size_t index) const noexcept { return items_.record(from_ + index); }
    decltype(auto) take(std::size_t index) const noexcept { return items_.take(from_ + index); }

  private:
    Items &items_;
    std::size_t from_, to_;
};

/// A chain followed by stages on several threads.
template <class Chain, class Stages>
class in_parallel {
  public:
    using in = typename Chain::in;
    using out = typename Stages::out;

    in_parallel(Chain &&chain, const Stages &stages, std::size_t threads)
        : chain_(std::move(chain)), crew_(std::make_unique<crew>(threads - 1)) {
        // More parts than threads, because some take longer than others.
        while (parts_.size() < 4 * threads)
            parts_.push_back(std::make_unique<part>(stages));
    }

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return after([&] { return chain_.run(input, at, between_.collect(at)); }, at, sink);
    }
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return after([&] { return chain_.settle(patience, at, between_.collect(at)); }, at, sink);
    }
    std::uint64_t oldest() const noexcept { return chain_.oldest(); }
    bool is_done() const noexcept { return chain_.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain_.report(stages);
        stages.push_back(stats_);
    }

  private:
    /// Runs the stages on the items that the earlier stages collect.
    template <class Act, class Sink>
    flow after(Act act, context &at, Sink &&sink) {
        between_.clear();
        waiting failed;
        flow state = failed.during(at, act);
        const auto began = std::chrono::steady_clock::now();
        const std::size_t count = std::min(parts_.size(), between_.size());
        crew_->run(count, [&](std::size_t i) noexcept {
            const slice_of slice(between_, between_.size() * i / count, between_.size() * (i + 1) / count);
            parts_[i]->run(slice, at.skips);
        });
        stats_.time += std::chrono::steady_clock::now() - began;
        for (std::size_t i = 0; i < count; ++i) {
            part &one = *parts_[i];
            stats_.items += one.results.size();
            stats_.bytes += one.results.bytes();
            at.passed_over.insert(at.passed_over.end(), one.at.passed_over.begin(), one.at.passed_over.end());
            if (each_of(one.results, at, sink) == flow::enough)
                return flow::enough;
            if (one.failed) {
                failed = one.failed;
                state = flow::enough;
                break;
            }
        }
        failed.go_on(at);
        return state;
    }

    /// The state of the stages for some of the items. One thread at a time uses it.
    struct part {
        explicit part(const Stages &given) : stages(given) {}

        Stages stages;
        context at;
        items<out> results;
        waiting failed;

        template <class Slice>
        void run(const Slice &slice, bool skips) noexcept {
            at.begin();
            at.passed_over.clear();
            at.skips = skips;
            results.clear();
            failed = waiting();
            failed.during(at, [&] { return stages.run(slice, at, results.collect(at)); });
        }
    };

    Chain chain_;
    std::vector<std::unique_ptr<part>> parts_; // which do not move
    std::unique_ptr<crew> crew_;
    items<typename Chain::out> between_;
    stage_stats stats_{.name = "parallel"};
};

} // namespace millstream::detail::piping

#endif // C++20
#endif // MILLSTREAM_PIPE_PARALLEL_HPP
