// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/ogb.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "support.hpp"
#include "target.hpp"

/// Folders of the Open Graph Benchmark. An input is all files of one: a line "=== NAME", then the
/// text of the file.
namespace tessera::fuzz {
namespace {

constexpr std::string_view heading = "=== ";
constexpr const char* names[] = {
    "raw/edge.csv",       "raw/num-node-list.csv", "raw/node-feat.csv", "raw/node-label.csv",
    "split/by/train.csv", "split/by/valid.csv",    "split/by/test.csv"};

std::map<std::string, std::string, std::less<>> taken_apart(std::string_view input) {
  std::map<std::string, std::string, std::less<>> files;
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

/// A folder in memory. Files that stay the same from one input to the next are left alone.
class Folder {
 public:
  Folder() : path_(memory_path("ogb")) {
    std::filesystem::create_directories(path_ / "raw");
    std::filesystem::create_directories(path_ / "split" / "by");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string holding(std::string_view input) {
    auto wanted = taken_apart(input);
    for (const char* const name : names) {
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
  std::filesystem::path path_;
  std::map<std::string, std::string, std::less<>> held_;
};

}  // namespace

std::vector<std::string> seeds() {
  return {
      "=== raw/edge.csv\n0,1\n1,2\n2,0\n=== raw/num-node-list.csv\n3\n=== raw/node-feat.csv\n"
      "1,2.5\n-1e3,0\n.5,7\n=== raw/node-label.csv\n0\n1\n0\n=== split/by/train.csv\n0\n"
      "=== split/by/valid.csv\n1\n=== split/by/test.csv\n2\n",
      "=== raw/edge.csv\n0,1\r\n1,0\r\n=== raw/num-node-list.csv\n2",
      "=== raw/edge.csv\n0,1\n=== raw/num-node-list.csv\n2\n=== raw/node-label.csv\n0,1,1\n1,1,0"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  static Folder folder;
  const std::string path = folder.holding(input);
  return expect_words([&] { io::read_ogb(path).validate(); });
}

}  // namespace tessera::fuzz
