# Installs the package with exactly the commands in README.md, or, with HEADERS_ONLY, with its commands for headers
# only.
#
#   cmake -D LIBRARY=libmillstream.so -D BUILD=DIRECTORY -D PREFIX=DIRECTORY [-D HEADERS_ONLY=ON] -P package_install.cmake
#
# Only the directories differ, and an existing library is used. If ARCHITECTURE is given, the libraries are installed
# in the directory that distributions use for that architecture.
cmake_minimum_required(VERSION 3.22)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH bindings)
cmake_path(SET repository NORMALIZE "${bindings}/../..")
file(STRINGS "${bindings}/README.md" lines REGEX "^    cmake ")
if(NOT lines MATCHES "-S .*--build .*--install ")
    message(FATAL_ERROR "README.md does not say how to install the package: ${lines}")
endif()

file(REMOVE_RECURSE "${BUILD}" "${PREFIX}")
foreach(line IN LISTS lines)
    separate_arguments(command UNIX_COMMAND "${line}")
    list(TRANSFORM command REPLACE "^build$" "${BUILD}")
    list(TRANSFORM command REPLACE "^/usr/local$" "${PREFIX}")
    list(TRANSFORM command REPLACE "^cmake$" "${CMAKE_COMMAND}")
    if(line MATCHES " -S ")
        list(APPEND command "-DCMAKE_INSTALL_LIBDIR=lib/${ARCHITECTURE}")
        if(HEADERS_ONLY)
            list(APPEND command -DMILLSTREAM_HEADERS_ONLY=ON)
        else()
            list(APPEND command "-DMILLSTREAM_LIBRARY=${LIBRARY}")
        endif()
    endif()
    execute_process(COMMAND ${command} WORKING_DIRECTORY "${repository}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
