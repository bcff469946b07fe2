// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// What targets share.
namespace tessera::fuzz {

/// A file in memory with these bytes, under a name that readers can open.
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

}  // namespace tessera::fuzz
