// Scanning: the types of numbers that a reader can read, and their functions of the C ABI. See
// `millstream::reader::scan`.
//
// The common case is inlined over the reader's unread bytes (window.h); the library does the rest, and reports all
// errors.
#ifndef MILLSTREAM_SCAN_HPP
#define MILLSTREAM_SCAN_HPP

#if __cplusplus <= 201703L
#error "millstream/scan.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <concepts>
#include <tuple>
#include <type_traits>

#include <millstream/boundary.hpp>

namespace millstream {

/// The numbers that can be scanned: integers of 32 and 64 bits, float and double.
template <class Value>
concept scannable = std::same_as<Value, float> || std::same_as<Value, double> ||
    (std::integral<Value> && (sizeof(Value) == 4 || sizeof(Value) == 8) && !std::same_as<Value, wchar_t> &&
     !std::same_as<Value, char32_t>);

namespace detail {

template <class... Values>
struct values_of_ {
    using type = std::tuple<Values...>;
};
template <class Value>
struct values_of_<Value> {
    using type = Value;
};

/// A single value, or several as a tuple.
template <class... Values>
using values_of = typename values_of_<Values...>::type;

template <class Value>
struct scanned_as_ {
    using type =
        std::conditional_t<sizeof(Value) == 4, std::conditional_t<std::is_signed_v<Value>, std::int32_t, std::uint32_t>,
                           std::conditional_t<std::is_signed_v<Value>, std::int64_t, std::uint64_t>>;
};
template <>
struct scanned_as_<float> {
    using type = float;
};
template <>
struct scanned_as_<double> {
    using type = double;
};

/// The type of the C ABI for a value: for `long` and `long long`, the one that is int64_t.
template <scannable Value>
using scanned_as = typename scanned_as_<Value>::type;

/// Scans over the window, without a library call if the number is complete and valid.
template <class Value>
inline millstream_code scan_in_window(millstream_input *in, Value *value, bool *end, millstream_error **error) {
    if constexpr (std::same_as<Value, std::uint32_t>)
        return millstream_input_scan_u32(in, value, end, error);
    else if constexpr (std::same_as<Value, std::uint64_t>)
        return millstream_input_scan_u64(in, value, end, error);
    else if constexpr (std::same_as<Value, std::int32_t>)
        return millstream_input_scan_i32(in, value, end, error);
    else if constexpr (std::same_as<Value, std::int64_t>)
        return millstream_input_scan_i64(in, value, end, error);
    else if constexpr (std::same_as<Value, float>)
        return millstream_input_scan_f32(in, value, end, error);
    else
        return millstream_input_scan_f64(in, value, end, error);
}

/// The function of the C ABI that scans such a value.
template <class Value>
constexpr auto scan_by_call() noexcept {
    if constexpr (std::same_as<Value, std::uint32_t>)
        return &millstream_reader_scan_u32;
    else if constexpr (std::same_as<Value, std::uint64_t>)
        return &millstream_reader_scan_u64;
    else if constexpr (std::same_as<Value, std::int32_t>)
        return &millstream_reader_scan_i32;
    else if constexpr (std::same_as<Value, std::int64_t>)
        return &millstream_reader_scan_i64;
    else if constexpr (std::same_as<Value, float>)
        return &millstream_reader_scan_f32;
    else
        return &millstream_reader_scan_f64;
}

} // namespace detail
} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_SCAN_HPP
