// The error of code that must fail.
#pragma once

#include "millstream/error.hpp"

#include <stdexcept>

template <class Act>
millstream::error error_of(Act act) {
    try {
        act();
    } catch (const millstream::error &error) {
        return error;
    }
    throw std::logic_error("this should have failed");
}
