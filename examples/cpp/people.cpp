// Reads people, one JSON text per line, and writes those with a mail address as BSON documents. With --back, prints
// documents as JSON:
//
//     people < people.ndjson > people.bson
//     people --back < people.bson

#include <millstream/bson.hpp>

#include <iostream>
#include <string>
#include <string_view>

struct person {
    std::string name;
    int age = 0;
    std::optional<std::string> mail;
};
MS_BSON_FIELDS(person, name, age, mail)

static void to_bson() {
    millstream::writer out(millstream::standard_output{});
    millstream::bson::builder builder;
    for (const std::string_view line : millstream::lines(millstream::standard_input{})) {
        const auto someone = millstream::bson::owned_document::from_json(line).as<person>();
        if (someone.mail) {
            append_fields(builder, someone);
            builder.write(out);
        }
    }
    out.close();
}

static void to_json() {
    millstream::writer out(millstream::standard_output{});
    for (const millstream::bson::document &document : millstream::bson::documents(millstream::standard_input{})) {
        if (document["age"].as<int>() >= 18)
            write_json(out, document);
        else
            out.print("{\"name\":", millstream::json(document["name"].as<std::string_view>()), "}");
        out.print('\n');
    }
    out.close();
}

int main(int argc, char **argv) {
    try {
        if (argc > 1 && argv[1] == std::string_view("--back"))
            to_json();
        else
            to_bson();
    } catch (const millstream::error &error) {
        std::cerr << "people: " << error.what() << '\n';
        return 1;
    }
}
