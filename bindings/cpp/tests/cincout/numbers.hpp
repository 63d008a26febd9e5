// Programs that read and print numbers.
using namespace std;

PROGRAM(sum_of_integers) {
    long long sum = 0;
    int n;
    while (cin >> n)
        sum += n;
    cout << sum << endl;
    return 0;
}

PROGRAM(sum_unsynced) {
    ios::sync_with_stdio(false);
    cin.tie(nullptr);
    long long sum = 0;
    int n;
    while (cin >> n)
        sum += n;
    cout << sum << "\n";
    return 0;
}

PROGRAM(each_on_its_line) {
    int n;
    while (cin >> n)
        cout << n << '\n';
    return 0;
}

PROGRAM(each_on_its_line_untied) {
    cin.tie(0);
    for (long n; cin >> n;)
        cout << n << '\n';
    return 0;
}

PROGRAM(count_first) {
    int count = 0;
    cin >> count;
    vector<int> values(static_cast<size_t>(max(0, min(count, 5000))));
    for (int &value : values)
        cin >> value;
    for (int value : values)
        cout << value << " ";
    cout << endl;
    return 0;
}

PROGRAM(value_after_failure) {
    int n = 77;
    cin >> n; // 0 if it is not a number, the limit if it is too large
    cout << n << ' ' << cin.fail() << cin.eof() << cin.bad() << '\n';
    cin.clear();
    string rest;
    getline(cin, rest);
    cout << '[' << rest << "]\n";
    return 0;
}

template <class T>
static void all_of() {
    T n{};
    while (cin >> n)
        cout << n << '\n';
    cout << "stopped at " << n << ' ' << cin.rdstate() << '\n';
    cin.clear();
    string word;
    cin >> word;
    cout << '<' << word << ">\n";
}

PROGRAM(all_short) { return all_of<short>(), 0; }
PROGRAM(all_unsigned_short) { return all_of<unsigned short>(), 0; }
PROGRAM(all_unsigned) { return all_of<unsigned>(), 0; }
PROGRAM(all_long) { return all_of<long>(), 0; }
PROGRAM(all_unsigned_long_long) { return all_of<unsigned long long>(), 0; }
PROGRAM(all_float) { return all_of<float>(), 0; }
PROGRAM(all_double) { return all_of<double>(), 0; }
PROGRAM(all_long_double) { return all_of<long double>(), 0; }
PROGRAM(all_bool) { return all_of<bool>(), 0; }

PROGRAM(limits) {
    cout << numeric_limits<int>::min() << ' ' << numeric_limits<int>::max() << '\n'
         << numeric_limits<long long>::min() << ' ' << numeric_limits<unsigned long long>::max() << '\n'
         << numeric_limits<short>::min() << ' ' << numeric_limits<unsigned short>::max() << '\n'
         << numeric_limits<double>::max() << ' ' << numeric_limits<double>::denorm_min() << ' '
         << numeric_limits<float>::epsilon() << '\n'
         << numeric_limits<double>::infinity() << ' ' << -numeric_limits<double>::infinity() << ' '
         << numeric_limits<double>::quiet_NaN() << ' ' << -numeric_limits<double>::quiet_NaN() << '\n'
         << -0.0 << ' ' << 1e6 << ' ' << 1e5 << ' ' << 123456.7 << ' ' << 1234567.8 << ' ' << 0.0001 << ' ' << 0.00001;
    return 0;
}

PROGRAM(arithmetic) {
    char op;
    double a, b;
    while (cin >> a >> op >> b) {
        cout << a << ' ' << op << ' ' << b << " = ";
        if (op == '+')
            cout << a + b << endl;
        else if (op == '/')
            cout << a / b << endl;
        else
            cout << "unknown operator" << endl;
    }
    return 0;
}

PROGRAM(clears_and_ignores) {
    int n, good = 0, bad = 0;
    for (;;) {
        if (cin >> n) {
            ++good;
        } else if (cin.eof()) {
            break;
        } else {
            cin.clear();
            cin.ignore(numeric_limits<streamsize>::max(), '\n');
            ++bad;
        }
    }
    cout << good << " good, " << bad << " bad lines\n";
    return 0;
}
