// Fuses the stages of pipes into one loop; see pipe.hpp. This header is internal.
//
// A chain takes the items of a batch and passes the results to a sink, item by item. Each stage wraps the sink in its
// own function, so that the compiler sees one loop with all stages in it. If stages are chosen at run time or measured,
// the chain is cut: complete batches are passed on there.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_CHAINS_HPP
#define MILLSTREAM_PIPE_CHAINS_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_chains.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <utility>
#include <vector>

#include <millstream/pipe_items.hpp>

namespace millstream::detail::piping {

// A chain has these functions: `run` passes the items for a batch to a sink. A stage that waits for operations holds
// back items after that: `oldest` is the record of the first of them, and `settle` passes on those that are ready
// within the time given.

/// A chain without stages.
template <class Item>
struct start {
    using in = Item;
    using out = Item;

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return each_of(input, at, sink);
    }
    template <class Sink>
    flow settle(wait_time, context &, Sink &&) {
        return flow::more;
    }
    std::uint64_t oldest() const noexcept { return no_record; }
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
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return chain.settle(patience, at,
                            [&](typename Chain::out &&item) { return stage.each(std::move(item), at, sink); });
    }
    std::uint64_t oldest() const noexcept { return chain.oldest(); }
    bool is_done() const noexcept { return chain.is_done() || stage.is_done(); }
    void report(std::vector<stage_stats> &stages) const { chain.report(stages); }
};

/// A chain whose output is collected, batch by batch, before it is passed on.
template <class Chain>
struct cut_here {
    using in = typename Chain::in;
    using out = typename Chain::out;

    Chain chain;
    meter measured;
    items<out> between{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return after([&] { return chain.run(input, at, between.collect(at)); }, at, sink);
    }
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return after([&] { return chain.settle(patience, at, between.collect(at)); }, at, sink);
    }
    std::uint64_t oldest() const noexcept { return chain.oldest(); }

    /// Passes on the items that the earlier stages collect.
    template <class Act, class Sink>
    flow after(Act act, context &at, Sink &&sink) {
        between.clear();
        waiting failed;
        const flow state = measured.during(at, between, [&] { return failed.during(at, act); });
        const flow handed = each_of(between, at, sink);
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept { return chain.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain.report(stages);
        stage_stats own = measured.stats;
        for (const stage_stats &before : stages) // its time includes the time of these stages
            own.time -= before.time;
        stages.push_back(std::move(own));
    }
};

/// A chain that is called dynamically.
template <class In, class Out>
struct work {
    work() = default;
    work(const work &) = delete;
    work &operator=(const work &) = delete;
    virtual ~work() = default;
    virtual flow run(items<In> &input, context &at, items<Out> &output) = 0;
    virtual flow settle(wait_time patience, context &at, items<Out> &output) = 0;
    virtual std::uint64_t oldest() const noexcept = 0;
    virtual bool is_done() const noexcept = 0;
};

template <class Chain>
struct work_of final : work<typename Chain::in, typename Chain::out> {
    explicit work_of(Chain &&given) : chain(std::move(given)) {}

    flow run(items<typename Chain::in> &input, context &at, items<typename Chain::out> &output) override {
        return chain.run(input, at, output.collect(at));
    }
    flow settle(wait_time patience, context &at, items<typename Chain::out> &output) override {
        return chain.settle(patience, at, output.collect(at));
    }
    std::uint64_t oldest() const noexcept override { return chain.oldest(); }
    bool is_done() const noexcept override { return chain.is_done(); }

    Chain chain;
};

/// A chain with a boxed stage after it.
template <class Chain, class Stage>
struct then_boxed {
    using in = typename Chain::in;
    using out = typename Stage::out;

    Chain chain;
    Stage stage;
    items<typename Chain::out> before{};
    items<out> results{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return after([&] { return chain.run(input, at, before.collect(at)); }, wait_time::zero(), at, sink);
    }
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return after([&] { return chain.settle(patience, at, before.collect(at)); }, patience, at, sink);
    }
    std::uint64_t oldest() const noexcept { return std::min(chain.oldest(), stage.oldest()); }

    /// Runs the stage on the items that the earlier stages collect.
    template <class Act, class Sink>
    flow after(Act act, wait_time patience, context &at, Sink &&sink) {
        before.clear();
        waiting failed;
        flow state = failed.during(at, act);
        state = both(state, stage.pass(before, state == flow::enough ? until_all : patience, at, results, failed));
        const flow handed = each_of(results, at, sink);
        failed.go_on(at);
        return both(state, handed);
    }
    bool is_done() const noexcept { return chain.is_done() || stage.is_done(); }
    void report(std::vector<stage_stats> &stages) const {
        chain.report(stages);
        stages.push_back(stage.stats());
    }
};

/// A chain with any number of boxed stages after it, all between items of one type.
template <class Chain, class Stage>
struct then_all_boxed {
    using in = typename Chain::in;
    using out = typename Chain::out;

    Chain chain;
    std::vector<Stage> stages;
    items<out> before{};
    items<out> results{};

    template <class Input, class Sink>
    flow run(Input &&input, context &at, Sink &&sink) {
        return after([&] { return chain.run(input, at, before.collect(at)); }, wait_time::zero(), at, sink);
    }
    template <class Sink>
    flow settle(wait_time patience, context &at, Sink &&sink) {
        return after([&] { return chain.settle(patience, at, before.collect(at)); }, patience, at, sink);
    }
    std::uint64_t oldest() const noexcept {
        std::uint64_t least = chain.oldest();
        for (const Stage &stage : stages)
            least = std::min(least, stage.oldest());
        return least;
    }

    /// Runs the stages on the items that the earlier stages collect.
    template <class Act, class Sink>
    flow after(Act act, wait_time patience, context &at, Sink &&sink) {
        before.clear();
        waiting failed;
        flow state = failed.during(at, act);
        for (Stage &stage : stages) {
            state = both(state, stage.pass(before, state == flow::enough ? until_all : patience, at, results, failed));
            before.swap(results);
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

} // namespace millstream::detail::piping

#endif // C++20
#endif // MILLSTREAM_PIPE_CHAINS_HPP
