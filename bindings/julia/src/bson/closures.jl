# Functions with a body: a file contains their type and their code, in the form of one version of Julia. They are read
# only if the caller allows it, and only by the same minor version of Julia, because Julia's internals are not stable.
# This has been tested on 1.5; newer versions report that they do not support it.

# Types that must never be created from fields, even if code is allowed.
const MACHINERY = Any[Task, Module, DataType, UnionAll, Core.SimpleVector, Core.MethodTable, Core.MethodInstance, String, Symbol]

const KNOWS_CODE = v"1.5-" <= VERSION < v"1.6-"

# Whether a type is the type of a function without a global name.
function is_anonymous(@nospecialize(T))
    T <: Function && isdefined(T.name, :mt) && startswith(String(T.name.name), '#') || return false
    name = T.name.mt.name
    !isdefined(T.name.module, name) || T !== typeof(getfield(T.name.module, name))
end

function put_anonymous(w::Writing, @nospecialize(T))
    KNOWS_CODE || unwritable("a function with a body, on Julia $VERSION", "a named one, or Julia 1.5")
    put_member(w, "tag", "jl_anonymous")
    element(() -> put_backref(w, T.name, get(w.met, T.name, 0)), w, "typename")
    put_list(w, "params", T.parameters)
end

function structdata(name::Core.TypeName)
    T = Base.unwrap_unionall(name.wrapper)
    methods_ = collect(Base.MethodList(name.mt))
    table = Any[name.mt.name, methods_, name.mt.max_args, isdefined(name.mt, :kwsorter) ? name.mt.kwsorter : nothing]
    Any[string(VERSION), name.name, name.names, T.super, T.parameters, T.types, isdefined(T, :instance), T.abstract, T.mutable,
        T.ninitialized, table]
end

structdata(m::Method) = Any[m.module, m.name, m.file, m.line, m.sig, m.slot_syms, m.ambig, m.nargs, m.isva, m.nospecialize,
    Base._uncompressed_ast(m, m.source)]

# The tag `jl_anonymous`.
function anonymous_type(r::Reading, t::Tagged)
    r.pos = t.subject
    name = value(r, t.subject_kind, Any)
    name isa Core.TypeName || invalid("a function without a body", "a Core.TypeName", t.subject)
    params = read_params(r, t.data_kind, t.data)
    isempty(params) ? name.wrapper : apply_type(r, name.wrapper, params, t.data)
end

function code_value(r::Reading, @nospecialize(T), t::Tagged, object)
    KNOWS_CODE || invalid("a function with a body", "a named one, on Julia $VERSION", t.data)
    t.data_kind == ARRAY || fields_missing(T, t)
    r.pos = t.data
    T === Core.TypeName ? type_name_value(r, object) : T === Method ? method_value(r) :
        T in MACHINERY ? invalid("a value of type $(type_name(T))", "data, or the code of a function", t.data) :
        fields(r, T)
end

# Types that files have defined.
baremodule brought end

# Reads the next element, which is a T.
function part(r::Reading, ::Type{T}) where {T}
    kind = next(r)
    kind == 0x00 && invalid("the end of a function's parts", "a $T", r.pos)
    value(r, kind, T)::T
end

# Creates a function's type. Its methods refer to it, so it exists before them.
function type_name_value(r::Reading, object)
    outer = enter(r)
    version = part(r, String)
    startswith(version, "$(VERSION.major).$(VERSION.minor).") ||
        invalid("a function of Julia $(first(version, 20))", "one of this Julia, $VERSION", r.pos)
    wanted = part(r, Symbol)
    free = isdefined(brought, wanted) ? gensym(wanted) : wanted
    name = ccall(:jl_new_typename_in, Ref{Core.TypeName}, (Any, Any), free, brought)
    object === nothing || open!(object, name)
    names, super, parameters, types = part(r, Core.SimpleVector), part(r, DataType), part(r, Core.SimpleVector), part(r, Core.SimpleVector)
    has_instance, is_abstract, is_mutable_, least = part(r, Bool), part(r, Bool), part(r, Bool), part(r, Int)
    super <: Function && length(names) == length(types) && 0 <= least <= length(types) ||
        invalid("parts of a function's type that do not fit together", "matching parts", r.pos)
    name.names = names
    made = ccall(:jl_new_datatype, Any, (Any, Any, Any, Any, Any, Any, Cint, Cint, Cint),
        name, brought, super, parameters, names, types, is_abstract, is_mutable_, least)
    T = name.wrapper = made.name.wrapper
    ccall(:jl_set_const, Cvoid, (Any, Any, Any), brought, free, T)
    if has_instance && !isdefined(T, :instance)
        Core.setfield!(T, :instance, ccall(:jl_new_struct, Any, (Any, Any...), T))
    end
    called, defined_, most, sorter = part(r, Vector)
    leave(r, outer)
    name.mt = ccall(:jl_new_method_table, Any, (Any, Any), free, brought)
    name.mt.name = called
    name.mt.max_args = most
    sorter === nothing || (name.mt.kwsorter = sorter)
    for m in defined_
        ccall(:jl_method_table_insert, Cvoid, (Any, Any, Ptr{Cvoid}), name.mt, m::Method, C_NULL)
    end
    name
end

function method_value(r::Reading)
    outer = enter(r)
    m = ccall(:jl_new_method_uninit, Ref{Method}, (Any,), Main)
    for field in (:module, :name, :file, :line, :sig, :slot_syms, :ambig, :nargs, :isva, :nospecialize)
        T = fieldtype(Method, field)
        setfield!(m, field, part(r, T))
    end
    code = part(r, Core.CodeInfo)
    leave(r, outer)
    m.source = code
    m.pure = code.pure
    m
end
