// Uses of the streams that compile with <iostream> and that cincout.hpp lists as compile errors. USE selects one; 0 is
// none.
#ifdef WITH_CINCOUT
#include <millstream/cincout.hpp>
#else
#include <iostream>
#endif

#include <fstream>
#include <string>

using namespace std;

#if USE == 1
ostream &operator<<(ostream &out, const string &text) { return out.write(text.data(), 1); }
#endif

int main(int count, char **) {
#if USE == 1
    cout << string("text");
#elif USE == 2
    cout.operator<<(count);
#elif USE == 3
    ofstream file("out");
    ostream &out = count > 1 ? cout : file;
    out << count;
#else
    cout << string("text") << count;
#endif
}
