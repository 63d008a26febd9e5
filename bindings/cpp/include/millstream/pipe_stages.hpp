// The stages of pipes, and how they become one loop; see pipe.hpp. Nothing in here is for users.
//
// A chain is given the items of a batch and hands what becomes of them to a sink, item by item. Each stage wraps the
// sink in a function of its own, so that the compiler sees one loop with all stages in it. Where stages are chosen at
// run time, or are to be measured, a chain is cut: there whole batches change hands.
//
// C++20; needs libmillstream.
#ifndef MILLSTREAM_PIPE_STAGES_HPP
#define MILLSTREAM_PIPE_STAGES_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream/frame.hpp>
#include <millstream/writer.hpp>

namespace ms {

/// What one stage of a pipe has done.
struct stage_stats {
    std::string name;
    /// Items that came out.
    std::uint64_t items = 0;
    /// The size of these items in bytes; 0 for values, whose size nobody knows.
    std::uint64_t bytes = 0;
    /// The time inside the stage.
    std::chrono::nanoseconds time{};
};

namespace detail::piping {

/// Whether the next item is wanted.
enum class flow : bool { more, enough };

inline flow both(flow one, flow other) noexcept { return one == flow::enough ? one : other; }

/// What is known while a chain works on a batch.
struct context {
    /// The record at work.
    std::uint64_t record = 0;
    /// Where the exception was thrown that is on its way out.
    std::uint64_t failed_at = 0;
    /// It was not a stage that threw it: nothing is passed over then.
    bool sink_failed = false;
    /// Whether a record that a stage fails at is passed over.
    bool skips = false;
    /// Whether somebody wants to know where the time goes.
    bool measures = false;
    /// The records that were passed over, until somebody deals with them.
    std::vector<std::uint64_t> passed_over;
    /// What stages make of a batch lives here.
    std::pmr::monotonic_buffer_resource memory;

    /// Another batch begins.
    void begin() {
        sink_failed = false;
        passed_over.clear();
        memory.release();
    }

    /// Within a handler: passes over the record at work if that is allowed, and goes on with the exception if not.
    void caught() {
        try {
            throw;
        } catch (const std::bad_alloc &) {
            failed_at = record; // no fault of the record's
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

    /// Does what is not a stage's work on a record.
    template <class Act>
    auto sinking(Act act) {
        try {
            return act();
        } catch (...) {
            sink_failed = true;
            throw;
        }
    }

    std::string_view keep(std::string_view bytes) {
        if (bytes.empty())
            return {};
        auto *to = static_cast<char *>(memory.allocate(bytes.size(), 1));
        bytes.copy(to, bytes.size());
        return {to, bytes.size()};
    }
};

/// The records of a batch as items.
class records_of {
  public:
    explicit records_of(const batch &batch) noexcept : batch_(batch) {}

    std::size_t size() const noexcept { return batch_.size(); }
    std::uint64_t record(std::size_t index) const noexcept { return batch_.first_record() + index; }
    std::string_view take(std::size_t index) const noexcept { return batch_[index]; }

  private:
    const batch &batch_;
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

/// Gives items to a sink, one by one. The handler is outside of the loop, which so has nothing to do with exceptions.
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

/// An exception that waits until what came before it has gone on.
class waiting {
  public:
    /// Runs a part of a chain. An exception that is met later belongs to an earlier record: it takes the place of one
    /// that is there.
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

/// What came out of a stage, and how long it took.
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

/// Adds the time that it exists to a sum.
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

// ---- stages that work on one item at a time ----

template <class F, class In>
using made_of = std::remove_cvref_t<std::invoke_result_t<F &, In>>;

template <class F>
struct map_stage {
    F function;
    template <class In>
    using out = made_of<F, In>;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        // What it makes lives until what comes behind is done with it.
        return next(out<In>(std::invoke(function, std::move(item))));
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct filter_map_stage {
    F function;
    template <class In>
    using out = typename made_of<F, In>::value_type;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        std::optional<out<In>> made = std::invoke(function, std::move(item));
        return made ? next(std::move(*made)) : flow::more;
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct flat_map_stage {
    F function;
    template <class In>
    using range = std::invoke_result_t<F &, In>;
    template <class In>
    using out = std::ranges::range_value_t<std::remove_reference_t<range<In>>>;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        auto &&values = std::invoke(function, std::move(item));
        // What only the range has can be taken out of it.
        constexpr bool owns = !std::is_reference_v<range<In>> && !std::ranges::view<std::remove_cv_t<range<In>>>;
        for (auto &&value : values) {
            flow state;
            if constexpr (owns)
                state = next(out<In>(std::move(value)));
            else
                state = next(out<In>(std::forward<decltype(value)>(value)));
            if (state == flow::enough)
                return state;
        }
        return flow::more;
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct pieces_stage {
    F function;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        flow state = flow::more;
        std::invoke(function, std::move(item), [&](In piece) {
            if (state == flow::more)
                state = next(std::move(piece));
        });
        return state;
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct filter_stage {
    F function;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        return std::invoke(function, std::as_const(item)) ? next(std::move(item)) : flow::more;
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct inspect_stage {
    F function;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        std::invoke(function, std::as_const(item));
        return next(std::move(item));
    }
    bool is_done() const noexcept { return false; }
};

template <class F>
struct rewrite_stage {
    F function;
    std::string bytes{};
    template <class In>
    using out = std::string_view;

    template <class In, class Next>
    flow each(In &&item, context &at, Next &next) {
        bytes.clear();
        std::invoke(function, std::as_const(item), bytes);
        return next(at.keep(bytes));
    }
    bool is_done() const noexcept { return false; }
};

template <class State, class F>
struct scan_stage {
    State state;
    F function;
    template <class In>
    using out = std::remove_cvref_t<std::invoke_result_t<F &, State &, In>>;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        return next(out<In>(std::invoke(function, state, std::move(item))));
    }
    bool is_done() const noexcept { return false; }
};

struct take_stage {
    std::uint64_t left;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        if (left == 0)
            return flow::enough;
        --left;
        const flow state = next(std::move(item));
        return left == 0 ? flow::enough : state;
    }
    bool is_done() const noexcept { return left == 0; }
};

struct skip_stage {
    std::uint64_t left;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        if (left == 0)
            return next(std::move(item));
        --left;
        return flow::more;
    }
    bool is_done() const noexcept { return false; }
};

struct tee_stage {
    writer *to;
    std::string terminator;
    template <class In>
    using out = In;

    template <class In, class Next>
    flow each(In &&item, context &at, Next &next) {
        at.sinking([&] { to->print(std::as_const(item), std::string_view(terminator)); });
        return next(std::move(item));
    }
    bool is_done() const noexcept { return false; }
};

// ---- chains of them ----

/// No stage.
template <class Item>
struct start {
    using in = Item;
    using out = Item;

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return each_of(input, at, sink);
    }
    bool is_done() const noexcept { return false; }
    void report(std::vector<stage_stats> &) const {}
};

/// A chain and one more stage.
template <class Chain, class Stage>
struct fused {
    using in = typename Chain::in;
    using out = typename Stage::template out<typename Chain::out>;

    Chain chain;
    Stage stage;

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return chain.run(input, at, [&](typename Chain::out &&item) { return stage.each(std::move(item), at, sink); });
    }
    bool is_done() const noexcept { return chain.is_done() || stage.is_done(); }
    void report(std::vector<stage_stats> &stages) const { chain.report(stages); }
};

/// A chain whose output is collected, batch by batch, before what comes next sees it.
template <class Chain>
struct cut_here {
    using in = typename Chain::in;
    using out = typename Chain::out;

    Chain chain;
    meter measured;
    items<out> between{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        between.clear();
        waiting failed;
        const flow state = measured.during(
            at, between, [&] { return failed.during(at, [&] { return chain.run(input, at, between.collect(at)); }); });
        const flow handed = each_of(between, at, sink);
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept { return chain.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain.report(stages);
        stage_stats own = measured.stats;
        for (const stage_stats &before : stages) // its time includes theirs
            own.time -= before.time;
        stages.push_back(std::move(own));
    }
};

/// A chain behind a dynamic call.
template <class In, class Out>
struct work {
    work() = default;
    work(const work &) = delete;
    work &operator=(const work &) = delete;
    virtual ~work() = default;
    virtual flow run(items<In> &input, context &at, items<Out> &output) = 0;
    virtual bool is_done() const noexcept = 0;
};

template <class Chain>
struct work_of final : work<typename Chain::in, typename Chain::out> {
    explicit work_of(Chain &&given) : chain(std::move(given)) {}

    flow run(items<typename Chain::in> &input, context &at, items<typename Chain::out> &output) override {
        return chain.run(input, at, output.collect(at));
    }
    bool is_done() const noexcept override { return chain.is_done(); }

    Chain chain;
};

/// A chain with a boxed stage behind it.
template <class Chain, class Stage>
struct then_boxed {
    using in = typename Chain::in;
    using out = typename Stage::out;

    Chain chain;
    Stage stage;
    items<typename Chain::out> before{};
    items<out> behind{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        before.clear();
        waiting failed;
        flow state = failed.during(at, [&] { return chain.run(input, at, before.collect(at)); });
        state = both(state, stage.pass(before, at, behind, failed));
        const flow handed = each_of(behind, at, sink);
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept { return chain.is_done() || stage.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain.report(stages);
        stages.push_back(stage.stats());
    }
};

/// A chain with any number of boxed stages behind it, all between items of one type.
template <class Chain, class Stage>
struct then_all_boxed {
    using in = typename Chain::in;
    using out = typename Chain::out;

    Chain chain;
    std::vector<Stage> stages;
    items<out> before{};
    items<out> behind{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        before.clear();
        waiting failed;
        flow state = failed.during(at, [&] { return chain.run(input, at, before.collect(at)); });
        for (Stage &stage : stages) {
            state = both(state, stage.pass(before, at, behind, failed));
            before.swap(behind);
        }
        const flow handed = each_of(before, at, sink);
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept {
        for (const Stage &stage : stages)
            if (stage.is_done())
                return true;
        return chain.is_done();
    }
    void report(std::vector<stage_stats> &to) const {
        chain.report(to);
        for (const Stage &stage : stages)
            to.push_back(stage.stats());
    }
};

} // namespace detail::piping
} // namespace ms

#endif // MILLSTREAM_PIPE_STAGES_HPP
