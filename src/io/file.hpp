// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>

#include "tessera/core/memory.hpp"
#include "tessera/core/shared_array.hpp"

namespace tessera::io {

/// What to do about a file that contradicts itself.
inline constexpr const char* damaged_file_fix =
    "the file is damaged or cut short: copy or make it again";

/// Throws `bad_data` for such a one, or for the part of it that is at `where`.
[[noreturn]] void damaged(const std::string& where, const std::string& problem);

/// Throws `io` with what the system says of errno `reason`.
[[noreturn]] void system_failure(const std::string& attempt, const std::string& path, int reason,
                                 const std::string& fix);

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  int number() const noexcept { return number_; }
  /// False if the system reports a write it could not finish.
  bool close() noexcept;

 private:
  int number_;
};

/// A regular file that is not empty, opened for reading. Any number of threads may read at once.
class InputFile {
 public:
  explicit InputFile(std::string path);

  const std::string& path() const noexcept { return path_; }
  std::int64_t size() const noexcept { return size_; }

  /// Fills `out` with the bytes at `offset`; `bad_data` if the file ends before.
  void read(std::int64_t offset, std::span<std::byte> out) const;

  /// Throws `io` where the file has another size or time than when it was opened: for those who
  /// read it twice.
  void require_unchanged() const;

  /// The whole file, read by all threads.
  Buffer<std::byte> read_all() const;

  /// The whole file as memory; stays mapped as long as the result or a copy of it lives.
  SharedArray<std::byte> map() const;

 private:
  std::string path_;
  Descriptor descriptor_;
  std::int64_t size_ = 0;
  std::timespec changed_{};
};

/// Writes a file that appears whole or not at all (tessera/io/writing.hpp): `commit` puts it into
/// its place. Until then it has a name of its own beside that, ".tessera-PID-NUMBER.tmp", and is
/// locked as long as its process lives, which tells it from those that were left behind. Without
/// `commit` nothing is left.
class AtomicFile {
 public:
  /// Also removes what killed processes have left in the folder, once for each folder.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  std::int64_t size() const noexcept { return size_; }
  void commit();

 private:
  bool take_place();

  std::string path_;
  std::string name_;
  Descriptor descriptor_;
  std::int64_t size_ = 0;
};

/// A name that is removed where the program ends before its work does (`abandon_files`).
void remember_temporary(const std::string& name);
/// Removes it now.
void remove_temporary(const std::string& name);

/// The last part of a path without the ending of its format: "a/cora.npz" gives "cora".
std::string stem_of(const std::string& path);

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace tessera::io
