# Finds the C library, checks its version, and calls its functions.
#
# The library is opened when the package is loaded. If it is missing, the package still loads, because not all of it
# needs the library, and the first call explains what to do. The addresses of functions are looked up at run time, not
# precompiled, so that the package works with any library file.

using Libdl

# The C ABI may change with the minor version while the major one is 0.
const library_series = v"0.1"

# The result of `open_library`: the file, or the reason why there is none.
const library_path = Ref("")
const library_problem = Ref("")

# The names of all functions that the package calls, which `@c` adds.
const functions = Dict{Symbol,Base.RefValue{Ptr{Cvoid}}}()

"""
    @c millstream_name(argument, ...)

Calls a function of the C library; the types are those of `declarations`.
"""
macro c(call)
    esc(call_of(call))
end

# Builds the call of a library function, for a macro.
function call_of(call)
    name, arguments = call.args[1], call.args[2:end]
    result, parameters = declarations[name]
    length(arguments) == length(parameters) ||
        error("$name has $(length(parameters)) parameters, but $(length(arguments)) arguments are passed")
    typed = [Expr(:(::), argument, type) for (argument, type) in zip(arguments, parameters)]
    address = Symbol(:address_of_, name)
    if !isdefined(@__MODULE__, address)
        @eval const $address = functions[$(QuoteNode(name))] = Ref{Ptr{Cvoid}}(C_NULL)
    end
    pointer = :($(GlobalRef(@__MODULE__, :called))($(GlobalRef(@__MODULE__, address))))
    :(@ccall $(Expr(:$, pointer))($(typed...))::$result)
end

@inline function called(address)
    pointer = address[]
    pointer == C_NULL && throw(ErrorException(library_problem[]))
    pointer
end

# The library in each C archive of this version that is unpacked next to the package's folder. The folder is that of the
# package that is being loaded: a path that is known when it is precompiled would be wrong once the folder has moved.
function unpacked_libraries(folder)
    prefix = "libmillstream-$(library_series.major).$(library_series.minor)."
    suffix = "-$(Sys.ARCH)-unknown-linux-gnu"
    names = isdir(folder) ? readdir(folder) : String[]
    matching = filter(name -> startswith(name, prefix) && endswith(name, suffix), names)
    [joinpath(folder, name, "lib", "libmillstream.so") for name in reverse(matching)]
end

# Opens the library in `MILLSTREAM_LIB`; if that is not set, one that is unpacked next to the package, or the system's.
function open_library()
    asked = get(ENV, "MILLSTREAM_LIB", "")
    source = pathof(@__MODULE__)
    folder = source === nothing ? "" : dirname(dirname(dirname(source)))
    # A runtime-only installation may have only the name with the ABI's number.
    files = isempty(asked) ? [unpacked_libraries(folder); "libmillstream"; "libmillstream.so.0"] : [asked]
    handles = (Libdl.dlopen(file; throw_error = false) for file in files)
    handle = something(iterate(Iterators.filter(!isnothing, handles)), (nothing,))[1]
    if handle === nothing
        beside = joinpath(folder, "libmillstream-$(library_series.major).$(library_series.minor).*", "lib", "libmillstream.so")
        library_problem[] = string(
            isempty(asked) ? "libmillstream was not found as $beside, nor in the system's library folders" :
            "MILLSTREAM_LIB names \"$asked\", which cannot be opened as a library",
            ": unpack Millstream's archive for C next to the folder of this package, or build the library with",
            " `cargo build --release --package millstream-capi` in a clone of Millstream and set the environment variable",
            " MILLSTREAM_LIB to the path of target/release/libmillstream.so (.dylib on macOS); then start Julia again",
        )
        # If `MILLSTREAM_LIB` is set, a failure is reported immediately; otherwise functions that need no library still
        # work.
        isempty(asked) || error(library_problem[])
        return
    end
    library_path[] = Libdl.dlpath(handle)
    version = VersionNumber(unsafe_string(ccall(Libdl.dlsym(handle, :millstream_version), Cstring, ())))
    if (version.major, version.minor) != (library_series.major, library_series.minor)
        library_problem[] = string(library_path[], " is Millstream $version, but this package needs ", library_series.major, ".",
            library_series.minor, ": set MILLSTREAM_LIB to a matching library, or use the package of that version")
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
library_version() = VersionNumber(unsafe_string(@c millstream_version()))
