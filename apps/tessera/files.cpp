// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "json.hpp"
#include "picture/picture.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

bool is_written(const FileUse& use) { return use.role != FileRole::input; }

fs::path folder_of(const fs::path& path) {
  return path.parent_path().empty() ? fs::path(".") : path.parent_path();
}

/// What two names of one file have in common: its number on its device, or where it will be.
std::string identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    return fmt::format("file {} of device {}", status.st_ino, status.st_dev);
  }
  std::error_code problem;
  const fs::path place = io::written_path(path);
  const fs::path folder = fs::weakly_canonical(folder_of(place), problem);
  return (problem ? place : folder / place.filename()).lexically_normal().string();
}

void require_place(const FileUse& use) {
  const fs::path place = io::written_path(use.path);
  const fs::path folder = folder_of(place);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(ErrorCode::io, fmt::format("cannot write: {}", std::strerror(errno)), use.path,
                fmt::format("make folder '{}' writable, or name another file for {}",
                            folder.string(), use.option));
  }
  std::error_code ignored;
  if (fs::is_directory(place, ignored)) {
    throw Error(ErrorCode::io, "cannot write: is a folder", use.path,
                fmt::format("name a file in it for {}", use.option));
  }
}

void require_replaceable(const FileUse& use, bool force) {
  std::error_code ignored;
  if (!fs::exists(use.path, ignored)) return;
  // Results replace the file of that name, which must not happen to a device.
  if (!fs::is_regular_file(use.path, ignored)) {
    throw Error(ErrorCode::invalid_argument, "is not a regular file", use.path,
                fmt::format("name a file for {}", use.option));
  }
  if (force || use.role == FileRole::state) return;
  const bool is_report = use.role == FileRole::report;
  const bool is_picture = use.role == FileRole::picture;
  if (is_report && holds_json(use.path)) return;
  if (is_picture && picture::is_own_picture(use.path)) return;
  throw Error(ErrorCode::invalid_argument,
              is_report    ? "already exists, and is no earlier report"
              : is_picture ? "already exists, and is no picture that tessera made"
                           : "already exists",
              use.path,
              fmt::format("give --force to replace it, or name another file for {}", use.option));
}

void require_different(const FileUse& a, const FileUse& b) {
  if (!is_written(a) && !is_written(b)) return;
  if (identity(a.path) != identity(b.path)) return;
  const bool both = is_written(a) && is_written(b);
  throw Error(
      ErrorCode::invalid_argument,
      both ? fmt::format("is to be written by both {} and {}", a.option, b.option)
           : fmt::format("is the input of {} and would be overwritten by {}",
                         is_written(a) ? b.option : a.option, is_written(a) ? a.option : b.option),
      is_written(a) ? a.path : b.path,
      fmt::format("name another file for {}", is_written(b) ? b.option : a.option));
}

}  // namespace

FileUse source_file(const std::string& source, const std::string& option) {
  for (const char* scheme : {"embedded:", "generate:", "twin:"}) {
    if (source.starts_with(scheme)) return {option, "", FileRole::input};
  }
  return {option, source, FileRole::input};
}

bool is_stream(const std::string& path) {
  if (path == "-") return true;
  // What a shell has redirected stdout to looks like a regular file, but belongs to the shell.
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return true;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void check_files(const std::vector<FileUse>& uses, bool force) {
  std::vector<FileUse> files;
  for (const FileUse& use : uses) {
    const bool streams = use.role == FileRole::report && is_stream(use.path);
    if (!use.path.empty() && !streams) files.push_back(use);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = i + 1; j < files.size(); ++j) require_different(files[i], files[j]);
  }
  for (const FileUse& use : files) {
    if (!is_written(use)) continue;
    require_place(use);
    require_replaceable(use, force);
  }
}

}  // namespace tessera::app
