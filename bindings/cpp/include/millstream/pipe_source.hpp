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
#include <chrono>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

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

    /// Processes one batch: `work` is called with its records and the context, and returns whether it needs more. If
    /// the chain holds items back, `settle` passes some of them on.
    template <class Chain, class Work, class Settle>
    void step(const Chain &chain, Work work, Settle settle) {
        const auto holds = [&] { return chain.oldest() != no_record; };
        const auto settled = [&](wait_time patience) {
            return !holds() || during(chain, [&] { return settle(patience, *at_); });
        };
        if (chain.is_done()) {
            if (settled(until_all))
                end_early();
            return;
        }
        if (cancel != nullptr && cancel->is_cancelled())
            fail(errc::cancelled);
        if (readers_.empty()) {
            phase_ = phase::ended;
            return;
        }
        const std::size_t chosen = choose();
        reader &from = readers_[chosen];
        if (holds() && from.waits() == waits::yes) {
            (void)settled(std::chrono::milliseconds(1));
            return;
        }
        std::optional<batch> batch;
        try {
            batch = from.next_batch(framer_, most);
        } catch (...) {
            // All earlier results come first, unless reading can continue.
            const error failed = from.last_error() != nullptr ? *from.last_error() : error({});
            if (failed.kind() == errc::cancelled || settled(until_all)) {
                last_ = failed;
                throw;
            }
            return;
        }
        if (!batch) {
            if (settled(until_all))
                end(chosen);
            return;
        }
        turn_ = chosen + 1;
        const std::uint64_t first = summary_.records;
        summary_.records += batch->size();
        current_ = {&*batch, &from, first};
        (void)during(chain, [&] { return work(records_of(*batch, first), *at_); });
        if (phase_ == phase::open && chain.oldest() < summary_.records)
            (void)find(summary_.records - 1); // it is kept
        current_ = {};
        while (!origins_.empty() && origins_.front().end() <= chain.oldest())
            origins_.pop_front();
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

    /// Tokens that interrupt the waits for the readers.
    std::vector<handle<millstream_cancel_token, millstream_cancel_token_free>> interrupters() {
        std::vector<handle<millstream_cancel_token, millstream_cancel_token_free>> tokens;
        tokens.reserve(readers_.size());
        for (reader &reader : readers_)
            tokens.push_back(reader.interrupter());
        return tokens;
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

    /// The records of a batch, kept for errors and skipped records that are reported after the batch.
    struct origin {
        std::string name;          // of the source
        std::uint64_t first;       // the number of its first record, over all batches
        std::uint64_t first_there; // the number in its source
        std::uint64_t first_line;  // 0 if it is not known
        std::uint64_t offset;      // of the bytes, in the source
        std::vector<std::uint32_t> offsets;
        std::string bytes{}; // if they are needed

        std::uint64_t end() const noexcept { return first + offsets.size() - 1; }
    };

    /// Returns the batch of a record, which is the current batch or one that is kept.
    const origin &find(std::uint64_t record) {
        for (const origin &kept : origins_)
            if (record < kept.end())
                return kept;
        const batch &batch = *current_.records;
        const std::span<const std::uint32_t> offsets = batch.offsets();
        origins_.push_back({std::string(current_.from->name()), current_.first, batch.first_record(),
                            batch.first_line().value_or(0), batch.offset(),
                            std::vector<std::uint32_t>(offsets.begin(), offsets.end())});
        if (quarantine != nullptr)
            for (std::size_t i = 0; i < batch.size(); ++i)
                origins_.back().bytes += batch.untrimmed(i);
        return origins_.back();
    }

    /// Runs a part of the chain. Returns whether the pipe needs more.
    template <class Chain, class Act>
    bool during(const Chain &chain, Act act) {
        at_->begin();
        flow wanted = flow::more;
        try {
            wanted = act();
        } catch (...) {
            phase_ = phase::failed;
            pass_over(at_->failed_at);
            rethrow();
        }
        // The records that are still being processed can fail, too.
        pass_over(wanted == flow::more ? chain.oldest() : no_record);
        if (wanted == flow::enough)
            end_early();
        return wanted == flow::more;
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
    void pass_over(std::uint64_t before) {
        std::vector<std::uint64_t> &records = at_->passed_over;
        if (records.empty())
            return;
        // Stages after a cut may have reported an earlier record later.
        std::sort(records.begin(), records.end());
        const auto end = std::lower_bound(records.begin(), records.end(), before);
        try {
            for (auto record = records.begin(); record != end; ++record) {
                ++summary_.failed;
                if (quarantine == nullptr)
                    continue;
                const origin &of = find(*record);
                const auto index = static_cast<std::size_t>(*record - of.first);
                quarantine->write(std::string_view(of.bytes).substr(of.offsets[index] - of.offsets[0],
                                                                    of.offsets[index + 1] - of.offsets[index]));
            }
            records.erase(records.begin(), end);
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
    [[noreturn]] void rethrow() {
        error_details details;
        details.kind = errc::stage_failed;
        try {
            throw;
        } catch (const error &thrown) {
            last_ = placed(thrown);
            if (typeid(thrown) == typeid(error))
                throw error(*last_);
            throw;
        } catch (const std::exception &thrown) {
            details.found = thrown.what();
            last_ = placed(error(std::move(details)));
            throw;
        } catch (...) {
            details.kind = errc::stage_panicked;
            details.found = "an exception that is not a std::exception";
            last_ = placed(error(std::move(details)));
            throw;
        }
    }

    /// Returns the error with its record. An error of a sink names the sink instead.
    error placed(const error &thrown) {
        if (thrown.command() != nullptr)
            return thrown; // the library has created its sentence
        error_details details;
        details.kind = thrown.kind();
        details.name = thrown.name();
        details.expected = thrown.expected();
        details.found = thrown.found();
        details.offset = thrown.offset();
        const origin &of = find(at_->failed_at);
        const std::uint64_t index = at_->failed_at - of.first;
        details.record = of.first_there + index;
        details.path = thrown.path();
        details.written = thrown.written();
        details.system_errno = thrown.system_errno();
        if (!at_->sink_failed) {
            // The stage counted from the start of its input.
            details.name = of.name;
            if (of.first_line != 0)
                details.line = of.first_line + index;
            details.offset = of.offset + of.offsets[static_cast<std::size_t>(index)];
            if (const std::optional<std::uint64_t> at = place_in_record(thrown, of, index); at && thrown.offset()) {
                *details.offset += *at + *thrown.offset();
                if (details.line && thrown.column())
                    details.column = *at + *thrown.column();
            }
        }
        return error(std::move(details));
    }

    /// Returns the number of bytes of the record before the text of an error, if the text is a part of the record.
    std::optional<std::uint64_t> place_in_record(const error &thrown, const origin &of, std::uint64_t index) const {
        if (thrown.text() == nullptr || current_.records == nullptr || of.first != current_.first)
            return std::nullopt;
        const std::string_view record = current_.records->untrimmed(static_cast<std::size_t>(index));
        const auto at =
            reinterpret_cast<std::uintptr_t>(thrown.text()) - reinterpret_cast<std::uintptr_t>(record.data());
        return at <= record.size() ? std::optional(std::uint64_t{at}) : std::nullopt;
    }

    std::vector<reader> readers_;
    std::size_t turn_ = 0;
    /// The batch that is being processed; `first` is the number of its first record, over all batches.
    struct {
        const batch *records;
        const reader *from;
        std::uint64_t first;
    } current_{};
    std::deque<origin> origins_; // in their order
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
