// Programs with types of their own, and those that use the streams as a std::istream & and std::ostream &.

namespace shapes {
struct point {
    int x, y;
};
inline std::ostream &operator<<(std::ostream &out, const point &p) { return out << '(' << p.x << ", " << p.y << ')'; }
inline std::istream &operator>>(std::istream &in, point &p) { return in >> p.x >> p.y; }

enum color { red, green };
} // namespace shapes

// Not in the namespace of its type.
inline std::ostream &operator<<(std::ostream &out, shapes::color c) {
    return out << (c == shapes::red ? "red" : "green");
}
template <class T>
std::ostream &operator<<(std::ostream &out, const std::vector<T> &values) {
    out << '[';
    for (const T &value : values)
        out << value << ';';
    return out << ']';
}
template <class A, class B>
std::ostream &operator<<(std::ostream &out, const std::pair<A, B> &both) {
    return out << both.first << ':' << both.second;
}
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wide_integer;
inline std::ostream &operator<<(std::ostream &out, wide_integer) { return out << "128 bits"; }
#endif

// With an implicit conversion and an operator of its own.
struct modulo {
    int value;
    operator int() const { return value; }
};
inline std::ostream &operator<<(std::ostream &out, const modulo &m) { return out << m.value << " mod 7"; }
// With conversions only.
struct convertible {
    operator int() const { return 65; }
};
struct named {
    operator const char *() const { return "named"; }
};
// Not a constant.
struct counter {
    int count = 0;
};
inline std::ostream &operator<<(std::ostream &out, counter &c) { return out << ++c.count; }

PROGRAM(own_types) {
    shapes::point p{0, 0};
    while (cin >> p)
        cout << p << '\n';
    cout << p << shapes::red << shapes::green << vector<int>{1, 2} << make_pair(1, "one"s) << '\n';
#ifdef __SIZEOF_INT128__
    cout << wide_integer{1} << '\n';
#endif
    counter c;
    cout << c << c << modulo{3} << named{} << endl;
    return 0;
}

PROGRAM(conversions) {
    enum plain { one = 1 };
    enum small : unsigned char { two = 2 };
    struct {
        unsigned bits : 3;
        int sign : 4;
    } fields{5, -3};
    static const volatile int changing = 9;
    vector<bool> flags{true, false};
    atomic<int> shared{12};
    int three = 3;
    reference_wrapper<int> reference = three;
    cout << one << ' ' << +two << ' ' << fields.bits << fields.sign << ' ' << changing << ' ' << flags[0] << flags[1]
         << ' ' << shared << ' ' << reference << ' ' << convertible{} << ' ' << integral_constant<int, 4>() << '\n';
    cout << nullptr << ' ' << static_cast<void *>(nullptr) << ' ' << reinterpret_cast<int *>(0x1234) << ' '
         << (three != 0) << '\n'
         << 1.5L << ' ' << short{3} << ' ' << static_cast<unsigned short>(65535) << '\n';
    return 0;
}

PROGRAM(types_of_the_library) {
    cout << filesystem::path("/tmp/a b") << ' ' << complex<double>(1, 2) << ' ' << bitset<8>(5) << ' ' << quoted("q\"q")
         << ' ' << error_code() << ' ' << put_money("123") << '\n';
    complex<double> c;
    bitset<4> b;
    cin >> c >> b;
    cout << c << b << cin.rdstate() << endl;
    return 0;
}

static ostream &arrow(ostream &out) { return out << "->"; }
static ostream &to_standard_error(ostream &) { return cerr; }
static void print_to(ostream &out, int n) { out << setw(5) << n << endl; }
static int read_from(istream &in) {
    int n = -1;
    in >> n;
    return n;
}
template <class Stream>
static void print_twice(Stream &out, const string &text) {
    out << text << text << '\n';
}

PROGRAM(passed_as_references) {
    print_to(cout, read_from(cin));
    ostream &out = cout;
    istream &in = cin;
    int n = 0;
    cin >> n;
    out << n;
    in >> n;
    cout << arrow << n << arrow;
    out << arrow << n << endl;
    print_twice(cout, "ab");
    cout << to_standard_error << "on standard error\n";
    (n > 0 ? cout : cerr) << "positive or not\n";
    ostringstream text;
    print_twice(text, "cd");
    ostream *pointers[] = {&cout, &text};
    for (ostream *pointer : pointers)
        *pointer << "pointer\n";
    cout << text.str() << (&cout == cin.tie()) << (cerr.tie() == &cout) << endl;
    return 0;
}

PROGRAM(other_buffers) {
    istringstream numbers("10 20");
    ostringstream text;
    streambuf *const in = cin.rdbuf(numbers.rdbuf());
    streambuf *const out = cout.rdbuf(text.rdbuf());
    int a = 0, b = 0;
    string line;
    cin >> a >> b;
    getline(cin, line);
    cout << a + b << ' ' << "words" << 'c' << 1.5 << endl;
    cin.rdbuf(in);
    cout.rdbuf(out);
    cout << text.str();
    getline(cin, line);
    cout << line << endl;
    return 0;
}

PROGRAM(local_names) {
    using std::cin;
    using std::cout;
    using std::endl;
    std::string word;
    if (std::cin >> word; not word.empty())
        ::std::cout << word << std::endl;
    const auto print = [&out = std::cout](auto... values) { (out << ... << values) << std::flush; };
    print(1, ' ', "two", ' ', 3.0, '\n');
    return 0;
}

#if defined(WITH_CINCOUT) && defined(__GLIBCXX__)
// What cincout.hpp lists as compile errors.
namespace rejected {
std::ostream &operator<<(std::ostream &, const std::string &);

template <class Stream, class = void>
constexpr bool has_member_operators = false;
template <class Stream>
constexpr bool has_member_operators<Stream, std::void_t<decltype(std::declval<Stream &>().operator<<(1))>> = true;

template <class Stream, class Text, class = void>
constexpr bool prints = false;
template <class Stream, class Text>
constexpr bool prints<Stream, Text, std::void_t<decltype(std::declval<Stream &>() << std::declval<Text &>())>> = true;

template <class Stream, class = void>
constexpr bool has_common_type_with_file = false;
template <class Stream>
constexpr bool has_common_type_with_file<
    Stream, std::void_t<decltype(true ? std::declval<Stream &>() : std::declval<std::ofstream &>())>> = true;

using stream = std::remove_reference_t<decltype(std::cout)>;
static_assert(has_member_operators<std::ostream> && !has_member_operators<stream>);
static_assert(prints<std::ostream, std::string> && !prints<stream, std::string> && prints<stream, std::string_view>);
static_assert(has_common_type_with_file<std::ostream> && !has_common_type_with_file<stream>);
} // namespace rejected
#endif
