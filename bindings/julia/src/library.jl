# The C library: where it is, whether it is one that this package knows, and how its functions are called.
#
# It is opened when the package is loaded. If there is none, the package still loads, since not all of it needs the library,
# and the first call says what to do. The addresses of functions are looked up then and there, not kept in what is
# precompiled, so that one package works with any file.

using Libdl

# The C ABI may change with the minor version as long as the major one is 0.
const library_series = v"0.1"

# What `open_library` found: the file, or why there is none.
const library_path = Ref("")
const library_problem = Ref("")

# Every function that the package calls, by its name: `@c` adds to it.
const functions = Dict{Symbol,Base.RefValue{Ptr{Cvoid}}}()

"""
    @c millstream_name(argument::Type, ...)::Type

Calls a function of the C library, as `@ccall` does.
"""
macro c(call)
    esc(call_of(call.args[1], call.args[2]))
end

# The call of a library's function, for a macro.
function call_of(call, type)
    name = call.args[1]
    address = Symbol(:address_of_, name)
    if !isdefined(@__MODULE__, address)
        @eval const $address = functions[$(QuoteNode(name))] = Ref{Ptr{Cvoid}}(C_NULL)
    end
    pointer = :($(GlobalRef(@__MODULE__, :called))($(GlobalRef(@__MODULE__, address))))
    :(@ccall $(Expr(:$, pointer))($(call.args[2:end]...))::$type)
end

@inline function called(address)
    pointer = address[]
    pointer == C_NULL && throw(ErrorException(library_problem[]))
    pointer
end

# Opens the library that `MILLSTREAM_LIB` names, else the one of the system.
function open_library()
    asked = get(ENV, "MILLSTREAM_LIB", "")
    # What is installed for programs that run may have no other name than the one with the ABI's number.
    files = isempty(asked) ? ["libmillstream", "libmillstream.so.0"] : [asked]
    handles = (Libdl.dlopen(file; throw_error = false) for file in files)
    handle = something(iterate(Iterators.filter(!isnothing, handles)), (nothing,))[1]
    if handle === nothing
        library_problem[] = string(
            isempty(asked) ? "there is no libmillstream on this system" : "MILLSTREAM_LIB names \"$asked\", which cannot be opened as a library",
            ": please build it, by `cargo build --release --package millstream-capi` in a clone of Millstream, set the environment",
            " variable MILLSTREAM_LIB to the path of target/release/libmillstream.so (.dylib on macOS), and start Julia again",
        )
        # Whoever named a library wants that one, at once; without it, what needs no library still works.
        isempty(asked) || error(library_problem[])
        return
    end
    library_path[] = Libdl.dlpath(handle)
    version = VersionNumber(unsafe_string(ccall(Libdl.dlsym(handle, :millstream_version), Cstring, ())))
    if (version.major, version.minor) != (library_series.major, library_series.minor)
        library_problem[] = string(library_path[], " is Millstream $version, and this package needs ", library_series.major, ".",
            library_series.minor, ": please set MILLSTREAM_LIB to such a library, or use the package of that version")
        isempty(asked) || error(library_problem[])
        return
    end
    for (name, address) in functions
        address[] = Libdl.dlsym(handle, name)
    end
end

"""
    library_version()

The version of the C library.
"""
library_version() = VersionNumber(unsafe_string(@c millstream_version()::Cstring))
