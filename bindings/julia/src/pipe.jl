# Stages on Julia tasks: `parallel` runs a function on several threads, and `map_async` waits for several calls at once.
#
# The task that loops over the results reads the source, one batch for each task, and passes the results on in the order of
# the records. No thread of the library calls Julia. While the next result is not ready, it waits for that and for the
# source at the same time, so neither delays the other.

# One call of `map_async`, or the calls of `parallel` for the records of a batch.
mutable struct Work{R}
    batch::Batch
    results::Vector{R}
    # The exception of the call after these results.
    failure::Union{CapturedException,Nothing}
    has_ended::Bool
    nanoseconds::UInt64

    Work{R}() where {R} = new(Batch(), R[], nothing, false, 0)
end

# The results of a function for records or batches; see `parallel`.
mutable struct Stage{F,S<:Union{Records,Batches},R}
    call::F
    source::S
    reader::Reader
    name::String
    in_threads::Bool
    ntasks::Int
    ordered::Bool
    # The work that has begun, in the order of the records, and what was passed on and can be used again.
    begun::Vector{Work{R}}
    spare::Vector{Work{R}}
    waker::Waker
    # The work whose results are passed on, up to `used`.
    current::Work{R}
    used::Int
    # The number of records in the next batch.
    most::Int
    # No record follows what has begun; and the error that follows it.
    at_end::Bool
    failure::Any
end

function Stage(call, source, in_threads, ntasks, ordered)
    ntasks = natural(:ntasks, ntasks)
    ntasks > 0 || wrong(:ntasks, ntasks, "at least 1")
    R = Base.promote_op(call, item_type(source))
    R === Union{} && (R = Any) # the function always throws
    reader = source isa Batches ? source.reader : source.batches.reader
    Stage{typeof(call),typeof(source),R}(call, source, reader, name(reader), in_threads, ntasks, ordered, [], [], Waker(), Work{R}(), 0,
        1, false, nothing)
end

item_type(::Batches) = Batch
item_type(records::Records) = Base.promote_op(records.make, Batch, Int)

"""
    parallel(f, records; ntasks = 2 * Threads.nthreads(), ordered = true)

Calls `f` with each record on all of Julia's threads, and iterates over the results. `records` is [`eachrecord`](@ref) or
`BSON.documents` of a source, or [`batches`](@ref), whose batches `f` gets whole.

    for (name, score) in parallel(expensive, eachrecord("reads.txt.gz"))
        use(name, score)
    end

The results are in the order of the records, unless `ordered = false`: then they are passed on as soon as they are ready.
If `f` throws for a record, or if the source fails, the loop receives all results before it, and then a
[`MillstreamError`](@ref): its kind is `:stage_failed`, its `record` the number of the record, and its `cause` the exception
of `f`.

`f` is called by several tasks at once (`Threads.@spawn`), so it must be safe to use by several threads; Julia has one
thread unless it is started with `--threads`. A task takes about a millisecond for its batch of records, and at most
`ntasks` batches are in progress, so memory is bounded and a slow loop stops the source. A `Batch` that `f` gets is valid
during the call; its size is set by `most` of `batches`.

After a loop that ended early, another loop over the same object continues. The reader itself is then after the records
that have been read for the tasks.
"""
function parallel(f, records::Union{Records,Batches}; ntasks = 2 * Threads.nthreads(), ordered::Bool = true, others...)
    check_options(:parallel, others, (:ntasks, :ordered))
    Stage(f, records, true, ntasks, ordered)
end

"""
    map_async(f, records; ntasks = 100, ordered = true)

Calls `f` with each record, and waits for up to `ntasks` calls at the same time: for functions that wait themselves, such
as those that ask a server. Everything else is as described for [`parallel`](@ref), but all calls are made by tasks of the
same thread (`@async`), so `f` need not be safe to use by several threads.

    for address in map_async(look_up, eachrecord("names.txt"))
        println(address)
    end
"""
function map_async(f, records::Union{Records,Batches}; ntasks = 100, ordered::Bool = true, others...)
    check_options(:map_async, others, (:ntasks, :ordered))
    Stage(f, records, false, ntasks, ordered)
end

parallel(f, other; options...) = not_records(other)
map_async(f, other; options...) = not_records(other)
not_records(other) = throw(ArgumentError("a $(typeof(other)) has no records: use eachrecord(source), batches(source) or BSON.documents(source)"))

Base.IteratorSize(::Type{<:Stage}) = Base.SizeUnknown()
Base.IteratorEltype(::Type{<:Stage}) = Base.EltypeUnknown()

@inline function Base.iterate(stage::Stage, _ = nothing)
    while stage.used == length(stage.current.results)
        next_work(stage) || return nothing
    end
    stage.used += 1
    @inbounds(stage.current.results[stage.used]), nothing
end

# Makes the next work that has ended the current one. Returns false at the end; throws an error that follows the current
# results.
@noinline function next_work(stage)
    waker = stage.waker
    if stage.current.failure !== nothing
        stage.at_end = true
        lock(() -> empty!(stage.begun), waker.condition)
        try
            throw(stage.current.failure) # with its stack trace, as the cause of the other
        catch
            throw(stage_failed(stage))
        end
    end
    begin_work(stage)
    if isempty(stage.begun)
        stage.failure === nothing && return false
        # Reading may continue after it, such as after a cancellation.
        failure, stage.failure, stage.at_end = stage.failure, nothing, false
        throw(failure)
    end
    push!(stage.spare, stage.current)
    lock(waker.condition) do
        while !waker.is_ready
            wait(waker.condition)
        end
        index = next_ended(stage)
        stage.current, stage.used = stage.begun[index], 0
        deleteat!(stage.begun, index)
        waker.is_ready = next_ended(stage) != 0
    end
    update_size(stage)
    true
end

# The index of the work whose results can be passed on, or 0. Results that follow a failure are never passed on, so
# a failure has its turn after all work before it.
function next_ended(stage)
    begun = stage.begun
    stage.ordered && return isempty(begun) || !begun[1].has_ended ? 0 : 1
    index = findfirst(work -> work.has_ended && (work.failure === nothing || work === begun[1]), begun)
    index === nothing ? 0 : index
end

# Reads batches and starts tasks for them. While results are ready, it does not wait for the source.
function begin_work(stage)
    while !stage.at_end && length(stage.begun) < stage.ntasks
        work = isempty(stage.spare) ? Work{eltype(stage.current.results)}() : pop!(stage.spare)
        try
            read_batch!(work.batch, stage) || return push!(stage.spare, work)
        catch failure
            # An interrupt is not an error of the source, and reading can continue.
            failure isa InterruptException && rethrow()
            stage.failure, stage.at_end = failure, true
            return
        end
        empty!(work.results)
        work.failure, work.has_ended = nothing, false
        lock(() -> push!(stage.begun, work), stage.waker.condition)
        stage.in_threads ? Threads.@spawn(do_work(stage, work)) : @async do_work(stage, work)
    end
end

# Returns false at the end, and if results are ready before a record.
function read_batch!(batch, stage)
    batches, most = stage.source isa Batches ? (stage.source, typemax(Int)) : (stage.source.batches, stage.most)
    reader = stage.reader
    reader.waker = isempty(stage.begun) ? nothing : stage.waker
    try
        await_record(reader, batches.framer) || return false
    finally
        reader.waker = nothing
    end
    lent = next_batch_now(reader, batches.framer, min(batches.most, most))
    stage.at_end = lent.count == 0
    stage.at_end || take_over!(batch, lent)
    !stage.at_end
end

# Processes a batch; this is the body of a task.
function do_work(stage, work)
    began = time_ns()
    try
        append_results!(work.results, stage.call, stage.source, work.batch)
    catch failure
        work.failure = CapturedException(failure, catch_backtrace())
    end
    work.nanoseconds = time_ns() - began
    waker = stage.waker
    lock(waker.condition) do
        work.has_ended = true
        if !waker.is_ready && next_ended(stage) != 0
            waker.is_ready = true
            notify(waker.condition)
            waker.event === nothing || notify(waker.event)
        end
    end
end

append_results!(results, call, ::Batches, batch) = push!(results, call(batch))

function append_results!(results, call, records::Records, batch)
    for i in 1:length(batch)
        push!(results, call(records.make(batch, i)))
    end
end

# Much longer than starting a task takes, and short to wait for.
const target_nanoseconds = 1_000_000

function update_size(stage)
    stage.in_threads && stage.current.failure === nothing || return
    count = length(stage.current.batch)
    fitting = target_nanoseconds * count / max(stage.current.nanoseconds, 1)
    stage.most = round(Int, clamp(fitting, 1, 8 * stage.most))
end

function stage_failed(stage)
    work = stage.current
    index = stage.source isa Batches ? 0 : length(work.results)
    cause = work.failure.ex
    first_line = work.batch.first_line
    record_error(:stage_failed, stage.name, work.batch.offset + work.batch.offsets[index+1], work.batch.first_record + index;
        line = first_line === nothing ? nothing : first_line + index, found = sprint(showerror, cause), cause = cause)
end
