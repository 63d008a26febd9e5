// Prints two columns of a CSV file, by their names in the header, which is the first record.
//
//     csv_people people.csv
#include <millstream/csv.hpp>

#include <cstdlib>
#include <iostream>

int main(int argc, char **argv) try {
    millstream::rows people(millstream::path{argc > 1 ? argv[1] : "people.csv"});
    people.header();
    for (const millstream::row &person : people)
        std::cout << person["name"] << " is " << person["age"] << '\n';
    // Here all of the file has been read: a broken record would have thrown, with its line and column.
    return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const millstream::error &error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
}
