// Objects of web servers and object stores, as sources and sinks: `https://…`, `http://…`, `s3://BUCKET/KEY`,
// `gs://BUCKET/KEY` and `az://CONTAINER/KEY`.
//
//     millstream::reader log(millstream::remote{"s3://logs/2026/11/27.csv.gz"});
//     millstream::remote report("s3://reports/a.csv", {.endpoint = "http://127.0.0.1:9000"});
//     millstream::writer writer(report.header("Content-Type", "text/csv"));
//
// A remote object is only a description. Any number of readers and writers can use it. The end of a reader means that
// all bytes of one version of the object were delivered; an object that is written appears complete when the writer is
// closed, or not at all. Web servers are sources only.
//
// Credentials and endpoints of object stores come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_SKIP_SIGNATURE, or from the machine's metadata service.
#ifndef MILLSTREAM_REMOTE_HPP
#define MILLSTREAM_REMOTE_HPP

#if __cplusplus <= 201703L
#error "millstream/remote.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <string_view>

#include <millstream/boundary.hpp>
#include <millstream/options.hpp>

namespace millstream {

/// An object of a web server or an object store, and the options of its requests.
class remote {
  public:
    /// Describes the object at `url`. For object stores, everything after `s3://BUCKET/`, `gs://BUCKET/` or
    /// `az://CONTAINER/` is the key as it is, so `%`, `#`, `?` and spaces belong to it.
    explicit remote(std::string_view url, const remote_options &options = {})
        : handle_(detail::made<handle_type>(millstream_remote_new, detail::c_text(url).c_str())) {
        detail::set(options, handle_.get());
    }

    /// Adds a header to each request, such as `Authorization`. It is not sent to another host after a redirect. Its
    /// value is not shown in messages.
    ///
    /// Headers that describe an object, such as `Content-Type` and `x-amz-meta-…`, are sent with the request that
    /// creates it, and with no other.
    remote &header(std::string_view name, std::string_view value) {
        detail::call(millstream_remote_add_header, handle_.get(), detail::c_text(name).c_str(),
                     detail::c_text(value).c_str());
        return *this;
    }

    /// The C ABI's remote object, which this object keeps.
    const millstream_remote *get() const noexcept { return handle_.get(); }

  private:
    using handle_type = detail::handle<millstream_remote, millstream_remote_free>;

    handle_type handle_;
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_REMOTE_HPP
