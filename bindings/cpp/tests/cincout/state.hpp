// Programs that test states, flush, mix the streams with stdio, and end in unusual ways.

PROGRAM(prompts) {
    string name;
    int age = 0;
    cout << "Name? ";
    cin >> name;
    cout << "Age? ";
    cin >> age;
    cout << "Hello " << name << ", " << age << "!\n";
    return 0;
}

PROGRAM(prompts_untied) {
    cin.tie(nullptr);
    string name;
    cout << "Name? ";
    cin >> name;
    cout << "Hello? ";
    cout.flush();
    cin >> name;
    cout << name << flush << "rest";
    return 0;
}

PROGRAM(prompts_for_lines) {
    string line;
    do
        cout << "> ";
    while (getline(cin, line) && line != "quit");
    return cin.eof() ? 3 : 4;
}

PROGRAM(errors_between) {
    int n;
    cout << "start, ";
    while (cin >> n) {
        cout << n << ' ';
        if (n < 0)
            cerr << "negative: " << n << '\n';
    }
    clog << "log" << endl;
    cout << "end";
    return 1;
}

PROGRAM(errors_between_unsynced) {
    ios::sync_with_stdio(false);
    cout << "out 1, ";
    cerr << "error, ";
    cout << "out 2";
    return 0;
}

PROGRAM(mixed_with_stdio) {
    int a = 0, b = 0;
    char word[32] = "";
    cout << "cout ";
    printf("printf ");
    cin >> a;
    if (scanf("%d %31s", &b, word) < 1)
        puts("scanf failed");
    string rest;
    getline(cin, rest);
    cout << a << ' ' << b << ' ' << word << '[' << rest << ']';
    putchar('\n');
    char line[64];
    while (fgets(line, sizeof line, stdin) != nullptr && cin >> a)
        cout << line << a << endl, printf("%d\n", a);
    return 0;
}

PROGRAM(unit_buffered) {
    cout << "a" << 1 << unitbuf << "b" << 2 << nounitbuf << "c" << 3;
    return 0;
}

PROGRAM(tied_elsewhere) {
    ostringstream other;
    cin.tie(&other);
    int n = 0;
    cout << "not flushed ";
    cin >> n;
    cout << (cin.tie() == &other);
    cin.tie(&cout);
    cin >> n;
    cout << "flushed";
    cout.tie(&cerr);
    cout << " tied" << n;
    cout.tie(nullptr);
    return 0;
}

PROGRAM(states) {
    int n = 0;
    cout << cin.good() << cin.eof() << cin.fail() << cin.bad() << !cin << static_cast<bool>(cin) << ' ';
    while (cin >> n)
        ;
    cout << cin.good() << cin.eof() << cin.fail() << cin.bad() << !cin << static_cast<bool>(cin) << ' ';
    cin.clear();
    cout << cin.good() << ' ';
    cin.setstate(ios::badbit);
    cin >> n;
    cout << cin.rdstate() << ' ' << n << '\n';
    cout.setstate(ios::failbit);
    cout << "not printed" << 1 << 'c' << 2.5 << string("x") << endl << true;
    cout.clear();
    cout << "printed" << endl;
    return 0;
}

PROGRAM(exceptions) {
    cin.exceptions(ios::failbit | ios::badbit);
    int sum = 0;
    try {
        for (int n;;) {
            cin >> n;
            sum += n;
        }
    } catch (const ios::failure &) {
        cout << "caught after " << sum << endl;
    }
    return 0;
}

PROGRAM(null_text) {
    const char *nothing = nullptr;
    cout << "before" << nothing << "after" << cout.bad();
    cout.clear();
    cout << "cleared" << endl;
    return 0;
}

PROGRAM(exit_in_the_middle) {
    cout << "before exit";
    exit(7);
}

PROGRAM(ends_without_flush) {
    cout << "lost, as with iostream";
    fflush(stdout);
    cout << "really lost";
    _Exit(5);
}

struct prints_when_destroyed {
    ~prints_when_destroyed() { cout << "destroyed\n"; }
};
PROGRAM(destructors) {
    static const prints_when_destroyed object;
    cout << "main, ";
    return 0;
}

PROGRAM(seeking) {
    int n = 0;
    string word;
    cin >> n;
    const auto at = cin.tellg();
    cin >> word;
    cin.clear();
    if (at != -1)
        cin.seekg(0);
    cin >> word;
    cout << at << ' ' << word << ' ' << cin.rdstate() << endl;
    return 0;
}

PROGRAM(empty_extraction) {
    int n = 5;
    string word = "unchanged", line = "unchanged";
    char c = 'u';
    cin.setstate(ios::eofbit);
    cin >> n;
    cin >> word;
    cin >> c;
    getline(cin, line);
    cout << n << word << c << line << cin.rdstate() << '\n';
    return 0;
}

PROGRAM(threads) {
    // Each prints the same character, so that the order does not matter.
    vector<thread> all;
    for (int i = 0; i < 4; i++)
        all.emplace_back([] {
            for (int j = 0; j < 500; j++)
                cout << 7 << '7' << "77";
        });
    for (thread &one : all)
        one.join();
    int n = 0;
    cin >> n;
    cout << '\n' << n << endl;
    return 0;
}

PROGRAM(much_output) {
    for (int i = 0; i < 30000; i++)
        cout << i * 7919 << (i % 10 == 9 ? '\n' : ' ');
    return 0;
}

PROGRAM(much_output_unsynced) {
    ios::sync_with_stdio(false);
    for (int i = 0; i < 30000; i++)
        cout << i * 0.37 << '\n';
    return 0;
}
