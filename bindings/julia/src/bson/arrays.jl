# Arrays: plain ones, whose element type is not in the file, and tagged ones, whose elements are bits or values.

# ---- plain ones ----

element_wanted(@nospecialize(want)) = want isa DataType && want <: Array && isconcretetype(want) && ndims(want) == 1 ? eltype(want) : nothing

# The vector at `pos`; passes it. An `object` that others may refer to meanwhile exists before its elements do.
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

# The same for one that may be part of itself: the number of its elements is found first.
function shared_vector(r::Reading, @nospecialize(T), object)
    xs = Vector{something(T, Any)}(undef, count_elements(r))
    open!(object, xs)
    fill_elements!(r, xs, 1:length(xs))
    T === nothing && !object.taken && r.ctx.narrow && all(i -> isassigned(xs, i), eachindex(xs)) ? typed(r, xs, nothing) : xs
end

# How many elements the array at `pos` has; stays there.
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

# Reads the elements of the array at `pos` into an array that has as many; passes it.
function fill_elements!(r::Reading, @nospecialize(xs), positions)
    T = eltype(xs)
    outer = enter(r)
    for i in positions
        x = value(r, next(r), T)
        x isa Undef && !(Undef <: T && T !== Any) || (xs[i] = x)
    end
    leave(r, outer)
    xs
end

function with_gaps(@nospecialize(T), got)
    xs = Vector{T}(undef, length(got))
    for (i, x) in enumerate(got)
        x isa Undef || (xs[i] = x)
    end
    xs
end

# Elements in a vector of the type that is wanted, or else of what they have in common.
function typed(r::Reading, got::Vector{Any}, @nospecialize(T))
    T = T !== nothing ? T : r.ctx.narrow && !isempty(got) ? in_common(got) : Any
    T === Any ? got : isempty(got) ? Vector{T}() : convert(Vector{T}, got)
end

function in_common(got)
    T = typeof(first(got))
    for x in got
        x isa T || (T = typejoin(T, typeof(x)))
        T === Any && break
    end
    T
end

# ---- bits ----

# Fewer bytes are copied rather than mapped.
const LEAST_MAPPED = 4096

# A `Vector{UInt8}`.
bytes_value(r::Reading, at, len) = bits(r, UInt8, (len,), at, len)

# The array whose memory is `len` bytes of the file, in the file's own memory where that is possible and allowed.
function bits(r::Reading, ::Type{T}, dims::NTuple{N,Int}, at::Int, len::Int) where {T,N}
    from = r.start + at
    if r.keeper !== nothing && len >= LEAST_MAPPED && UInt(from) % Base.datatype_alignment(T) == 0 && T !== Bool
        # The bytes are there (the caller has checked), are aligned, have no reference in them (T is bits), and stay
        # mapped and writable for as long as the array lives.
        xs = unsafe_wrap(Array, Ptr{T}(from), dims)
        keep(xs, r.keeper)
        return xs
    end
    xs = Array{T,N}(undef, dims)
    GC.@preserve xs fetch_bytes(r, Ptr{UInt8}(pointer(xs)), at, len)
    T === Bool && check_bools(reinterpret(UInt8, vec(xs)), at)
    xs
end

@noinline function check_bools(bytes, at)
    most = UInt8(0)
    @inbounds @simd for b in bytes
        most |= b
    end
    most <= 0x01 || broken("a Bool that is neither 0 nor 1", "one of them", at)
end

# The memory in which arrays lie, and how many do. It is held here and not only by their finalizers: what nothing else leads to
# is finalized together with what leads to it, and a mapping would be gone before its arrays.
const lent = IdDict{Any,Int}()
const lent_lock = Threads.SpinLock()

# Has the keeper stay for as long as the array, whose memory in 1.11 and newer is an object that others may share.
function keep(xs, keeper)
    lock(lent_lock)
    try
        lent[keeper] = get(lent, keeper, 0) + 1
    finally
        unlock(lent_lock)
    end
    finalizer(x -> give_back(x, keeper), VERSION >= v"1.11-" ? getfield(getfield(xs, :ref), :mem) : xs)
end

# A finalizer, which may run while the lock is held, even in the same task: then the next collection tries again.
function give_back(x, keeper)
    trylock(lent_lock) || return finalizer(x -> give_back(x, keeper), x)
    try
        left = lent[keeper] - 1
        left == 0 ? delete!(lent, keeper) : (lent[keeper] = left)
    finally
        unlock(lent_lock)
    end
    nothing
end

# ---- tagged ones ----

# More dimensions than anybody's array has, and the compiler likes.
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

# How many elements these sizes make.
function count_of(dims, at)
    count = 1
    for n in dims
        # A zero does not make up for sizes that no array can have.
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
    xs = Array{T,length(dims)}(undef, dims...)
    object === nothing || open!(object, xs)
    fill_elements!(r, xs, eachindex(xs))
end

@noinline function bits_of(r::Reading, entry, @nospecialize(dims), count, at, len)
    T = entry.type
    if !isbitstype(T)
        len == 0 && count == 0 && !Base.has_free_typevars(T) && return Array{T,length(dims)}(undef, dims)
        invalid("bytes for elements of type $(type_name(T))", "a list of elements, or a type of bits", at)
    end
    entry.form in (FIELDS, BITS) || T <: Tuple || invalid("an array of $(type_name(T))", "a type that values can have", at)
    # As with one: another process's pointers point nowhere here.
    T <: Ptr && len == count * sizeof(T) && return fill(reinterpret(T, C_NULL), dims)
    has_pointer(T) && invalid("an array of pointers", "values that mean something in this process", at)
    checked_bits(r, T, dims, count, at, len)
end

function checked_bits(r::Reading, ::Type{T}, dims, count, at, len) where {T}
    needed, over = Base.mul_with_overflow(count, sizeof(T))
    if over || needed != len
        invalid("$len bytes for $count elements of $(sizeof(T)) bytes each", "as many as their product", at)
    end
    if sizeof(T) == 0
        r.empty_left >= count || limited("$count elements without bytes", "at most as many as the file has bytes, or 2^20", at)
        r.empty_left -= count
        return Array{T,length(dims)}(undef, dims)
    end
    bits(r, T, dims, at, len)
end
