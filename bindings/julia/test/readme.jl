# Every example of the README runs and prints the documented output.
using Test

const readme = read(joinpath(@__DIR__, "..", "README.md"), String)
const example = r"```julia\n(.*?)```\n(?:\n```text\n(.*?)```)?"s

@testset "example $i" for (i, found) in enumerate(eachmatch(example, readme))
    program, expected = found.captures
    mktempdir() do directory
        cd(directory) do
            open("printed", "w") do printed
                redirect_stdout(printed) do
                    include_string(Module(), program, "example $i of README.md")
                end
            end
            expected === nothing || @test read("printed", String) == expected
        end
    end
end

@test length(collect(eachmatch(example, readme))) >= 5
