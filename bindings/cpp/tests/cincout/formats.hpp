// Programs that set formats.
#include <locale>
using namespace std;

PROGRAM(fixed_digits) {
    cout << fixed << setprecision(3);
    double x;
    while (cin >> x)
        cout << x << '\n';
    cout << 1e300 << ' ' << 0.0005 << ' ' << -2.5f << ' ' << setprecision(0) << 2.5 << ' ' << 3.5 << endl;
    return 0;
}

PROGRAM(many_digits) {
    for (int digits : {-1, 0, 1, 2, 15, 17, 20, 64, 65, 100})
        cout << setprecision(digits) << 0.1 << ' ' << 1e22 << ' ' << 123456789.125 << ' ' << 5e-324 << ' ' << 1.0 / 3
             << '\n';
    return 0;
}

PROGRAM(scientific_and_back) {
    double x;
    while (cin >> x)
        cout << scientific << x << ' ' << hexfloat << x << ' ' << defaultfloat << x << '\n';
    return 0;
}

PROGRAM(table) {
    int n;
    while (cin >> n)
        cout << setw(12) << n << '|' << left << setw(12) << n << '|' << internal << setfill('0') << setw(12) << n << '|'
             << right << setfill(' ') << setw(3) << "ab" << setw(4) << 'c' << setw(6) << string("de") << '\n';
    return 0;
}

PROGRAM(bases) {
    int n;
    while (cin >> n)
        cout << hex << n << ' ' << showbase << n << ' ' << uppercase << n << ' ' << oct << n << ' ' << dec << noshowbase
             << nouppercase << n << endl;
    return 0;
}

PROGRAM(reads_bases) {
    int n = 0;
    cin >> hex >> n;
    cout << n << ' ';
    cin >> oct >> n;
    cout << n << ' ';
    cin.unsetf(ios::basefield);
    cin >> n;
    cout << n << ' ' << cin.rdstate() << endl;
    return 0;
}

PROGRAM(booleans) {
    cout << true << false << boolalpha << true << ' ' << false << noboolalpha << (1 < 2) << endl;
    bool value = false;
    cin >> boolalpha >> value;
    cout << value << cin.fail() << '\n';
    return 0;
}

PROGRAM(signs_and_points) {
    cout << showpos << 5 << ' ' << -5 << ' ' << 0 << ' ' << 1.5 << ' ' << noshowpos << showpoint << 1.0 << ' ' << 5
         << noshowpoint << ' ' << 1.0 << '\n';
    return 0;
}

PROGRAM(members_for_formats) {
    cout.width(10);
    cout.fill('*');
    cout << 42 << '\n';
    cout.precision(3);
    cout.setf(ios::fixed, ios::floatfield);
    cout << 3.14159 << ' ' << cout.precision() << ' ' << cout.width() << '\n';
    const ios::fmtflags before = cout.flags();
    cout.flags(ios::hex | ios::showbase);
    cout << 255 << '\n';
    cout.flags(before);
    cout << 255 << ' ' << 2.0 << endl;
    return 0;
}

PROGRAM(other_locale) {
    struct grouped : numpunct<char> {
        char do_thousands_sep() const override { return '\''; }
        string do_grouping() const override { return "\3"; }
        char do_decimal_point() const override { return ','; }
    };
    double x = 0;
    cin.imbue(locale(locale::classic(), new grouped));
    cin >> x;
    cout.imbue(locale(locale::classic(), new grouped));
    cout << 1234567 << ' ' << 1234.5 << ' ' << x << '\n';
    cout.imbue(locale::classic());
    cout << 1234567 << ' ' << 1234.5 << '\n';
    return 0;
}

PROGRAM(copied_format) {
    ios saved(nullptr);
    saved.copyfmt(cout);
    cout << hex << setfill('-') << setw(8) << 255 << '\n';
    cout.copyfmt(saved);
    cout << setw(8) << 255 << '\n';
    return 0;
}
