using Millstream, Test

@test Millstream.library_version() >= v"0.1"
