// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/writing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view name_begin = ".tessera-";
constexpr std::string_view name_end = ".tmp";

/// All temporary files of this process. Never destroyed: files may be written until the end.
struct Pending {
  std::mutex mutex;
  std::set<std::string> names;
  std::set<std::string> clean_folders;
  unsigned counter = 0;
  std::int64_t written = 0;
  bool abandoned = false;
};

Pending& pending() {
  static Pending* const all = new Pending;
  return *all;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// True for ".tessera-", digits, "-", digits, ".tmp".
bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(name_begin) || !name.ends_with(name_end)) return false;
  name.remove_prefix(name_begin.size());
  name.remove_suffix(std::min(name.size(), name_end.size()));
  const std::size_t dash = name.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) &&
         is_number(name.substr(dash + 1));
}

/// Removes a temporary file that nobody holds: a regular file of this user whose lock is free. The
/// lock is kept while it is removed, so that its writer, if it has just made it, notices.
void remove_if_left_behind(const std::string& name) {
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) return;
  ::unlink(name.c_str());
}

void clean(const std::string& folder) {
  DIR* const entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* const entry = ::readdir(entries)) {
    if (is_temporary_name(entry->d_name)) remove_if_left_behind(folder + "/" + entry->d_name);
  }
  ::closedir(entries);
}

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::io, fmt::format("cannot write into folder {}: {}", folder_of(path), why),
              path, "check that the folder exists and may be written to");
}

/// A new file, locked. Somebody who cleans the folder may be quicker than the lock: then again.
int create_locked(const std::string& name, const std::string& path) {
  while (true) {
    const int number = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                              S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    if (number < 0) refuse_to_write(path, std::generic_category().message(errno));
    // Where the file system has no locks, nobody will take the file for one left behind.
    if (::flock(number, LOCK_EX) != 0) return number;
    struct stat status {};
    if (::fstat(number, &status) != 0 || status.st_nlink > 0) return number;
    ::close(number);
  }
}

/// Under the lock of `all`, so that abandoning misses none.
int create(Pending& all, const std::string& path, std::string& name) {
  const std::scoped_lock lock(all.mutex);
  if (all.abandoned) refuse_to_write(path, "the program is ending");
  const std::string folder = folder_of(path);
  if (all.clean_folders.insert(std::filesystem::absolute(folder).string()).second) clean(folder);
  do {
    // The numbers of processes come again: one that is gone may have left this name.
    name = fmt::format("{}/{}{}-{}{}", folder, name_begin, ::getpid(), all.counter++, name_end);
  } while (::access(name.c_str(), F_OK) == 0);
  const int number = create_locked(name, path);
  all.names.insert(name);
  return number;
}

std::string require_writable_target(const std::string& given) {
  if (given.empty() || given == "-") {
    throw Error(ErrorCode::invalid_argument, "a data set cannot be written to a pipe",
                "'" + given + "'", "give the name of a file");
  }
  std::string path = written_path(given);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, "cannot write: not a regular file", path, "give another name");
  }
  return path;
}

constexpr const char* write_fix = "check the free space and the permissions of the folder";

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(require_writable_target(path)), descriptor_(create(pending(), path_, name_)) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    // A failure here leaves the usual permissions of a new file, which is no reason to stop.
    [[maybe_unused]] const int result = ::fchmod(descriptor_.number(), status.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() { remove_temporary(name_); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) system_failure("cannot write", path_, errno, write_fix);
    size_ += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (!take_place()) system_failure("cannot write", path_, errno, write_fix);
  // The new name itself is on the disk only once the folder is. Some file systems cannot do this.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() >= 0) [[maybe_unused]]
    const int result = ::fsync(folder.number());
}

void remember_temporary(const std::string& name) {
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  all.names.insert(name);
}

void remove_temporary(const std::string& name) {
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  if (all.names.erase(name) > 0) ::unlink(name.c_str());
}

/// False, with the reason in errno, where the system refuses.
bool AtomicFile::take_place() {
  // The data must be on the disk before the name is, and the lock must outlive the old name.
  if (::fsync(descriptor_.number()) != 0) return false;
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  if (all.abandoned) {
    errno = EINTR;
    return false;
  }
  if (::rename(name_.c_str(), path_.c_str()) != 0) return false;
  all.names.erase(name_);
  ++all.written;
  return true;
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::int64_t files_written() noexcept {
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  return all.written;
}

bool abandon_files(std::int64_t before) noexcept {
  Pending& all = pending();
  const std::scoped_lock lock(all.mutex);
  if (all.written > before) return false;
  all.abandoned = true;
  for (const std::string& name : all.names) ::unlink(name.c_str());
  all.names.clear();
  return true;
}

std::string written_path(const std::string& path) {
  constexpr int most_links = 40;
  std::filesystem::path place = path;
  for (int links = 0; links < most_links; ++links) {
    std::error_code problem;
    if (!std::filesystem::is_symlink(place, problem)) return place.string();
    const std::filesystem::path target = std::filesystem::read_symlink(place, problem);
    if (problem) break;
    place = target.is_absolute() ? target : place.parent_path() / target;
  }
  throw Error(ErrorCode::io, "cannot write: the link leads nowhere", path, "name a file");
}

}  // namespace tessera::io
