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

/// The number of a file on its device, which all its names share; empty where there is none.
std::string number_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return fmt::format("file {} of device {}", status.st_ino, status.st_dev);
}

/// What two names of one file have in common: its number, or where it will be.
std::string identity(const std::string& path) {
  if (std::string number = number_of(path); !number.empty()) return number;
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
  // Results replace the file of that name, which must not happen to a device or a pipe.
  const bool is_report = use.role == FileRole::report;
  if (!fs::is_regular_file(use.path, ignored)) {
    throw Error(
        ErrorCode::invalid_argument, "is not a regular file", use.path,
        fmt::format("name a file for {}{}", use.option,
                    is_report ? ", or '-' and let the shell redirect standard output" : ""));
  }
  if (force || use.role == FileRole::state) return;
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

/// Whether a file is in the folder, under any name: below it, or what a link in it leads to.
bool holds(const fs::path& folder, const std::string& file) {
  std::error_code problem;
  const fs::path inside =
      fs::canonical(file, problem).lexically_relative(fs::canonical(folder, problem));
  if (!problem && !inside.empty() && *inside.begin() != "..") return true;
  constexpr int most_levels = 4;  // of a folder of data; links may close a circle
  const auto how = fs::directory_options::follow_directory_symlink |
                   fs::directory_options::skip_permission_denied;
  const std::string wanted = number_of(file);
  fs::recursive_directory_iterator entry(folder, how, problem);
  for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    if (number_of(entry->path().string()) == wanted) return true;
    if (entry.depth() + 1 >= most_levels) entry.disable_recursion_pending();
  }
  return false;
}

/// A folder of data is read as a whole. A state is not replaced unread: what is none is refused.
void require_outside(const FileUse& output, const FileUse& input) {
  std::error_code ignored;
  if (output.role == FileRole::input || output.role == FileRole::state) return;
  if (input.role != FileRole::input || !fs::is_directory(input.path, ignored)) return;
  if (!fs::exists(output.path, ignored) || !holds(input.path, output.path)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("is in the folder '{}', the input of {}, and would be overwritten by {}",
                          input.path, input.option, output.option),
              output.path, fmt::format("name another file for {}", output.option));
}

/// True for the names of descriptors that are open: /dev/stdout, or what a shell gives for >(...).
bool names_descriptor(const std::string& path) {
  for (const char* const beginning : {"/dev/std", "/dev/fd/", "/proc/"}) {
    if (path.starts_with(beginning)) return true;
  }
  return false;
}

}  // namespace

FileUse source_file(const std::string& source, const std::string& option) {
  for (const char* scheme : {"embedded:", "generate:", "twin:"}) {
    if (source.starts_with(scheme)) return {option, "", FileRole::input};
  }
  return {option, source, FileRole::input};
}

bool is_stream(const std::string& path) {
  // What a shell has redirected stdout to looks like a regular file, but belongs to the shell.
  if (path == "-" || names_descriptor(path)) return true;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode);
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
  for (const FileUse& output : files) {
    for (const FileUse& input : files) require_outside(output, input);
  }
  for (const FileUse& use : files) {
    if (!is_written(use)) continue;
    require_place(use);
    require_replaceable(use, force);
  }
}

}  // namespace tessera::app
