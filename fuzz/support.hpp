// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// What targets share.
namespace tessera::fuzz {

/// Random numbers that cost next to nothing to begin with.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : next() % limit; }

 private:
  std::uint64_t state_;
};

/// A file in memory with these bytes, under a name that readers can open. Files are used again when
/// they are given back.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// Lowers what files may claim, so that the time goes into reading them.
void expect_small_graphs();

/// A name for a file of this process, in memory where there is a folder for that.
std::string memory_path(const std::string& name);

/// What `write` puts into a file of this ending.
std::string written(const std::string& ending,
                    const std::function<void(const std::string& path)>& write);

/// True where `work` comes to its end, false where it throws an error in words. Anything else that
/// it throws ends the process.
bool expect_words(const std::function<void()>& work);

/// Bytes changed, moved, cut or repeated anywhere.
std::string mutated_bytes(std::string input, std::uint64_t number);

/// A container whose lines, names, types, shapes and bytes have been changed, with checksums that
/// are right again. Where the input is no container, one of the seeds is used. The seeds must be
/// the same ones in every call.
std::string mutated_container(const std::string& input, std::uint64_t number,
                              const std::vector<std::string>& seeds);

/// A zip file whose members have been changed, with checksums that are right again. The seeds must
/// be the same ones in every call.
std::string mutated_archive(const std::string& input, std::uint64_t number,
                            const std::vector<std::string>& seeds);

}  // namespace tessera::fuzz
