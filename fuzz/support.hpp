// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

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

/// What `write` puts into a file of this ending.
std::string written(const std::string& ending,
                    const std::function<void(const std::string& path)>& write);

/// Ends the process where `work` throws anything but an error in words.
void expect_words(const std::function<void()>& work);

/// Bytes changed, moved, cut or repeated anywhere.
std::string mutated_bytes(std::string input, std::uint64_t number);

/// A container whose lines, names, types, shapes and bytes have been changed, with checksums that
/// are right again. `fallback` is used where the input is no container.
std::string mutated_container(const std::string& input, std::uint64_t number,
                              const std::string& fallback);

}  // namespace tessera::fuzz
