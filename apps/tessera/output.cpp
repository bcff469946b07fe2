// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& where, int error_number, const std::string& fix = {}) {
  throw Error(ErrorCode::io, fmt::format("cannot write: {}", std::strerror(error_number)), where,
              fix);
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void write_whole(const std::string& target, const std::string& shown, std::string_view text) {
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(target.c_str(), "we"));
  if (file == nullptr) fail(shown, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || std::fclose(file.release()) != 0) fail(shown, errno);
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

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

void write_text_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    write_whole(path, path, text);
    return;
  }
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  try {
    write_whole(temporary, path, text);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, errno);
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

void require_writable(const std::string& path, bool force) {
  if (path.empty()) return;
  const fs::path folder = folder_of(path);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    fail(path, errno, fmt::format("make folder '{}' writable or name another", folder.string()));
  }
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  if (fs::is_directory(path, ignored)) fail(path, EISDIR, "name a file in it");
  // Results replace the file of that name, which must not happen to a device.
  if (!fs::is_regular_file(path, ignored)) {
    throw Error(ErrorCode::invalid_argument, "is not a regular file", path, "name a file");
  }
  if (!force) {
    throw Error(ErrorCode::invalid_argument, "already exists", path,
                "give --force to replace it, or name another file");
  }
}

}  // namespace tessera::app
