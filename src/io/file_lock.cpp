// SPDX-License-Identifier: Apache-2.0
#include "io/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::io {
namespace {

using Clock = std::chrono::steady_clock;

std::string lock_name(const std::string& path) {
  const std::filesystem::path place = written_path(path);
  return (place.parent_path() / (".tessera-" + place.filename().string() + ".lock")).string();
}

int open_lock(const std::string& name, const std::string& path) {
  const int number = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                            S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  if (number >= 0) return number;
  throw Error(ErrorCode::io, "cannot lock: " + std::generic_category().message(errno), path,
              "check that the folder exists and may be written to");
}

/// True once the lock is ours, or the file system has none.
bool has_locked(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno != EWOULDBLOCK;
  }
  return true;
}

/// Those who had the lock before may have removed its file while we waited for it.
bool is_removed(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

int open_locked(const std::string& name, const std::string& path) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(30);
  while (true) {
    const int file = open_lock(name, path);
    while (!has_locked(file)) {
      if (Clock::now() > end) {
        ::close(file);
        throw Error(ErrorCode::io, "another process keeps it locked", path,
                    "wait for that process, or name another file");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!is_removed(file)) return file;
    ::close(file);
  }
}

}  // namespace

FileLock::FileLock(const std::string& path)
    : name_(lock_name(path)), descriptor_(open_locked(name_, path)) {
  remember_temporary(name_);
}

FileLock::~FileLock() { remove_temporary(name_); }

}  // namespace tessera::io
