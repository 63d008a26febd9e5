# Checks that every header reports the C++ standard that it needs in a single error: cmake -D COMPILER=g++ -D
# INCLUDES=DIRECTORY;DIRECTORY -P this.
list(GET INCLUDES 0 headers)
list(TRANSFORM INCLUDES PREPEND -I OUTPUT_VARIABLE options)
file(GLOB names RELATIVE "${headers}" "${headers}/millstream/*.hpp")
foreach(standard 14 17)
    foreach(name IN LISTS names)
        if(standard EQUAL 17)
            file(STRINGS "${headers}/${name}" needs REGEX "needs C\\+\\+17")
            if(needs)
                continue()
            endif()
        endif()
        execute_process(
            COMMAND "${COMPILER}" "-std=c++${standard}" -fsyntax-only ${options} -x c++ -include "${name}" /dev/null
            RESULT_VARIABLE status
            ERROR_VARIABLE said)
        string(REGEX MATCHALL "error: [^\n]*" errors "${said}")
        list(LENGTH errors count)
        if(status EQUAL 0
           OR NOT count EQUAL 1
           OR NOT errors MATCHES "${name} needs C\\+\\+(17|20): ")
            message(SEND_ERROR "${name} with C++${standard}: ${count} errors: ${said}")
        endif()
    endforeach()
endforeach()
