# Objects of web servers and object stores.

"""
    Remote(url; headers = (), options...)

An object of a web server or an object store: `https://…`, `http://…`, `s3://BUCKET/KEY`, `gs://BUCKET/KEY`
or `az://CONTAINER/KEY`, and the options of its requests. Everything after `s3://BUCKET/` is the key as it is, so `%`, `#`, `?` and spaces belong to it.

It is accepted wherever a path is accepted, and so is the URL itself, if no options are needed. A file with the name of a
URL can be written as `"./NAME"`.

    report = Remote("s3://reports/2026/11/27.csv.gz"; headers = ["x-amz-storage-class" => "STANDARD_IA"])
    Writer(report) do writer
        put!(writer, "date,orders\n")
    end                                                     # here the complete object appears
    foreach(println, eachrecord("https://example.org/orders.csv"))

The end of a reader means that all bytes of one version of the object were delivered. A written object appears when the
writer is closed, or not at all. Web servers are sources only, and objects cannot be mapped or appended to.

Credentials of object stores come from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
`AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, or from the machine's metadata service.

Options, with their defaults:
- `headers`: pairs of names and values that are sent with each request, such as
  `["Authorization" => "Bearer token"]`. They are not sent to another host after a redirect. Headers that describe an
  object, such as `Content-Type`, are sent with the request that creates it, and with no other.
- `endpoint`: the URL of an S3-compatible store, such as `"http://127.0.0.1:9000"`: `AWS_ENDPOINT_URL`, or Amazon's
- `anonymous`: `false`, or `true` to send requests to an object store without a signature, for public objects
- `ca_file`: a file of certificates (PEM) that are trusted in addition to those of the system
- `netrc`: `false`, or `true` to take user and password for a web server from `~/.netrc`, or from the file that the
  variable `NETRC` names
- `md5_etag`: `false`, or `true` to compare the MD5 of a whole object with its ETag, if it has no other checksum
- `idle_timeout`: the seconds that a connection may deliver nothing before it is given up and resumed, 10; `retry_for`: the
  seconds for which failed requests are repeated without any progress, 300
- `range_size`: the size of a range in bytes, 8 MiB; `connections`: how many ranges are fetched at a time, 16 of half
  the size at first and if a connection is slow, otherwise 8, or 5 of twice the size if it is fast
- `part_size`: the size of the parts in which an object is uploaded, 5 MiB and from the 501st
  on 16 MiB, or more if `size_hint` requires it; `size_hint`: the expected length of such an object
- `allow_unknown_length`: `false`, or `true` to accept a body without a length or chunks, which looks complete if the
  connection breaks
- `allow_link_local`: `false`, or `true` to allow link-local addresses, where clouds keep the credentials of a
  machine

The values of headers and the query of a URL are not shown in messages.
"""
struct Remote
    url::String
    headers::Vector{Pair{String,String}}
    options::NamedTuple

    function Remote(url::AbstractString; headers = (), options...)
        check_options(:Remote, options, (:headers, remote_options...))
        is_c_text(url) || throw(ArgumentError("this URL contains a NUL"))
        remote = new(url, checked_headers(headers), values(options))
        # Wrong options are refused before anything is opened.
        with_remote(identity, remote)
        remote
    end
end

is_c_text(value) = value isa AbstractString && !('\0' in value)

# Messages have no values of headers, which may be secret.
function checked_headers(headers)
    is_header(pair) = pair isa Pair && is_c_text(pair.first) && is_c_text(pair.second)
    given = applicable(iterate, headers) ? collect(Any, headers) : [headers]
    all(is_header, given) ||
        throw(ArgumentError("headers are pairs of texts without NULs, such as [\"Authorization\" => value]"))
    [String(name) => String(value) for (name, value) in given]
end

# Calls `use` with the object of the library.
function with_remote(use, remote)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    @call millstream_remote_new(remote.url, out)
    handle = out[]
    try
        for (name, value) in remote.headers
            @call millstream_remote_add_header(handle, name, value)
        end
        set_remote_options(handle; remote.options...)
        use(handle)
    finally
        @c millstream_remote_free(handle)
    end
end

# Whether a text is a URL of an object, rather than the path of a file.
is_url(text) = occursin(r"^(https?|s3|gs|az)://"i, text)

# The object that a source or sink is, or the source or sink itself.
resolved(text::AbstractString) = is_url(text) ? Remote(text) : text
resolved(other) = other

# The path of a file or socket on this machine.
function local_path(path, use)
    resolved(path) isa Remote && throw(ArgumentError("a remote object cannot be $use: expected a path"))
    path
end

const web_url = r"""
    ^([a-z]+://)
    (?:[^/\\?\#]*@)?                            # user and password
    ((?:\[[^]]*\]|[^/\\?\#@:\[]+)(?::[0-9]*)?   # host and port
    (?:/[^?\#]*)?)                             # path
    (?:[?\#]|$)
    """ix

# The URL without user, password, query and fragment, which may be secret. A key of a store has none of them.
function shown(remote::Remote)
    occursin(r"^(s3|gs|az)://"i, remote.url) && return remote.url
    parts = match(web_url, remote.url)
    parts === nothing ? "a URL" : parts[1] * parts[2]
end
