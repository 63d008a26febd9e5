# The programs in the original's document, as its readers use them: extracted from the document, with only the include
# changed, and compiled without this project's warnings. If the document is missing, their tests are skipped, with a
# message.

if(DEFINED ENV{MILLSTREAM_ORIGINALS})
    file(GLOB originals_document "$ENV{MILLSTREAM_ORIGINALS}/004_*.txt")
else()
    file(GLOB originals_document "${repository}/../shared/originals/004_*.txt")
endif()
set(originals_directory "${CMAKE_CURRENT_BINARY_DIR}/originals")
# In the order of the document.
set(originals read_example write_example default_io smart_io)

if(originals_document)
    file(MAKE_DIRECTORY "${originals_directory}")
    execute_process(
        COMMAND awk -v "directory=${originals_directory}" -v "names=${originals}" -f
                "${CMAKE_CURRENT_SOURCE_DIR}/originals.awk" "${originals_document}" COMMAND_ERROR_IS_FATAL ANY)
    foreach(name IN LISTS originals)
        add_executable(original_${name} "${originals_directory}/${name}.cpp")
        target_link_libraries(original_${name} PRIVATE millstream::headers)
        set_target_properties(original_${name} PROPERTIES CXX_STANDARD 17 OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                                                             "${originals_directory}")
    endforeach()
else()
    # A plain clone does not contain it, not even in CI.
    message(WARNING "SKIPPED: the original's document is not next to the repository; see MILLSTREAM_ORIGINALS")
endif()
