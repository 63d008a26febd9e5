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
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
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

/// The function of the C ABI that returns such a value from a column of the next line.
template <class Value>
constexpr auto next_column_by_call() noexcept {
    if constexpr (std::same_as<Value, std::uint32_t>)
        return &millstream_reader_next_column_u32;
    else if constexpr (std::same_as<Value, std::uint64_t>)
        return &millstream_reader_next_column_u64;
    else if constexpr (std::same_as<Value, std::int32_t>)
        return &millstream_reader_next_column_i32;
    else if constexpr (std::same_as<Value, std::int64_t>)
        return &millstream_reader_next_column_i64;
    else if constexpr (std::same_as<Value, float>)
        return &millstream_reader_next_column_f32;
    else
        return &millstream_reader_next_column_f64;
}

/// The function of the C ABI that returns such a value from a column of a text.
template <class Value>
constexpr auto column_by_call() noexcept {
    if constexpr (std::same_as<Value, std::uint32_t>)
        return &millstream_column_u32;
    else if constexpr (std::same_as<Value, std::uint64_t>)
        return &millstream_column_u64;
    else if constexpr (std::same_as<Value, std::int32_t>)
        return &millstream_column_i32;
    else if constexpr (std::same_as<Value, std::int64_t>)
        return &millstream_column_i64;
    else if constexpr (std::same_as<Value, float>)
        return &millstream_column_f32;
    else
        return &millstream_column_f64;
}

/// A separator for the C ABI: by default, any amount of white space.
constexpr std::int32_t c_separator(std::optional<char> separator) noexcept {
    return separator ? std::int32_t{static_cast<unsigned char>(*separator)} : std::int32_t{MILLSTREAM_SPACE};
}

} // namespace detail

/// Returns the number in one column of a line; the first column is 0. Columns are separated by exactly one `separator`
/// or, without one, by any amount of white space. The other columns need not contain numbers.
///
///     std::uint64_t sum = millstream::pipe(millstream::path{"ages.csv"})
///                             .lines()
///                             .map([](std::string_view line) { return millstream::column<unsigned>(line, 1, ','); })
///                             .fold(std::uint64_t{0}, std::plus());
///
/// Throws `number_invalid`, `number_overflow`, or `value_missing` if there are fewer columns. The error's offset and
/// column are counted from the start of the line; a pipe adds the source, the record and the line.
template <scannable Value>
Value column(std::string_view line, std::size_t column, std::optional<char> separator = std::nullopt) {
    detail::scanned_as<Value> value{};
    millstream_error *error = nullptr;
    const millstream_code code = detail::column_by_call<detail::scanned_as<Value>>()(
        line.data(), line.size(), column, detail::c_separator(separator), &value, &error);
    if (code != MILLSTREAM_OK) [[unlikely]]
        detail::fail(detail::taken(code, error, line.data()));
    return static_cast<Value>(value);
}

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_SCAN_HPP
