// Programs that read and print words, lines and characters.

PROGRAM(lines) {
    string line;
    for (int i = 1; getline(cin, line); i++)
        cout << i << ": " << line << '\n';
    return 0;
}

PROGRAM(lines_of_std) {
    std::string line;
    while (std::getline(std::cin, line))
        std::cout << line.size() << std::endl;
    return 0;
}

PROGRAM(lines_unsynced) {
    std::ios_base::sync_with_stdio(false);
    std::string line;
    size_t total = 0;
    while (std::getline(std::cin, line))
        std::cout << (total += line.size()) << '\n';
    return 0;
}

PROGRAM(fields_with_commas) {
    string field;
    while (getline(cin, field, ','))
        cout << '"' << field << '"' << ' ';
    cout << cin.eof() << cin.fail() << endl;
    return 0;
}

PROGRAM(words) {
    map<string, int> counts;
    string word;
    while (cin >> word)
        ++counts[word];
    for (const auto &[text, count] : counts)
        cout << text << ' ' << count << '\n';
    return 0;
}

PROGRAM(number_then_line) {
    int n = 0;
    string line = "unchanged";
    cin >> n;
    getline(cin, line);
    cout << n << '[' << line << ']' << endl;
    cin >> n;
    cin.ignore();
    getline(cin, line);
    cout << n << '[' << line << ']' << endl;
    getline(cin >> ws, line);
    cout << '[' << line << ']' << endl;
    return 0;
}

PROGRAM(characters) {
    char c;
    int letters = 0;
    while (cin >> c)
        letters += isalpha(static_cast<unsigned char>(c)) != 0;
    cout << letters << '\n';
    return 0;
}

PROGRAM(characters_with_space) {
    char c;
    int spaces = 0;
    cin >> noskipws;
    while (cin >> c)
        spaces += c == ' ';
    cout << spaces << '\n';
    return 0;
}

PROGRAM(get_and_peek) {
    for (int c; (c = cin.get()) != EOF;) {
        cout.put(static_cast<char>(c));
        if (cin.peek() == '\n')
            cout << "<end>";
    }
    cout << cin.rdstate() << cin.gcount();
    return 0;
}

PROGRAM(unget_and_putback) {
    int n;
    string word;
    char c;
    cin >> n;
    cin.unget();
    cout << cin.rdstate() << static_cast<char>(cin.peek());
    cin.clear();
    cin >> word;
    cin.unget();
    cout << static_cast<char>(cin.peek());
    cin.clear();
    getline(cin, word);
    cin.unget();
    cout << cin.peek();
    cin.clear();
    if (cin >> c)
        cin.putback('x');
    cin.unget();
    cout << ' ' << cin.rdstate();
    cin.clear();
    cin >> word;
    cout << word << endl;
    return 0;
}

PROGRAM(array_of_char) {
    char word[8] = "", line[16] = "";
    cin >> setw(8) >> word;
    cout << word << '|';
    cin.getline(line, 16);
    cout << line << '|' << cin.gcount() << ' ' << cin.rdstate() << '|';
    cin.clear();
    cin.get(line, 16, 'e');
    cout << line << '|' << cin.gcount() << endl;
    return 0;
}

PROGRAM(words_with_width) {
    string word;
    for (int i = 0; cin >> setw(i % 5) >> word; i++)
        cout << word << '.';
    return 0;
}

PROGRAM(blocks) {
    char block[100];
    while (cin.read(block, sizeof block) || cin.gcount() > 0)
        cout.write(block, cin.gcount()) << "\n--" << cin.gcount() << "--\n";
    return 0;
}

PROGRAM(iterators) {
    vector<int> values{istream_iterator<int>(cin), istream_iterator<int>()};
    sort(values.begin(), values.end());
    copy(values.begin(), values.end(), ostream_iterator<int>(cout, ","));
    return 0;
}

PROGRAM(stream_buffers) {
    cin >> noskipws;
    stringstream all;
    all << cin.rdbuf();
    cout << all.str().size() << '\n' << all.rdbuf();
    return 0;
}

PROGRAM(kinds_of_text) {
    const char *pointer = "pointer";
    char array[] = "array";
    const string text("a\0b", 3);
    cout << "literal" << pointer << array << text << text.c_str() << string_view("view") << 'c' << "" << string();
    signed char s = 's';
    unsigned char u = 'u';
    uint8_t bytes[] = "bytes";
    cout << s << u << bytes << "\0hidden" << char{0} << endl;
    return 0;
}

PROGRAM(long_text) {
    const string text(10000, 'x');
    for (int i = 0; i < 10; i++)
        cout << i << text << string(static_cast<size_t>(i) * 500, 'y') << text.c_str() << '\n';
    return 0;
}
