# The examples of the documentation.
using Test
using Millstream: BSON

# A prompt and its output, in the form of doctests.
function examples(text)
    found = Tuple{String,String}[]
    for block in eachmatch(r"```jldoctest\n(.*?)```"s, text)
        code, shown = "", ""
        flush() = (isempty(code) || push!(found, (code, strip(shown))); code = shown = "")
        for line in split(block[1], '\n')
            if startswith(line, "julia> ")
                flush()
                code = line[8:end]
            elseif startswith(line, "       ") && isempty(shown)
                code *= "\n" * line
            else
                shown *= line * "\n"
            end
        end
        flush()
    end
    found
end

# The output of the prompt, with the array types of 1.5.
function shown(m, code)
    value = include_string(m, code)
    (value === nothing || endswith(rstrip(code), ';')) && return ""
    strip(sprint(show, MIME("text/plain"), value; context = :module => m))
end
plainly(text) = replace(replace(text, r"Array\{(\w+(\{\w+\})?),1\}" => s"Vector{\1}"), r"\s+" => " ")

docs = Dict{String,String}()
for (binding, multi) in Base.Docs.meta(BSON), (_, doc) in multi.docs
    docs[string(binding)*string(doc.data[:typesig])] = join(doc.text)
end
folder = joinpath(@__DIR__, "..", "..")
for page in ("README.md", joinpath("docs", "bson.md"))
    isfile(joinpath(folder, page)) && (docs[page] = read(joinpath(folder, page), String))
end

@testset "$name" for (i, (name, text)) in enumerate(sort(collect(docs)))
    # The examples are evaluated in Main, where types are looked up.
    m = Core.eval(Main, :(module $(Symbol(:Example, i)) end))
    Core.eval(m, :(const BSON = $BSON; const bson = $(BSON.bson)))
    for (code, expected) in examples(text)
        @test plainly(shown(m, code)) == plainly(expected)
    end
end
