// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checksum.hpp"
#include "io/deflate.hpp"
#include "io/file.hpp"

namespace tessera::io {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

/// One member of a zip file, as its directory describes it.
struct ZipEntry {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  std::uint32_t crc = 0;
  std::int64_t packed_size = 0;
  std::int64_t size = 0;
  std::int64_t header_offset = 0;
  std::int64_t data_offset = 0;
};

/// Reads the directory (ZIP64 included) and checks all of it against the file: every member lies
/// inside the file, apart from the others, under a plain name of its own (member_name.hpp), and is
/// no larger than its packed bytes can hold.
std::vector<ZipEntry> read_zip_directory(const InputFile& file);

/// The bytes of one member, front to back.
class ZipEntryReader {
 public:
  ZipEntryReader(const InputFile& file, const ZipEntry& entry);

  std::int64_t remaining() const noexcept { return entry_.size - produced_; }
  const std::string& where() const noexcept { return where_; }

  /// Fills `out`; asking for more than remains is `bad_data`. The last byte also checks the CRC.
  void read(std::span<std::byte> out);

 private:
  void read_stored(std::span<std::byte> out);
  void read_deflated(std::span<std::byte> out);
  /// Reads on when all packed bytes so far are used; false at the end of the member.
  bool refill();
  std::size_t inflate_some(std::span<std::byte> out);
  void check_end();

  const InputFile& file_;
  const ZipEntry& entry_;
  std::string where_;
  std::int64_t consumed_ = 0;
  std::int64_t produced_ = 0;
  Crc32 crc_;
  std::optional<Inflater> inflater_;
  Buffer<std::byte> window_;
  std::span<const std::byte> unread_;
  bool stream_ended_ = false;
};

/// Writes members one after the other, deflated, and then the directory.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}

  void add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  void finish();

 private:
  AtomicFile& file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace tessera::io
