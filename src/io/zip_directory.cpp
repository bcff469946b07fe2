// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/little_endian.hpp"
#include "io/member_name.hpp"
#include "io/zip.hpp"
#include "io/zip_layout.hpp"

namespace tessera::io {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void unsupported(const std::string& where, const std::string& problem) {
  throw Error(ErrorCode::unsupported, problem, where, "save it again with numpy.savez_compressed");
}

Buffer<std::byte> read_range(const InputFile& file, std::int64_t offset, std::int64_t length) {
  Buffer<std::byte> bytes(length);
  file.read(offset, bytes.span());
  return bytes;
}

/// Where the directory lies and how many entries it claims.
struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::int64_t end_limit = 0;  ///< it must end at or before this byte
};

/// The end record stands last, before a comment of up to 64 KiB that names its own length.
std::int64_t find_end_record(const InputFile& file, Bytes tail) {
  const std::int64_t tail_start = file.size() - static_cast<std::int64_t>(tail.size());
  for (auto at = static_cast<std::int64_t>(tail.size()) - zip::directory_end_bytes; at >= 0; --at) {
    const auto position = static_cast<std::size_t>(at);
    if (get_little_endian<std::uint32_t>(tail, position) != zip::directory_end_mark) continue;
    const auto comment = get_little_endian<std::uint16_t>(tail, position + 20);
    if (tail_start + at + zip::directory_end_bytes + comment == file.size()) return at;
  }
  damaged(file.path(), "the directory of the zip file is missing");
}

void read_end64(const InputFile& file, std::int64_t locator_offset, Directory& directory) {
  const auto locator = read_range(file, locator_offset, zip::locator64_bytes);
  if (get_little_endian<std::uint32_t>(locator, 0) != zip::locator64_mark) return;
  const auto offset = get_little_endian<std::uint64_t>(locator, 8);
  if (locator_offset < zip::directory_end64_bytes ||
      offset > static_cast<std::uint64_t>(locator_offset - zip::directory_end64_bytes)) {
    damaged(file.path(), "the ZIP64 directory lies outside the file");
  }
  const auto record =
      read_range(file, static_cast<std::int64_t>(offset), zip::directory_end64_bytes);
  if (get_little_endian<std::uint32_t>(record, 0) != zip::directory_end64_mark) {
    damaged(file.path(), "the ZIP64 directory is missing");
  }
  directory.entries = get_little_endian<std::uint64_t>(record, 32);
  directory.size = get_little_endian<std::uint64_t>(record, 40);
  directory.offset = get_little_endian<std::uint64_t>(record, 48);
  directory.end_limit = static_cast<std::int64_t>(offset);
}

Directory locate_directory(const InputFile& file) {
  const std::int64_t tail_bytes =
      std::min<std::int64_t>(file.size(), zip::directory_end_bytes + 0xFFFF);
  if (tail_bytes < zip::directory_end_bytes) damaged(file.path(), "too short for a zip file");
  const auto tail = read_range(file, file.size() - tail_bytes, tail_bytes);
  const std::int64_t at = find_end_record(file, tail);
  const Bytes end = Bytes(tail).subspan(static_cast<std::size_t>(at));
  if (get_little_endian<std::uint16_t>(end, 4) != 0 ||
      get_little_endian<std::uint16_t>(end, 6) != 0) {
    unsupported(file.path(), "the zip file is split over several volumes");
  }
  const std::int64_t end_offset = file.size() - tail_bytes + at;
  Directory directory{get_little_endian<std::uint16_t>(end, 10),
                      get_little_endian<std::uint32_t>(end, 12),
                      get_little_endian<std::uint32_t>(end, 16), end_offset};
  if (end_offset >= zip::locator64_bytes) {
    read_end64(file, end_offset - zip::locator64_bytes, directory);
  }
  const auto limit = static_cast<std::uint64_t>(directory.end_limit);
  if (directory.offset > limit || directory.size > limit - directory.offset ||
      directory.entries > directory.size / zip::directory_entry_bytes) {
    damaged(file.path(), "the directory of the zip file lies outside the file");
  }
  return directory;
}

/// Replaces those of the three numbers that say "see ZIP64" by the ones in the extra field.
void apply_extra64(Bytes extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& offset,
                   const std::string& where) {
  if (size != zip::see64 && packed != zip::see64 && offset != zip::see64) return;
  while (extra.size() >= 4) {
    const auto id = get_little_endian<std::uint16_t>(extra, 0);
    const std::size_t length = get_little_endian<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) break;
    if (id == zip::extra64_id) {
      Bytes field = extra.subspan(4, length);
      for (std::uint64_t* const number : {&size, &packed, &offset}) {
        if (*number != zip::see64) continue;
        if (field.size() < 8) damaged(where, "a ZIP64 size is missing");
        *number = get_little_endian<std::uint64_t>(field, 0);
        field = field.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4 + length);
  }
}

/// Takes one entry off the front of the directory.
ZipEntry take_entry(Bytes& directory, const std::string& path) {
  if (directory.size() < static_cast<std::size_t>(zip::directory_entry_bytes) ||
      get_little_endian<std::uint32_t>(directory, 0) != zip::directory_entry_mark) {
    damaged(path, "the directory of the zip file ends early");
  }
  const std::size_t name_length = get_little_endian<std::uint16_t>(directory, 28);
  const std::size_t extra_length = get_little_endian<std::uint16_t>(directory, 30);
  const std::size_t comment_length = get_little_endian<std::uint16_t>(directory, 32);
  const std::size_t total = static_cast<std::size_t>(zip::directory_entry_bytes) + name_length +
                            extra_length + comment_length;
  if (total > directory.size()) damaged(path, "the directory of the zip file ends early");

  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(directory.data()) + zip::directory_entry_bytes,
                    name_length);
  require_plain_member(entry.name, path, ErrorCode::bad_data);
  const std::string where = path + ": '" + entry.name + "'";
  const auto flags = get_little_endian<std::uint16_t>(directory, 8);
  const auto method = get_little_endian<std::uint16_t>(directory, 10);
  std::uint64_t packed = get_little_endian<std::uint32_t>(directory, 20);
  std::uint64_t size = get_little_endian<std::uint32_t>(directory, 24);
  std::uint64_t offset = get_little_endian<std::uint32_t>(directory, 42);
  entry.crc = get_little_endian<std::uint32_t>(directory, 16);
  apply_extra64(
      directory.subspan(static_cast<std::size_t>(zip::directory_entry_bytes) + name_length,
                        extra_length),
      size, packed, offset, where);
  if ((flags & 1) != 0) unsupported(where, "the array is encrypted");
  if (method != static_cast<std::uint16_t>(ZipMethod::stored) &&
      method != static_cast<std::uint16_t>(ZipMethod::deflated)) {
    unsupported(where, fmt::format("compression method {} is not known here", method));
  }
  entry.method = static_cast<ZipMethod>(method);
  constexpr std::uint64_t limit = std::uint64_t{1} << 62;
  if (packed > limit || size > limit || offset > limit) damaged(where, "a size is out of range");
  entry.packed_size = static_cast<std::int64_t>(packed);
  entry.size = static_cast<std::int64_t>(size);
  entry.header_offset = static_cast<std::int64_t>(offset);
  directory = directory.subspan(total);
  return entry;
}

/// Finds the entry's data behind its local header, and checks that both lie before `limit`.
void locate_data(const InputFile& file, ZipEntry& entry, std::int64_t limit) {
  const std::string where = file.path() + ": '" + entry.name + "'";
  if (entry.header_offset > limit - zip::local_header_bytes) {
    damaged(where, "the array lies outside the file");
  }
  const auto header = read_range(file, entry.header_offset, zip::local_header_bytes);
  if (get_little_endian<std::uint32_t>(header, 0) != zip::local_header_mark) {
    damaged(where, "the array's own header is missing");
  }
  const std::int64_t name_length = get_little_endian<std::uint16_t>(header, 26);
  const std::int64_t extra_length = get_little_endian<std::uint16_t>(header, 28);
  const std::int64_t name_offset = entry.header_offset + zip::local_header_bytes;
  entry.data_offset = name_offset + name_length + extra_length;
  if (entry.data_offset > limit || entry.packed_size > limit - entry.data_offset) {
    damaged(where, "the array lies outside the file");
  }
  const auto name = read_range(file, name_offset, name_length);
  if (!std::equal(name.begin(), name.end(), entry.name.begin(), entry.name.end(),
                  [](std::byte a, char b) { return a == static_cast<std::byte>(b); })) {
    damaged(where, "the array has another name in its own header");
  }
}

void check_sizes(const ZipEntry& entry, const std::string& where) {
  constexpr std::int64_t slack = 64;
  const bool possible = entry.method == ZipMethod::stored
                            ? entry.size == entry.packed_size
                            : entry.size / max_deflate_ratio <= entry.packed_size + slack;
  if (!possible) {
    damaged(where, fmt::format("claims {} bytes, more than its {} packed bytes can hold",
                               entry.size, entry.packed_size));
  }
}

void check_apart(const std::vector<ZipEntry>& entries, const std::string& path) {
  std::vector<const ZipEntry*> by_offset;
  for (const ZipEntry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->header_offset < b->header_offset;
  });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const ZipEntry& before = *by_offset[i - 1];
    if (before.data_offset + before.packed_size > by_offset[i]->header_offset) {
      damaged(path, fmt::format("'{}' and '{}' overlap", before.name, by_offset[i]->name));
    }
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const InputFile& file) {
  const Directory directory = locate_directory(file);
  const auto offset = static_cast<std::int64_t>(directory.offset);
  const auto bytes = read_range(file, offset, static_cast<std::int64_t>(directory.size));
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  for (Bytes rest = bytes; entries.size() < directory.entries;) {
    ZipEntry entry = take_entry(rest, file.path());
    locate_data(file, entry, offset);
    check_sizes(entry, file.path() + ": '" + entry.name + "'");
    if (!names.insert(entry.name).second) {
      damaged(file.path(), "two arrays are named '" + entry.name + "'");
    }
    entries.push_back(std::move(entry));
  }
  check_apart(entries, file.path());
  return entries;
}

}  // namespace tessera::io
