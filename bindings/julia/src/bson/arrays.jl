# Arrays: plain arrays, whose element type is not in the file, and tagged arrays, whose elements are bits or values.

# ---- plain arrays ----

element_wanted(@nospecialize(want)) = want isa DataType && want <: Array && isconcretetype(want) && ndims(want) == 1 ? eltype(want) : nothing

# Reads the vector at `pos` and moves past it. An `object` that other values may refer to exists before its elements.
function vector(r::Reading, @nospecialize(want), object)
    T = element_wanted(want)
    object === nothing || return shared_vector(r, T, object)
    outer = enter(r)
    xs = common_vector(r, T)
    if xs === nothing
        got = Any[]
        complete = true
        at = r.pos
        while (kind = next(r)) != 0x00
            x = value(r, kind, something(T, Any))
            complete &= !(x isa Undef)
            push!(got, x)
        end
        xs = complete ? typed(r, got, T) : with_gaps(something(T, Any), got)
    end
    leave(r, outer)
    xs
end

# Reads a vector that may be part of itself: its elements are counted first.
function shared_vector(r::Reading, @nospecialize(T), object)
    count = count_elements(r)
    xs = new_array(something(T, Any), (count,))
    open!(object, xs)
    fill_elements!(r, something(T, Any), xs, count)
    may_narrow = T === nothing && !object.taken && r.ctx.narrow
    may_narrow && all(i -> isassigned(xs::Vector{Any}, i), 1:count) ? typed(r, xs::Vector{Any}, nothing) : xs
end

# Counts the elements of the array at `pos` without moving.
function count_elements(r::Reading)
    before = r.pos
    outer = enter(r)
    count = 0
    while (kind = next(r)) != 0x00
        skip(r, kind)
        count += 1
    end
    r.pos, r.stop = before, outer
    count
end

# Reads the elements of the array at `pos` into an array of T of the same length and moves past it.
function fill_elements!(r::Reading, @nospecialize(T), @nospecialize(xs), count)
    outer = enter(r)
    for i in 1:count
        x = value(r, next(r), T)
        if x isa T
            set_element!(xs, x, i)
        else
            isbitstype(T) && no_gap_here(T, r.pos)
        end
    end
    leave(r, outer)
    xs
end

function with_gaps(@nospecialize(T), got::Vector{Any})
    isbitstype(T) && no_gap_here(T, -1)
    xs = new_array(T, (length(got),))
    for i in 1:length(got)
        got[i] isa Undef || set_element!(xs, got[i], i)
    end
    xs
end

# Returns the elements in a vector of the requested type, or of their common type.
function typed(r::Reading, got::Vector{Any}, @nospecialize(T))
    if T === nothing
        r.ctx.narrow && !isempty(got) || return got
        T = in_common(got)
    end
    T === Any && return got
    xs = new_array(T, (length(got),))
    for i in 1:length(got)
        set_element!(xs, got[i], i)
    end
    xs
end

# Vectors in vectors would become nested types, as deep as in the file. With this many parts or more, the type is `Any`.
const LARGEST_NARROWED = 24

function in_common(got::Vector{Any})
    T = typeof(got[1])
    for x in got
        x isa T && continue
        # `typejoin` can take long for long types.
        type_size(T, LARGEST_NARROWED) > 0 && type_size(typeof(x), LARGEST_NARROWED) > 0 || return Any
        T = typejoin(T, typeof(x))
        T === Any && break
    end
    type_size(T, LARGEST_NARROWED) > 0 ? T : Any
end

# ---- arrays whose type is known only when they are read: without code for each type, because a file could contain any
# number of types ----

@static if VERSION < v"1.11-"
    new_array(@nospecialize(T), dims::Dims) = ccall(:jl_new_array, Any, (Any, Any), Array{T,length(dims)}, dims)
    # The caller guarantees that `x` is an element and `i` a valid index.
    set_element!(@nospecialize(xs), @nospecialize(x), i) = ccall(:jl_arrayset, Cvoid, (Any, Any, Csize_t), xs, x, i - 1)
    memory_of(@nospecialize(xs)) = ccall(:jl_array_ptr, Ptr{UInt8}, (Any,), xs)
    array_at(@nospecialize(T), from, dims::Dims) =
        ccall(:jl_ptr_to_array, Any, (Any, Ptr{Cvoid}, Any, Cint), Array{T,length(dims)}, from, dims, 0)
else
    new_array(@nospecialize(T), dims::Dims) = Array{T,length(dims)}(undef, dims)
    set_element!(@nospecialize(xs), @nospecialize(x), i) = (xs[i] = x; nothing)
    memory_of(@nospecialize(xs)) = Ptr{UInt8}(pointer(xs))
    array_at(@nospecialize(T), from, dims::Dims) = unsafe_wrap(Array, Ptr{T}(from), dims)
end

# ---- bits ----

# Fewer bytes are copied rather than mapped.
const LEAST_MAPPED = 4096

# A `Vector{UInt8}`.
bytes_value(r::Reading, at, len) = bits(r, UInt8, (len,), at, len)

# Returns the array whose memory is `len` bytes of the file, in the file's own memory if that is possible and allowed.
function bits(r::Reading, @nospecialize(T), dims::Dims, at::Int, len::Int)
    from = r.start + at
    if r.keeper !== nothing && len >= LEAST_MAPPED && UInt(from) % Base.datatype_alignment(T) == 0 && T !== Bool
        # The bytes exist (the caller has checked), are aligned, contain no references (T is bits), and stay mapped and
        # writable as long as the array lives.
        xs = array_at(T, from, dims)
        keep(xs, r.keeper)
        return xs
    end
    xs = new_array(T, dims)
    GC.@preserve xs begin
        fetch_bytes(r, memory_of(xs), at, len)
        T === Bool && check_bools(memory_of(xs), len, at)
    end
    xs
end

@noinline function check_bools(memory::Ptr{UInt8}, len, at)
    most = UInt8(0)
    for i in 1:len
        most |= unsafe_load(memory, i)
    end
    most <= 0x01 || broken("a Bool that is neither 0 nor 1", "one of them", at)
end

# The memory of arrays, and the number of arrays in it. It is referenced here and not only by their finalizers:
# otherwise the mapping could be finalized together with its arrays, and would be gone before them.
const lent = IdDict{Any,Int}()
const lent_lock = Threads.SpinLock()

# Keeps the memory as long as the array; in 1.11 and newer, the array's memory is an object that other arrays may share.
function keep(@nospecialize(xs), keeper)
    lock(lent_lock)
    try
        lent[keeper] = get(lent, keeper, 0) + 1
    finally
        unlock(lent_lock)
    end
    finalizer(x -> give_back(x, keeper), VERSION >= v"1.11-" ? getfield(getfield(xs, :ref), :mem) : xs)
end

# A finalizer. It may run while the lock is held, even in the same task; then the next collection tries again.
function give_back(@nospecialize(x), keeper)
    trylock(lent_lock) || return finalizer(x -> give_back(x, keeper), x)
    try
        left = lent[keeper] - 1
        left == 0 ? delete!(lent, keeper) : (lent[keeper] = left)
    finally
        unlock(lent_lock)
    end
    nothing
end

# ---- tagged arrays ----

# More dimensions than real arrays have, but few enough for the compiler.
const MOST_DIMENSIONS = 32

function sizes(r::Reading, t::Tagged)
    t.size_kind == ARRAY || invalid("a size of type " * kind_name(t.size_kind), "an array of integers", t.size)
    r.pos = t.size
    outer = enter(r)
    dims = Int[]
    while (kind = next(r)) != 0x00
        length(dims) < MOST_DIMENSIONS || limited("an array of more than $MOST_DIMENSIONS dimensions", "fewer", t.size)
        at = r.pos
        n = reference(r, kind)
        n >= 0 || invalid("the size $n", "0 or more", at)
        push!(dims, n)
    end
    leave(r, outer)
    dims
end

# The number of elements for these sizes.
function count_of(dims, at)
    count = 1
    for n in dims
        # A zero does not make impossible sizes valid.
        count, over = Base.mul_with_overflow(count, max(n, 1))
        over && invalid("the size $(join(dims, '×'))", "fewer than 2^63 elements", at)
    end
    0 in dims ? 0 : count
end

function tagged_array(r::Reading, entry::TypeEntry, t::Tagged, object)
    T = entry.type
    dims = sizes(r, t)
    count = count_of(dims, t.size)
    r.pos = t.data
    if t.data_kind == BINARY
        at, len = bytes_here(r)
        return bits_of(r, entry, (dims...,), count, at, len)
    end
    t.data_kind == ARRAY || invalid("an array's data of type " * kind_name(t.data_kind), "an array or a binary", t.data)
    Base.has_free_typevars(T) && invalid("elements of a type with a free variable", "a type", t.subject)
    found = count_elements(r)
    found == count || invalid("$found elements for the size $(join(dims, '×'))", "$count", t.data)
    xs = new_array(T, (dims...,))
    object === nothing || open!(object, xs)
    fill_elements!(r, T, xs, count)
end

@noinline function bits_of(r::Reading, entry, @nospecialize(dims), count, at, len)
    T = entry.type
    if !isbitstype(T)
        len == 0 && count == 0 && !Base.has_free_typevars(T) && return new_array(T, dims)
        invalid("bytes for elements of type $(type_name(T))", "a list of elements, or an isbits type", at)
    end
    entry.form in (FIELDS, BITS) || T <: Tuple || invalid("an array of $(type_name(T))", "a type that values can have", at)
    # As for a single pointer: another process's pointers are meaningless here.
    T <: Ptr && len == count * sizeof(T) && return fill(reinterpret(T, C_NULL), dims)
    has_pointer(T) && invalid("an array of pointers", "values that are meaningful in this process", at)
    checked_bits(r, T, dims, count, at, len)
end

function checked_bits(r::Reading, @nospecialize(T), dims::Dims, count, at, len)
    needed, over = Base.mul_with_overflow(count, sizeof(T))
    if over || needed != len
        invalid("$len bytes for $count elements of $(sizeof(T)) bytes each", "as many as their product", at)
    end
    if sizeof(T) == 0
        r.empty_left >= count || limited("$count elements without bytes", "at most as many as the file has bytes, or 2^20", at)
        r.empty_left -= count
        return new_array(T, dims)
    end
    bits(r, T, dims, at, len)
end
