// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support.hpp"

namespace tessera::fuzz {

/// A folder in memory for readers of folders. An input is all files of one: a line "=== NAME", then
/// the text of the file. Files that stay the same from one input to the next are left alone.
class Folder {
 public:
  /// @param files  the names that inputs may have
  Folder(const std::string& name, std::vector<std::string> files)
      : path_(memory_path(name)), files_(std::move(files)) {
    for (const std::string& file : files_) {
      std::filesystem::create_directories((path_ / file).parent_path());
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string holding(std::string_view input) {
    auto wanted = taken_apart(input);
    for (const std::string& name : files_) {
      const auto found = wanted.find(name);
      const auto held = held_.find(name);
      if (found == wanted.end()) {
        if (held == held_.end()) continue;
        std::filesystem::remove(path_ / name);
        held_.erase(held);
      } else if (held == held_.end() || held->second != found->second) {
        std::ofstream(path_ / name, std::ios::binary) << found->second;
        held_[name] = std::move(found->second);
      }
    }
    return path_.string();
  }

 private:
  using Files = std::map<std::string, std::string, std::less<>>;

  static Files taken_apart(std::string_view input) {
    constexpr std::string_view heading = "=== ";
    Files files;
    while (!input.empty()) {
      const std::size_t line = std::min(input.find('\n'), input.size());
      std::string_view name = input.substr(0, line);
      if (name.starts_with(heading)) name.remove_prefix(heading.size());
      input.remove_prefix(std::min(line + 1, input.size()));
      const std::size_t end = std::min(input.find(heading), input.size());
      files[std::string(name)] = input.substr(0, end);
      input.remove_prefix(end);
    }
    return files;
  }

  std::filesystem::path path_;
  std::vector<std::string> files_;
  Files held_;
};

}  // namespace tessera::fuzz
