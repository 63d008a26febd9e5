// Pipes: chains of small functions that process records. An additional stage costs almost nothing.
//
//     millstream::writer out(millstream::path{"errors.txt"});
//     millstream::pipe(millstream::command{"zcat", "log.gz"})
//         .lines()
//         .filter([](std::string_view line) { return line.starts_with("ERROR"); })
//         .map([](std::string_view line) { return line.substr(6); })
//         .take(1000)
//         .write_to(out);
//     out.close();
//
// Items pass between stages: first the records, as `std::string_view`s, then the results of the stages, which are
// values of any type, even move-only ones. A `std::string_view` is valid as long as the object that it refers to.
// Records and the results of `rewrite` are valid as long as their batch.
//
// | stage                                               | output for an item                                          |
// |-----------------------------------------------------|-------------------------------------------------------------|
// | map, filter_map, flat_map, scan_state               | a value; perhaps one; several; one that depends on those    |
// |                                                     | before                                                      |
// | pieces, rewrite                                     | several parts; bytes that a function writes                 |
// | filter, take, skip, inspect, tee                    | the item itself, or nothing                                 |
// | cut, then, then_all                                 | whole batches change hands here: to measure stages, and for |
// |                                                     | stages chosen at run time                                   |
//
// Stages written in one expression are fused: the compiler turns them into one loop. A `millstream::stage` is boxed and
// costs a virtual call for each batch and a move for each item. Use boxes for hundreds of stages.
//
// Guarantees:
// - A stage fails by throwing. Earlier records reach the sink first; then the exception is rethrown unchanged, and
//   `last_error()` has its record, offset and source. If the exception is a `millstream::error` (and not of a derived
//   class), it contains them itself. `on_error` skips records for which a stage fails, or saves them to a file.
// - An error of the source is thrown after all data that the source delivered, and the end means that the source
//   succeeded.
// - Batches contain the data that the source has delivered, at most 256 KiB. If there is a cut or a box, earlier stages
//   may have processed items of the same batch that a later `take` drops, or that follow an item for which a stage
//   fails. `batch(1)` prevents this.
// - Everything but the stages of `parallel`, and those before `through`, runs on the caller's thread, and memory is
//   bounded by the readers' buffers and the output of the stages for one batch.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_HPP
#define MILLSTREAM_PIPE_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <millstream/pipe_async.hpp>
#include <millstream/pipe_chains.hpp>
#include <millstream/pipe_parallel.hpp>
#include <millstream/pipe_source.hpp>
#include <millstream/pipe_stages.hpp>

namespace millstream {

/// What to do if a stage throws for a record. Exceptions that are not `std::exception`s, and `std::bad_alloc`, always
/// end the pipe, and so do exceptions of a source or a sink.
enum class on_error {
    /// The pipe rethrows it, after earlier records have reached the sink.
    stop,
    /// The record is skipped and counted. If a stage has already created several items from it, those before the
    /// exception have been passed on.
    skip,
};

/// How the time of a pipe was spent.
struct pipe_stats {
    /// The stages, in order. Fused stages are measured as one, under the name of the next `cut`.
    std::vector<stage_stats> stages;
    /// The time that the pipe waited for its sources.
    std::chrono::nanoseconds source_waited{};
    /// The total running time, including waits.
    std::chrono::nanoseconds elapsed{};
};

template <class In, class Out>
class stage;
template <class Chain>
class stage_chain;
class unframed_pipe;

namespace detail::piping {

/// The stages that can be added to `Self`, a template of a chain, after the chain that it has.
template <template <class> class Self, class Chain>
class with_stages {
  public:
    /// The type of the output items.
    using item = typename Chain::out;

    /// Replaces each item with a value.
    template <std::invocable<item> F>
    auto map(F function) && {
        return one(map_stage<F>{std::move(function)});
    }

    /// Replaces each item with a value or drops it: the function returns a `std::optional`.
    template <std::invocable<item> F>
    auto filter_map(F function) && {
        return one(filter_map_stage<F>{std::move(function)});
    }

    /// Replaces each item with several values: the function returns a range. For parts of a record, `pieces` needs no
    /// container.
    template <std::invocable<item> F>
    auto flat_map(F function) && {
        return one(flat_map_stage<F>{std::move(function)});
    }

    /// Replaces each item with the result of `function(state &, item)`.
    template <class State, std::invocable<State &, item> F>
    auto scan_state(State state, F function) && {
        return one(scan_stage<State, F>{std::move(state), std::move(function)});
    }

    /// Replaces each item with several items: `function(item, next)` calls `next` with each of them.
    template <class F>
    auto pieces(F function) && {
        return one(pieces_stage<F>{std::move(function)});
    }

    /// Replaces each item with bytes: `function(const item &, std::string &out)` appends them to an empty string.
    template <std::invocable<const item &, std::string &> F>
    auto rewrite(F function) && {
        return one(rewrite_stage<F>{std::move(function)});
    }

    /// Keeps the items for which a function returns true.
    template <std::predicate<const item &> F>
    auto filter(F wants) && {
        return one(filter_stage<F>{std::move(wants)});
    }

    /// Calls a function with each item.
    template <std::invocable<const item &> F>
    auto inspect(F look) && {
        return one(inspect_stage<F>{std::move(look)});
    }

    /// Keeps the first `count` items; then the pipe ends and its sources are closed.
    auto take(std::uint64_t count) && { return one(take_stage{count}); }

    /// Drops the first `count` items.
    auto skip(std::uint64_t count) && { return one(skip_stage{count}); }

    /// Cuts the chain here: the stages since the last cut run on a whole batch before later stages see it, and are
    /// measured under this name if the pipe is `measured`.
    auto cut(const std::string &name) && {
        return self().with([&](Chain &&chain) { return cut_here<Chain>{std::move(chain), {{.name = name}}}; });
    }

    /// Runs stages on `threads` threads at once, of which the caller's is one; the results are in order:
    ///
    ///     .parallel(4, [](auto stages) { return std::move(stages).map(expensive).filter(wanted); })
    ///
    /// The functions are called from threads of the pipe, several at the same time. Each thread uses its own copies of
    /// the functions, but what these refer to is shared and must be safe to use by several threads. The stages can be
    /// `map`, `filter_map`, `flat_map`, `pieces`, `rewrite`, `filter` and `inspect`. All other stages, the source and
    /// the sink stay on the caller's thread.
    ///
    /// Threads share the items of one batch, so memory is bounded by the results for a batch, and a slow sink stops the
    /// source. This helps if the stages are expensive, about a microsecond or more for an item. An exception is thrown
    /// after all earlier results have reached the sink; the stages may have run on later items of the batch. The
    /// threads block all signals, and end with the pipe.
    template <class F>
    auto parallel(std::size_t threads, F stages) && {
        auto given = std::invoke(stages, stage_chain<start<item>>(start<item>{})).release();
        using given_chain = decltype(given);
        static_assert(is_stateless<given_chain>, "only stages without state between items can run on several threads");
        static_assert(std::copy_constructible<given_chain>, "each thread needs a copy of the functions");
        refuse_none(threads, "0 threads");
        return self().with(
            [&](Chain &&chain) { return in_parallel<Chain, given_chain>(std::move(chain), given, threads); });
    }

    /// Replaces each item with the result of an operation, and waits for up to `most` operations at the same time:
    /// `start(item)` begins one and returns an object whose `get()` waits for its result, such as a std::future. The
    /// results are in order:
    ///
    ///     .map_async(8, [](std::string_view name) { return std::async(std::launch::async, look_up, std::string(name));
    ///     })
    ///
    /// Both functions are called on the caller's thread. An operation that continues after `start` has returned must
    /// have its own copy of the item.
    ///
    /// Operations continue while the next batches are read, and while the source has no data, results are passed on as
    /// they become ready. For this, the object has a `wait_for` like that of std::future; without one, all operations
    /// end before the pipe waits for the source. Memory is bounded by the items of one batch and `most` operations, and
    /// by the positions of the records of their batches. An exception of `start` or `get` is thrown after all earlier
    /// results have reached the sink; operations may have begun for later items. If their results are no longer needed,
    /// their objects are destroyed; those of std::async wait then.
    template <class F>
    requires std::invocable<F &, item> && detail::piping::result_later<std::invoke_result_t<F &, item>>
    auto map_async(std::size_t most, F start) && {
        refuse_none(most, "0 operations at the same time");
        return self().with(
            [&](Chain &&chain) { return then_async<Chain, F>(std::move(chain), std::move(start), most); });
    }

    /// Adds a stage chosen at run time.
    template <class Out>
    auto then(stage<item, Out> next) && {
        return self().with([&](Chain &&chain) {
            return then_boxed<Chain, stage<item, Out>>{std::move(chain), std::move(next)};
        });
    }

    /// Adds any number of stages chosen at run time.
    auto then_all(std::vector<stage<item, item>> stages) && {
        return self().with([&](Chain &&chain) {
            return then_all_boxed<Chain, stage<item, item>>{std::move(chain), std::move(stages)};
        });
    }

  protected:
    /// Adds a stage that works on one item at a time.
    template <class Stage>
    auto one(Stage added) {
        return self().with([&](Chain &&chain) { return fused<Chain, Stage>{std::move(chain), std::move(added)}; });
    }

  private:
    Self<Chain> &self() noexcept { return static_cast<Self<Chain> &>(*this); }

    static void refuse_none(std::size_t count, const char *found) {
        if (count != 0)
            return;
        error_details details;
        details.kind = errc::argument_invalid;
        details.found = found;
        details.expected = "at least 1";
        detail::fail(std::move(details));
    }
};

} // namespace detail::piping

/// Stages without a source, which can be `boxed`. Created by `millstream::stages`.
template <class Chain>
class [[nodiscard]] stage_chain : public detail::piping::with_stages<stage_chain, Chain> {
  public:
    explicit stage_chain(Chain chain) : chain_(std::move(chain)) {}

    /// Boxes these stages, with a name for statistics.
    stage<typename Chain::in, typename Chain::out> boxed(std::string name) &&;

    // ---- for `parallel` ----
    Chain release() && { return std::move(chain_); }

  private:
    friend class detail::piping::with_stages<stage_chain, Chain>;

    template <class Add>
    auto with(Add add) {
        return stage_chain<decltype(add(std::move(chain_)))>(add(std::move(chain_)));
    }

    Chain chain_;
};

/// Creates a chain of stages for records, or for values of a type.
template <class In = std::string_view>
stage_chain<detail::piping::start<In>> stages() {
    return stage_chain<detail::piping::start<In>>({});
}

/// A boxed chain of stages. Its type depends only on the input and output types, so that stages can be chosen at run
/// time and stored in a container.
///
///     std::vector<millstream::stage<>> chosen;
///     for (const std::string &word : words)
///         chosen.push_back(millstream::stages().filter([=](std::string_view line) { return line.contains(word);
///         }).boxed(word));
///     millstream::pipe(source).lines().then_all(std::move(chosen)).write_to(out);
template <class In = std::string_view, class Out = In>
class [[nodiscard]] stage {
  public:
    /// The name in statistics.
    const std::string &name() const noexcept { return meter_.stats.name; }

    // ---- for the pipe that contains it ----

    using out = Out;

    /// Runs the stage on a batch, and passes on what it holds back if that is ready within the time given.
    detail::piping::flow pass(detail::piping::items<In> &input, detail::piping::wait_time patience,
                              detail::piping::context &at, detail::piping::items<Out> &output,
                              detail::piping::waiting &failed) {
        output.clear();
        return meter_.during(at, output, [&] {
            return failed.during(at, [&] {
                const auto state = work_->run(input, at, output);
                const bool holds = state == detail::piping::flow::more && work_->oldest() != detail::piping::no_record;
                return holds && patience > patience.zero() ? work_->settle(patience, at, output) : state;
            });
        });
    }
    std::uint64_t oldest() const noexcept { return work_->oldest(); }
    bool is_done() const noexcept { return work_->is_done(); }
    const stage_stats &stats() const noexcept { return meter_.stats; }

  private:
    template <class Chain>
    friend class stage_chain;

    stage(std::unique_ptr<detail::piping::work<In, Out>> work, std::string name)
        : work_(std::move(work)), meter_{{.name = std::move(name)}} {}

    std::unique_ptr<detail::piping::work<In, Out>> work_;
    detail::piping::meter meter_;
};

template <class Chain>
stage<typename Chain::in, typename Chain::out> stage_chain<Chain>::boxed(std::string name) && {
    return {std::make_unique<detail::piping::work_of<Chain>>(std::move(chain_)), std::move(name)};
}

namespace detail::piping {

/// The type in which items are collected: text for items that refer to other objects.
template <class Item>
using owned = std::conditional_t<std::is_same_v<Item, std::string_view>, std::string, Item>;

} // namespace detail::piping

/// A chain of stages with sources: see the top of this file. Its type contains its stages and need not be written out.
/// It can be moved but not copied.
///
/// Functions that add a stage or a setting consume the pipe, so that everything can be written in one expression.
/// Functions that run the pipe do not consume it, so that it can be queried. After `cancelled`, it can be run again and
/// continues at the same position; after any other exception of a stage or a sink, it has ended and reports `closed`.
/// After all items have passed, or `take` has ended the pipe, running it does nothing.
template <class Chain>
class [[nodiscard]] pipe_chain : public detail::piping::with_stages<pipe_chain, Chain> {
    using flow = detail::piping::flow;

  public:
    using item = typename Chain::out;

    pipe_chain(detail::piping::source_of_records source, Chain chain)
        : source_(std::move(source)), chain_(std::move(chain)) {}

    // ---- settings ----

    /// Sets what to do if a stage throws for a record.
    pipe_chain on_error(millstream::on_error on_error) && {
        source_.at().skips = on_error == millstream::on_error::skip;
        return std::move(*this);
    }

    /// Skips records for which a stage throws, and writes them to `to` as they were read, with their delimiter. The
    /// writer must outlive the pipe.
    pipe_chain quarantine(writer &to) && {
        source_.at().skips = true;
        source_.quarantine = &to;
        return std::move(*this);
    }

    /// Stops between two batches with `cancelled` when this token is cancelled. The token must outlive the pipe. To
    /// interrupt waits for the source as well, also pass the token to the reader.
    pipe_chain cancel(const cancel_token &token) && {
        source_.cancel = &token;
        return std::move(*this);
    }

    /// Sets the maximum number of records in a batch, which is at least 1.
    pipe_chain batch(std::size_t records) && {
        source_.most = std::max<std::size_t>(records, 1);
        return std::move(*this);
    }

    /// Measures the time spent, for `stats`.
    pipe_chain measured() && {
        source_.at().measures = true;
        return std::move(*this);
    }

    /// Also writes each item to another writer, like `write_to`. The writer must outlive the pipe.
    auto tee(writer &to) && requires printable<item> {
        return this->one(detail::piping::tee_stage{&to, source_.terminator()});
    }

    /// Sends the items to a command, each followed by the record terminator of the source (a newline for lines), and
    /// continues with the command's output, which the next call divides into records.
    ///
    ///     millstream::pipe(millstream::path{"names.txt"})
    ///         .lines()
    ///         .filter([](std::string_view name) { return !name.empty(); })
    ///         .through({"sort", "-u"})
    ///         .lines()
    ///         .write_to(out);
    ///
    /// The command starts at once. The stages before it, their source and writers of `tee` and `quarantine` are used by
    /// a thread of the library. Memory use is bounded: if the command or the later stages are slow, the earlier ones
    /// wait. The command need not read all items; if it ends before, the source is closed at its position. An exception
    /// of the earlier stages or their source is rethrown after all records of the output, and the command gets the end
    /// of its input; otherwise, `command_failed` is thrown if the command fails.
    unframed_pipe through(command to) &&;

    // ---- sinks ----

    /// Runs to the end without a sink, if the stages do all the work.
    pipe_summary run() {
        drive([](item &&) { return flow::more; });
        return summary();
    }

    /// Returns the number of output items.
    std::uint64_t count() {
        std::uint64_t count = 0;
        drive([&](item &&) {
            ++count;
            return flow::more;
        });
        return count;
    }

    /// Calls a function with each item. Its exceptions end the pipe.
    template <std::invocable<item> F>
    pipe_summary for_each(F function) {
        drive([&](item &&given) {
            source_.at().sinking([&] { std::invoke(function, std::move(given)); });
            return flow::more;
        });
        return summary();
    }

    /// Combines all items into one value: `function(value, item)` returns the next value.
    template <class Value, std::invocable<Value, item> F>
    Value fold(Value init, F function) {
        drive([&](item &&given) {
            source_.at().sinking([&] { init = std::invoke(function, std::move(init), std::move(given)); });
            return flow::more;
        });
        return init;
    }

    /// Collects all items; items that refer to a record are copied.
    std::vector<detail::piping::owned<item>> collect() {
        std::vector<detail::piping::owned<item>> all;
        drive([&](item &&given) {
            source_.at().sinking([&] { all.emplace_back(std::move(given)); });
            return flow::more;
        });
        return all;
    }

    /// Prints each item, followed by the record terminator of the source, such as a newline for lines. The writer is
    /// neither flushed nor closed. When this returns, everything has been written to the writer; otherwise it throws.
    pipe_summary write_to(writer &to) requires printable<item> {
        const std::string terminator = source_.terminator();
        drive([&](item &&given) {
            source_.at().sinking([&] { to.print(std::as_const(given), std::string_view(terminator)); });
            return flow::more;
        });
        return summary();
    }

    // ---- results ----

    /// The statistics so far.
    pipe_summary summary() const { return source_.summary(); }

    /// How time was spent, if the pipe is `measured`.
    pipe_stats stats() const {
        pipe_stats stats{{}, source_.waited(), source_.elapsed};
        chain_.report(stats.stages);
        return stats;
    }

    /// The details of the last failure: for an exception of a stage, `stage_failed` with the record, its position, its
    /// source, and the message of the exception. Null if there was none. Valid until the next failure.
    const error *last_error() const noexcept { return source_.last_error(); }

    /// Stops at the current position. Running commands are stopped, as by `millstream::reader::close`. The destructor
    /// also does this, without reporting errors.
    pipe_summary close() {
        source_.close();
        return summary();
    }

  private:
    friend class detail::piping::with_stages<pipe_chain, Chain>;

    template <class Add>
    auto with(Add add) {
        return pipe_chain<decltype(add(std::move(chain_)))>(std::move(source_), add(std::move(chain_)));
    }

    /// Runs to the end, and passes every item to `sink`.
    template <class Sink>
    void drive(Sink sink) {
        const detail::piping::stopwatch watch(source_.elapsed);
        while (source_.is_open())
            step(sink);
    }

    /// Processes one batch, and passes its items to `sink`.
    template <class Sink>
    void step(Sink &sink) {
        const auto counted = [&](auto act) {
            detail::piping::counter items(source_.summary().items);
            return act([&](item &&given) {
                ++items.count;
                return sink(std::move(given));
            });
        };
        source_.step(
            chain_,
            [&](auto records, detail::piping::context &at) {
                return counted([&](auto &&to) { return chain_.run(records, at, to); });
            },
            [&](detail::piping::wait_time patience, detail::piping::context &at) {
                return counted([&](auto &&to) { return chain_.settle(patience, at, to); });
            });
    }

    /// The text of the items, batch by batch: a callback.
    class item_text {
      public:
        explicit item_text(pipe_chain &&pipe) : pipe_(std::move(pipe)), terminator_(pipe_.source_.terminator()) {}

        std::size_t operator()(std::span<char> space) {
            while (given_ == text_.size()) {
                if (failure_ != nullptr)
                    std::rethrow_exception(std::exchange(failure_, nullptr));
                if (!pipe_.source_.is_open())
                    return 0;
                text_.clear();
                given_ = 0;
                const auto append = [&](item &&given) {
                    put(detail::as_part(given));
                    text_ += terminator_;
                    return flow::more;
                };
                try {
                    pipe_.step(append);
                } catch (...) {
                    failure_ = std::current_exception(); // after the items before it
                }
            }
            const std::size_t count = text_.copy(space.data(), space.size(), given_);
            given_ += count;
            return count;
        }

      private:
        template <class Part>
        void put(const Part &part) {
            const std::size_t had = text_.size();
            text_.resize(had + detail::as_size(part.max_size()));
            text_.resize(had + part.put(text_.data() + had));
        }

        pipe_chain pipe_;
        std::string terminator_;
        std::string text_{};
        std::size_t given_ = 0;
        std::exception_ptr failure_{};
    };

    detail::piping::source_of_records source_;
    Chain chain_;
};

/// Readers without a definition of records yet. Created by `millstream::pipe` and `millstream::merge`.
class unframed_pipe {
  public:
    explicit unframed_pipe(std::vector<reader> readers) noexcept : readers_(std::move(readers)) {}

    /// Defines records as lines.
    auto lines() && { return std::move(*this).frames(framer::lines()); }

    /// Defines records by a framer.
    pipe_chain<detail::piping::start<std::string_view>> frames(framer framer) && {
        return {detail::piping::source_of_records(std::move(readers_), std::move(framer)), {}};
    }

  private:
    std::vector<reader> readers_;
};

template <class Chain>
unframed_pipe pipe_chain<Chain>::through(command to) && {
    static_assert(printable<item>, "the items before a command are text or numbers");
    const auto interrupters = source_.interrupters();
    std::vector<const millstream_cancel_token *> tokens;
    tokens.reserve(interrupters.size() + 1); // an empty list is not a null pointer
    for (const auto &interrupter : interrupters)
        tokens.push_back(interrupter.get());
    to.stdin_from(callback{item_text(std::move(*this))}, tokens);
    std::vector<reader> readers;
    readers.emplace_back(std::move(to));
    return unframed_pipe(std::move(readers));
}

/// Combines the records of several readers. The readers take turns, one batch at a time, and a reader without data is
/// skipped while another has some. The records of each reader stay in order, and a record's number is its number in its
/// own reader. All readers must succeed.
inline unframed_pipe merge(std::vector<reader> readers) { return unframed_pipe(std::move(readers)); }

/// Starts a pipe with the records of a reader, from its current position.
inline unframed_pipe pipe(reader reader) {
    std::vector<millstream::reader> readers;
    readers.push_back(std::move(reader));
    return merge(std::move(readers));
}

/// Starts a pipe with the records of a source.
template <source Source>
unframed_pipe pipe(Source &&source, const reader_options &options = {}) {
    return pipe(reader(std::forward<Source>(source), options));
}

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_PIPE_HPP
