# Counts in Julia, by ccall: what a function does in its thread. LD_LIBRARY_PATH=$PREFIX/lib julia quipu.jl
const lib = "libquipu"

check(status::Int32) = status == 0 || error(unsafe_string(ccall((:quipu_strerror, lib), Cstring, (Cint,), status)))

# Counts an event while `work` runs; an error where it has no exact count.
function measure(work, event)
    set = Ref{Ptr{Cvoid}}(C_NULL)
    check(ccall((:quipu_set_create, lib), Int32, (Ptr{Cvoid}, Ref{Ptr{Cvoid}}), C_NULL, set))
    try
        check(ccall((:quipu_set_add, lib), Int32, (Ptr{Cvoid}, Cstring), set[], event))
        check(ccall((:quipu_set_open, lib), Int32, (Ptr{Cvoid},), set[]))
        check(ccall((:quipu_set_start, lib), Int32, (Ptr{Cvoid},), set[]))
        work()
        check(ccall((:quipu_set_stop, lib), Int32, (Ptr{Cvoid},), set[]))
        value = Ref{UInt64}(0)
        check(ccall((:quipu_set_values, lib), Int32, (Ptr{Cvoid}, Ref{UInt64}, Csize_t), set[], value, 1))
        return value[]
    finally
        ccall((:quipu_set_close, lib), Int32, (Ptr{Cvoid},), set[])
    end
end

fill_pages() = fill!(Vector{UInt8}(undef, 512 * 4096), 1)
fill_pages()
println(Int(measure(fill_pages, "page-faults")), " page-faults")
