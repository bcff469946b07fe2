// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "files.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::app {
namespace {

[[noreturn]] void fail(const std::string& where, int error_number) {
  throw Error(ErrorCode::io, fmt::format("cannot write: {}", std::strerror(error_number)), where);
}

/// Without waiting for the other end of a pipe: one that is gone is an error.
int open_stream(const std::string& path) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) fail(path, errno);
  fcntl(descriptor, F_SETFL, O_APPEND);  // writing itself may wait
  return descriptor;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void guard_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one. Opened the wrong way round, stdin and stdout stay
    // unusable; stderr swallows what it is told.
    const int mode = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY;
    [[maybe_unused]] const int opened = open("/dev/null", mode);
  }
}

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail("standard output", errno);
}

void write_report(const std::string& path, std::string_view text) {
  if (!is_stream(path)) return io::write_text_file(path, text);
  std::unique_ptr<std::FILE, FileCloser> file(fdopen(open_stream(path), "a"));
  if (file == nullptr) fail(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || std::fclose(file.release()) != 0) fail(path, errno);
}

}  // namespace tessera::app
