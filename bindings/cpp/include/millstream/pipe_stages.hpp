// The stages of pipes that work on one item at a time; see pipe.hpp. This header is internal.
//
// A stage receives an item and passes no item, one item or several items to the next stage.
//
// Needs C++20 and libmillstream.
#ifndef MILLSTREAM_PIPE_STAGES_HPP
#define MILLSTREAM_PIPE_STAGES_HPP

#if __cplusplus <= 201703L
#error "millstream/pipe_stages.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <millstream/pipe_items.hpp>
#include <millstream/writer.hpp>

namespace millstream::detail::piping {

template <class F, class In>
using made_of = std::remove_cvref_t<std::invoke_result_t<F &, In>>;

template <class F>
struct map_stage {
    F function;
    template <class In>
    using out = made_of<F, In>;

    template <class In, class Next>
    flow each(In &&item, context &, Next &next) {
        // The result lives until later stages have processed it.
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
        // Elements that only the range owns can be moved out of it.
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

} // namespace millstream::detail::piping

#endif // C++20
#endif // MILLSTREAM_PIPE_STAGES_HPP
