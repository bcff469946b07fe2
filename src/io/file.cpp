// SPDX-License-Identifier: Apache-2.0
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t read_grain = 1 << 22;

int open_for_reading(const std::string& path) {
  if (path.empty() || path == "-") {
    throw Error(ErrorCode::invalid_argument, "a data set cannot be read from a pipe",
                "'" + path + "'", "give the name of a file");
  }
  // Without O_NONBLOCK, opening a named pipe would wait for somebody to write to it.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) {
    system_failure("cannot open", path, errno, "check the name and the permissions of the file");
  }
  return number;
}

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) system_failure("cannot examine", path, errno, "");
  return status;
}

}  // namespace

void damaged(const std::string& where, const std::string& problem) {
  throw Error(ErrorCode::bad_data, problem, where, damaged_file_fix);
}

void system_failure(const std::string& attempt, const std::string& path, int reason,
                    const std::string& fix) {
  throw Error(ErrorCode::io, attempt + ": " + std::generic_category().message(reason), path, fix);
}

bool Descriptor::close() noexcept {
  if (number_ < 0) return true;
  return ::close(std::exchange(number_, -1)) == 0;
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)), descriptor_(open_for_reading(path_)) {
  const struct stat status = status_of(descriptor_.number(), path_);
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::io, "is a folder", path_, "give the name of a file");
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, "is not a regular file", path_, "copy the data to a file first");
  }
  if (status.st_size == 0) damaged(path_, "is empty");
  size_ = status.st_size;
  changed_ = status.st_mtim;
}

void InputFile::require_unchanged() const {
  const struct stat now = status_of(descriptor_.number(), path_);
  if (now.st_size == size_ && now.st_mtim.tv_sec == changed_.tv_sec &&
      now.st_mtim.tv_nsec == changed_.tv_nsec) {
    return;
  }
  throw Error(ErrorCode::io, "has changed while it was read", path_,
              "read it again when nobody writes to it");
}

void InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_.number(), out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) system_failure("cannot read", path_, errno, "check the disk");
    if (count == 0) {
      damaged(path_, fmt::format("ends at byte {}", offset));
    }
    offset += count;
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

Buffer<std::byte> InputFile::read_all() const {
  Buffer<std::byte> bytes(size_);
  parallel_ranges(size_, read_grain, [&](std::int64_t begin, std::int64_t end) {
    read(begin, {bytes.data() + begin, static_cast<std::size_t>(end - begin)});
  });
  return bytes;
}

SharedArray<std::byte> InputFile::map() const {
  const auto length = static_cast<std::size_t>(size_);
  void* const memory = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor_.number(), 0);
  if (memory == MAP_FAILED) {
    system_failure("cannot map", path_, errno, "read the file instead of mapping it");
  }
  const std::shared_ptr<const void> owner(
      memory, [length](const void* mapped) { ::munmap(const_cast<void*>(mapped), length); });
  return {owner, static_cast<const std::byte*>(memory), size_};
}

std::string stem_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return std::filesystem::path(name).stem().string();
}

}  // namespace tessera::io
