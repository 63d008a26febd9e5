// Items with the numbers of their records, and the state while a pipe processes them; see pipe.hpp. Except for
// `millstream::stage_stats`, this header is internal.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_ITEMS_HPP
#define MILLSTREAM_PIPE_ITEMS_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_items.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream/frame.hpp>

namespace millstream {

/// The statistics of one stage of a pipe.
struct stage_stats {
    std::string name;
    /// The number of output items.
    std::uint64_t items = 0;
    /// The size of the output items in bytes; 0 for values, whose size is unknown.
    std::uint64_t bytes = 0;
    /// The time inside the stage.
    std::chrono::nanoseconds time{};
};

namespace detail::piping {

/// Whether the next item is needed.
enum class flow : bool { more, enough };

inline flow both(flow one, flow other) noexcept { return one == flow::enough ? one : other; }

/// Copies of texts in blocks that do not move. (libc++ 14 does not have std::pmr.)
class text_memory {
  public:
    /// Copies a text; the copy is valid until `clear`.
    std::string_view keep(std::string_view text) {
        if (text.empty())
            return {};
        if (free_.size() < text.size()) {
            block_ = std::max(2 * block_, text.size());
            blocks_.emplace_back(new char[block_]);
            free_ = {blocks_.back().get(), block_};
        }
        char *const to = free_.data();
        text.copy(to, text.size());
        free_ = free_.subspan(text.size());
        return {to, text.size()};
    }
    /// Invalidates all copies. The last block, which is the largest, is used again.
    void clear() noexcept {
        if (blocks_.empty())
            return;
        std::swap(blocks_.front(), blocks_.back());
        blocks_.resize(1);
        free_ = {blocks_.front().get(), block_};
    }

  private:
    std::vector<std::unique_ptr<char[]>> blocks_;
    std::span<char> free_;
    std::size_t block_ = 512; // the size of the last block, or half of that of the first
};

/// Greater than the number of any record.
inline constexpr std::uint64_t no_record = std::numeric_limits<std::uint64_t>::max();

/// How long to wait for the results of operations.
using wait_time = std::chrono::microseconds;
/// Waits for all of them.
inline constexpr wait_time until_all = wait_time::max();

/// The state while a chain works on a batch. Records are numbered over all batches of all sources.
struct context {
    /// The current record.
    std::uint64_t record = 0;
    /// The origin of the exception that is being thrown.
    std::uint64_t failed_at = 0;
    /// Whether it was not thrown by a stage; then no record is skipped.
    bool sink_failed = false;
    /// Whether records for which a stage fails are skipped.
    bool skips = false;
    /// Whether time is measured.
    bool measures = false;
    /// The skipped records, until they are processed.
    std::vector<std::uint64_t> passed_over;
    /// Memory for the output of stages for a batch.
    text_memory memory;

    /// Starts another batch.
    void begin() {
        sink_failed = false;
        memory.clear();
    }

    /// In an exception handler: skips the current record if that is allowed; otherwise rethrows.
    void caught() {
        try {
            throw;
        } catch (const std::bad_alloc &) {
            failed_at = record; // the record is not the cause
            throw;
        } catch (const std::exception &) {
            if (sink_failed || !skips) {
                failed_at = record;
                throw;
            }
            passed_over.push_back(record);
        } catch (...) {
            failed_at = record;
            throw;
        }
    }

    /// Runs code that is not part of a stage.
    template <class Act>
    auto sinking(Act act) {
        try {
            return act();
        } catch (...) {
            sink_failed = true;
            throw;
        }
    }

    std::string_view keep(std::string_view bytes) { return memory.keep(bytes); }
};

/// The records of a batch as items.
class records_of {
  public:
    /// The first record has the number `first` over all batches.
    records_of(const batch &batch, std::uint64_t first) noexcept : batch_(batch), first_(first) {}

    std::size_t size() const noexcept { return batch_.size(); }
    std::uint64_t record(std::size_t index) const noexcept { return first_ + index; }
    std::string_view take(std::size_t index) const noexcept { return batch_[index]; }

  private:
    batch batch_; // not a reference, so that it can stay in registers
    std::uint64_t first_;
};

/// The items of a batch between two stages, each with the number of its record.
template <class Item>
class items {
  public:
    std::size_t size() const noexcept { return items_.size(); }
    std::uint64_t record(std::size_t index) const noexcept { return items_[index].first; }
    Item &&take(std::size_t index) noexcept { return std::move(items_[index].second); }

    void clear() noexcept { items_.clear(); }
    void swap(items &other) noexcept { items_.swap(other.items_); }

    /// The sink that collects items here.
    auto collect(const context &at) {
        return [this, &at](Item &&item) {
            items_.emplace_back(at.record, std::move(item));
            return flow::more;
        };
    }

    std::uint64_t bytes() const noexcept {
        std::uint64_t sum = 0;
        if constexpr (std::is_convertible_v<const Item &, std::string_view>)
            for (const auto &[record, item] : items_)
                sum += std::string_view(item).size();
        return sum;
    }

  private:
    std::vector<std::pair<std::uint64_t, Item>> items_;
};

/// Passes items to a sink, one by one. The handler is outside of the loop, so that the loop has no exception code.
template <class Input, class Sink>
flow each_of(Input &&input, context &at, Sink &&sink) {
    const std::size_t count = input.size();
    for (std::size_t i = 0;; ++i) {
        try {
            for (; i < count; ++i) {
                at.record = input.record(i);
                if (sink(input.take(i)) == flow::enough)
                    return flow::enough;
            }
            return flow::more;
        } catch (...) {
            at.caught();
        }
    }
}

/// An exception that is held until earlier items have been passed on.
class waiting {
  public:
    /// Runs a part of a chain. An exception found later belongs to an earlier record: it replaces an existing one.
    template <class Act>
    flow during(context &at, Act act) {
        try {
            return act();
        } catch (...) {
            thrown_ = std::current_exception();
            record_ = at.failed_at;
            sink_failed_ = at.sink_failed;
            at.sink_failed = false;
            return flow::enough;
        }
    }

    /// Whether there is one.
    explicit operator bool() const noexcept { return thrown_ != nullptr; }

    void go_on(context &at) const {
        if (thrown_ == nullptr)
            return;
        at.failed_at = record_;
        at.sink_failed = sink_failed_;
        std::rethrow_exception(thrown_);
    }

  private:
    std::exception_ptr thrown_;
    std::uint64_t record_ = 0;
    bool sink_failed_ = false;
};

/// Counts the output of a stage and measures its time.
struct meter {
    stage_stats stats;

    template <class Item, class Act>
    flow during(const context &at, const items<Item> &out, Act act) {
        if (!at.measures)
            return act();
        const auto began = std::chrono::steady_clock::now();
        const flow state = act();
        stats.time += std::chrono::steady_clock::now() - began;
        stats.items += out.size();
        stats.bytes += out.bytes();
        return state;
    }
};

/// Counts, and adds the count to a sum when it is destroyed: a variable whose address is not taken can stay in a
/// register.
struct counter {
    explicit counter(std::uint64_t &given) noexcept : sum(given) {}
    counter(const counter &) = delete;
    counter &operator=(const counter &) = delete;
    ~counter() { sum += count; }

    std::uint64_t &sum;
    std::uint64_t count = 0;
};

/// Adds its lifetime to a sum.
class stopwatch {
  public:
    explicit stopwatch(std::chrono::nanoseconds &sum) noexcept : sum_(sum) {}
    stopwatch(const stopwatch &) = delete;
    stopwatch &operator=(const stopwatch &) = delete;
    ~stopwatch() { sum_ += std::chrono::steady_clock::now() - began_; }

  private:
    std::chrono::nanoseconds &sum_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

} // namespace detail::piping
} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_PIPE_ITEMS_HPP
