// Reads the records of a pipe, batch by batch, and handles exceptions of stages; see pipe.hpp. Except for
// `millstream::pipe_summary`, this header is internal.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_SOURCE_HPP
#define MILLSTREAM_PIPE_SOURCE_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_source.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <typeinfo>

#include <millstream/pipe_items.hpp>
#include <millstream/reader.hpp>
#include <millstream/writer.hpp>

namespace millstream {

/// The statistics of a pipe.
struct pipe_summary {
    /// The number of records that were read.
    std::uint64_t records = 0;
    /// The number of items that the last stage produced.
    std::uint64_t items = 0;
    /// The number of times a stage failed for a record that was skipped, as `on_error` allows.
    std::uint64_t failed = 0;
    /// Whether a stage such as `take` ended the pipe before its sources ended.
    bool ended_early = false;
    /// How the sources' commands ended.
    std::vector<command_end> commands;
};

namespace detail::piping {

/// The sources of the records, and the loop that processes them.
class source_of_records {
  public:
    source_of_records(std::vector<reader> readers, millstream::framer framer)
        : readers_(std::move(readers)), framer_(std::move(framer)), at_(std::make_unique<context>()) {}

    std::string terminator() const { return std::string(framer_.terminator()); }

    /// Processes one batch: `work` is called with its records and the context, and returns whether it needs more.
    template <class Chain, class Work>
    void step(const Chain &chain, Work work) {
        if (chain.is_done())
            return end_early();
        if (cancel != nullptr && cancel->is_cancelled())
            fail(errc::cancelled);
        at_->begin();
        if (readers_.empty()) {
            phase_ = phase::ended;
            return;
        }
        const std::size_t chosen = choose();
        reader &from = readers_[chosen];
        const std::optional<batch> batch = next(from);
        if (!batch) {
            end(chosen);
            return;
        }
        turn_ = chosen + 1;
        summary_.records += batch->size();
        flow wanted = flow::more;
        try {
            wanted = work(records_of(*batch), *at_);
        } catch (...) {
            phase_ = phase::failed;
            pass_over(*batch, at_->failed_at);
            rethrow(*batch, from);
        }
        pass_over(*batch, std::numeric_limits<std::uint64_t>::max());
        if (wanted == flow::enough)
            end_early();
    }

    /// Whether there is more to process.
    bool is_open() {
        if (phase_ == phase::failed)
            fail(errc::closed);
        return phase_ == phase::open;
    }

    /// Closes all readers at their current positions.
    void close() {
        std::exception_ptr first;
        while (!readers_.empty()) {
            try {
                end(0);
            } catch (...) {
                first = first != nullptr ? first : std::current_exception();
            }
        }
        if (first != nullptr)
            std::rethrow_exception(first);
    }

    /// The time spent waiting for the readers.
    std::chrono::nanoseconds waited() const {
        std::chrono::nanoseconds sum = waited_;
        for (const reader &reader : readers_)
            sum += reader.progress().waited;
        return sum;
    }

    context &at() noexcept { return *at_; }
    pipe_summary &summary() noexcept { return summary_; }
    const pipe_summary &summary() const noexcept { return summary_; }
    const error *last_error() const noexcept { return last_ ? &*last_ : nullptr; }

    std::size_t most = all_records;
    const cancel_token *cancel = nullptr;
    writer *quarantine = nullptr;
    std::chrono::nanoseconds elapsed{};

  private:
    enum class phase { open, ended, failed };

    [[noreturn]] void fail(errc kind) {
        error_details details;
        details.kind = kind;
        last_ = error(std::move(details));
        detail::fail(*last_);
    }

    /// Returns the next reader in turn that requires no wait.
    std::size_t choose() noexcept {
        const std::size_t count = readers_.size();
        std::size_t chosen = turn_ % count;
        if (count == 1)
            return chosen;
        waits least = readers_[chosen].waits();
        for (std::size_t i = 1; i < count && least != waits::no; ++i) {
            const std::size_t other = (turn_ + i) % count;
            if (const waits waits = readers_[other].waits(); waits < least) {
                least = waits;
                chosen = other;
            }
        }
        return chosen;
    }

    std::optional<batch> next(reader &from) {
        try {
            return from.next_batch(framer_, most);
        } catch (...) {
            if (const error *failed = from.last_error(); failed != nullptr)
                last_ = *failed;
            throw;
        }
    }

    /// Removes a reader.
    void end(std::size_t index) {
        reader reader = std::move(readers_[index]);
        readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(index));
        turn_ = index;
        waited_ += reader.progress().waited;
        std::error_code code;
        reader.close(code);
        for (command_end &end : reader.command_ends())
            summary_.commands.push_back(std::move(end));
        if (code) {
            last_ = *reader.last_error();
            if (reader.callback_exception() != nullptr)
                std::rethrow_exception(reader.callback_exception());
            detail::fail(*last_);
        }
    }

    /// The pipe needs no more records.
    void end_early() {
        phase_ = phase::ended;
        summary_.ended_early = true;
        close();
    }

    /// Handles the records before this one for which stages have failed.
    void pass_over(const batch &batch, std::uint64_t before) {
        std::vector<std::uint64_t> &records = at_->passed_over;
        if (records.empty())
            return;
        // Stages after a cut may have reported an earlier record later.
        std::sort(records.begin(), records.end());
        try {
            for (const std::uint64_t record : records) {
                if (record >= before)
                    break;
                ++summary_.failed;
                if (quarantine != nullptr)
                    quarantine->write(batch.untrimmed(static_cast<std::size_t>(record - batch.first_record())));
            }
        } catch (const error &failed) {
            phase_ = phase::failed;
            last_ = failed;
            throw;
        } catch (...) {
            phase_ = phase::failed;
            throw;
        }
    }

    /// In an exception handler: rethrows the exception and stores where it was thrown.
    [[noreturn]] void rethrow(const batch &batch, const reader &from) {
        error_details details;
        details.kind = errc::stage_failed;
        try {
            throw;
        } catch (const error &thrown) {
            last_ = placed(thrown, batch, from);
            if (typeid(thrown) == typeid(error))
                throw error(*last_);
            throw;
        } catch (const std::exception &thrown) {
            details.found = thrown.what();
            last_ = placed(error(std::move(details)), batch, from);
            throw;
        } catch (...) {
            details.kind = errc::stage_panicked;
            details.found = "an exception that is not a std::exception";
            last_ = placed(error(std::move(details)), batch, from);
            throw;
        }
    }

    /// Returns the error with its record. An error of a sink names the sink instead.
    error placed(const error &thrown, const batch &batch, const reader &from) const {
        if (thrown.command() != nullptr)
            return thrown; // the library has created its sentence
        error_details details;
        details.kind = thrown.kind();
        details.name = thrown.name();
        details.expected = thrown.expected();
        details.found = thrown.found();
        details.offset = thrown.offset();
        details.record = at_->failed_at;
        details.path = thrown.path();
        details.written = thrown.written();
        details.system_errno = thrown.system_errno();
        if (!at_->sink_failed) {
            // The stage counted from the start of its input.
            details.name = from.name();
            if (batch.first_line())
                details.line = *batch.first_line() + (at_->failed_at - batch.first_record());
            details.offset =
                batch.offset() + batch.offsets()[static_cast<std::size_t>(at_->failed_at - batch.first_record())];
        }
        return error(std::move(details));
    }

    std::vector<reader> readers_;
    std::size_t turn_ = 0;
    millstream::framer framer_;
    std::unique_ptr<context> at_; // which does not move
    pipe_summary summary_;
    std::optional<error> last_;
    std::chrono::nanoseconds waited_{}; // for readers that have ended
    phase phase_ = phase::open;
};

} // namespace detail::piping
} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_PIPE_SOURCE_HPP
