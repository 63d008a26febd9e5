# libmillstream, and the targets over it: `millstream::millstream` (shared) and `millstream::static`.
#
#   MILLSTREAM_LIBRARY         a libmillstream.so that is there already; cargo builds one if this is empty
#   MILLSTREAM_CARGO_PROFILE   how cargo builds it
#   MILLSTREAM_REMOTE          whether it can open URLs, which takes a minute longer to build
#   MILLSTREAM_HEADERS_ONLY    no library, whatever is there
#
# Without a library and without cargo there are only the headers that need none.

# Installed under its real name; programs look for the soname, which is in the file, the linker for libmillstream.so.
set(soname libmillstream.so.0)
set(real_name "libmillstream.so.${PROJECT_VERSION}")

set(MILLSTREAM_LIBRARY "" CACHE FILEPATH "libmillstream.so, with libmillstream.a beside it; built by cargo if empty")
set(MILLSTREAM_CARGO_PROFILE release CACHE STRING "The profile by which cargo builds the library")
option(MILLSTREAM_REMOTE "Build the library with network code, so that it can open URLs" OFF)

option(MILLSTREAM_HEADERS_ONLY "Only the headers that need no library" OFF)

if(MILLSTREAM_HEADERS_ONLY)
    return()
elseif(MILLSTREAM_LIBRARY)
    cmake_path(GET MILLSTREAM_LIBRARY PARENT_PATH library_directory)
else()
    find_program(CARGO cargo)
    if(NOT CARGO)
        message(WARNING "There is neither cargo nor MILLSTREAM_LIBRARY: only the headers that need no library")
        return()
    endif()
    set(cargo_target "$ENV{CARGO_TARGET_DIR}")
    if(NOT cargo_target)
        set(cargo_target "${repository}/target")
    endif()
    # Cargo puts what its profile `dev` builds into `debug`.
    string(REGEX REPLACE "^dev$" "debug" profile_directory "${MILLSTREAM_CARGO_PROFILE}")
    set(library_directory "${cargo_target}/${profile_directory}")
    set(features "")
    if(MILLSTREAM_REMOTE)
        set(features --features remote)
    endif()
    set(build_library
        COMMAND
        "${CARGO}" build --quiet --package millstream-capi ${features} --lib --profile "${MILLSTREAM_CARGO_PROFILE}"
        --manifest-path "${repository}/Cargo.toml" --target-dir "${cargo_target}")
endif()
set(shared_library "${library_directory}/libmillstream.so")
set(static_library "${library_directory}/libmillstream.a")

# Programs of this build find the library under the name that it has for the loader. Always run: cargo knows best what is
# out of date.
set(loadable "${CMAKE_CURRENT_BINARY_DIR}/lib/${soname}")
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/lib")
add_custom_target(
    millstream_library ALL
    ${build_library}
    COMMAND "${CMAKE_COMMAND}" -E create_symlink "${shared_library}" "${loadable}"
    BYPRODUCTS "${loadable}" "${static_library}"
    VERBATIM)

# millstream_over_library(NAME TYPE FILE): the C++ headers with one form of the library.
function(millstream_over_library name type file)
    add_library(${name} ${type} IMPORTED GLOBAL)
    add_dependencies(${name} millstream_library)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${file}")
    target_link_libraries(${name} INTERFACE millstream_headers)
    target_compile_features(${name} INTERFACE cxx_std_20)
endfunction()
millstream_over_library(millstream::millstream SHARED "${loadable}")
set_target_properties(millstream::millstream PROPERTIES IMPORTED_SONAME ${soname})
millstream_over_library(millstream::static STATIC "${static_library}")
target_link_libraries(millstream::static INTERFACE ${CMAKE_DL_LIBS} m pthread)

install(PROGRAMS "${shared_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${real_name}")
install(FILES "${static_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
foreach(link ${soname} libmillstream.so)
    install(CODE "file(CREATE_LINK \"${real_name}\"
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/${link}\" SYMBOLIC)")
endforeach()

# pkg-config --cflags --libs millstream
set(pkgconfig_directory "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH prefix_from_pkgconfig "/${pkgconfig_directory}" /)
cmake_path(SET prefix_from_pkgconfig NORMALIZE "${prefix_from_pkgconfig}.")
configure_file(cmake/millstream.pc.in millstream.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/millstream.pc" DESTINATION "${pkgconfig_directory}")
