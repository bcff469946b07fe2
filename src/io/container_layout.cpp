// SPDX-License-Identifier: Apache-2.0
#include "io/container_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/array.hpp"
#include "io/checksum.hpp"
#include "io/little_endian.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t alignment = 64;
constexpr std::size_t header_bytes = 64;
/// Magic, version and checksum come before what the checksum covers.
constexpr std::size_t checked_from = 16;
constexpr std::size_t reserved_from = 36;
constexpr std::size_t entry_alignment = 8;

constexpr std::int64_t round_up(std::int64_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

std::string encode_entry(const Section& section) {
  std::string entry;
  put_little_endian(entry, static_cast<std::uint16_t>(section.name.size()),
                    static_cast<std::uint8_t>(section.type.size()),
                    static_cast<std::uint8_t>(section.shape.size()), section.crc, section.offset,
                    section.bytes);
  for (const std::int64_t extent : section.shape) put_little_endian(entry, extent);
  entry += section.type + section.name;
  entry.resize((entry.size() + entry_alignment - 1) / entry_alignment * entry_alignment);
  return entry;
}

std::string encode_table(const std::vector<Section>& sections) {
  std::string table;
  for (const Section& section : sections) table += encode_entry(section);
  return table;
}

std::int64_t end_of(const std::vector<Section>& sections, std::int64_t table_bytes) {
  return sections.empty() ? static_cast<std::int64_t>(header_bytes) + table_bytes
                          : sections.back().offset + sections.back().bytes;
}

/// Cuts values off the front of the table and says so when it ends early.
class TableReader {
 public:
  TableReader(const InputFile& file, std::span<const std::byte> table)
      : file_(file), rest_(table) {}

  Section next() {
    const std::size_t before = rest_.size();
    Section section;
    const auto name_length = number<std::uint16_t>();
    const auto type_length = number<std::uint8_t>();
    const auto dimensions = number<std::uint8_t>();
    section.crc = number<std::uint32_t>();
    section.offset = number<std::int64_t>();
    section.bytes = number<std::int64_t>();
    for (int i = 0; i < dimensions; ++i) section.shape.push_back(number<std::int64_t>());
    section.type = text(type_length);
    section.name = text(name_length);
    while ((before - rest_.size()) % entry_alignment != 0) {
      if (number<std::uint8_t>() != 0) damaged(file_.path(), "the table of sections is malformed");
    }
    return section;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t length) {
    if (length > rest_.size()) damaged(file_.path(), "the table of sections ends early");
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }
  template <class T>
  T number() {
    return get_little_endian<T>(take(sizeof(T)), 0);
  }
  std::string text(std::size_t length) {
    const auto bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), length};
  }

  const InputFile& file_;
  std::span<const std::byte> rest_;
};

/// The fields of the fixed header after magic and version, which have been checked.
struct FixedHeader {
  std::uint32_t crc = 0;
  std::int64_t file_bytes = 0;
  std::int64_t table_bytes = 0;
  std::uint32_t sections = 0;
};

FixedHeader check_fixed_header(const InputFile& file, std::span<const std::byte> header) {
  const auto version = get_little_endian<std::uint32_t>(header, 8);
  if (version != container_version) {
    throw Error(ErrorCode::unsupported,
                fmt::format("version {} of the container, but this program reads version {}",
                            version, container_version),
                file.path(),
                "use a newer tessera, or convert the file to .npz with the one that wrote it");
  }
  const FixedHeader fixed{
      get_little_endian<std::uint32_t>(header, 12), get_little_endian<std::int64_t>(header, 16),
      get_little_endian<std::int64_t>(header, 24), get_little_endian<std::uint32_t>(header, 32)};
  if (fixed.file_bytes != file.size()) {
    damaged(file.path(),
            fmt::format("has {} bytes, but its header says {}", file.size(), fixed.file_bytes));
  }
  if (fixed.table_bytes < 0 ||
      fixed.table_bytes > file.size() - static_cast<std::int64_t>(header_bytes)) {
    damaged(file.path(), "the table of sections lies outside the file");
  }
  return fixed;
}

void check_zero(const InputFile& file, std::int64_t begin, std::int64_t end) {
  std::byte gap[alignment];
  const auto bytes = std::span(gap).first(static_cast<std::size_t>(end - begin));
  file.read(begin, bytes);
  if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{}; })) {
    damaged(file.path(),
            fmt::format("the bytes between sections, from {} on, are not zero", begin));
  }
}

void check_sections(const InputFile& file, const std::vector<Section>& sections,
                    std::int64_t table_bytes) {
  std::set<std::string_view> names;
  std::int64_t end = static_cast<std::int64_t>(header_bytes) + table_bytes;
  for (const Section& section : sections) {
    const std::string where = file.path() + ": section '" + section.name + "'";
    if (!names.insert(section.name).second) damaged(file.path(), "two sections have one name");
    const ElementType type = parse_element_type(section.type, where);
    if (section.offset != round_up(end) || section.offset > file.size() || section.bytes < 0 ||
        section.bytes > file.size() - section.offset) {
      damaged(where, "is not where it must be");
    }
    if (array_bytes(section.shape, type, where) != section.bytes ||
        type.native_name() != section.type) {
      damaged(where, "type, shape and length do not fit together");
    }
    check_zero(file, end, section.offset);
    end = section.offset + section.bytes;
  }
  if (end != file.size()) damaged(file.path(), "goes on after its last section");
}

}  // namespace

void place_sections(std::vector<Section>& sections) {
  std::int64_t end = static_cast<std::int64_t>(header_bytes) + std::ssize(encode_table(sections));
  for (Section& section : sections) {
    section.offset = round_up(end);
    end = section.offset + section.bytes;
  }
}

std::string encode_container_header(const std::vector<Section>& sections) {
  for (const Section& section : sections) {
    if (section.name.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw Error(ErrorCode::invalid_argument, "the name of an array is longer than 65535 bytes",
                  section.name.substr(0, 32), "use a shorter name");
    }
  }
  const std::string table = encode_table(sections);
  std::string checked;
  put_little_endian(checked, end_of(sections, std::ssize(table)),
                    static_cast<std::int64_t>(table.size()),
                    static_cast<std::uint32_t>(sections.size()));
  checked.resize(header_bytes - checked_from);
  checked += table;
  std::string header(container_magic);
  put_little_endian(header, container_version, Crc32(bytes_of(checked)).value());
  return header + checked;
}

bool begins_as_container(const InputFile& file) {
  if (file.size() < std::ssize(container_magic)) return false;
  std::array<std::byte, container_magic.size()> first{};
  file.read(0, first);
  return std::memcmp(first.data(), container_magic.data(), first.size()) == 0;
}

std::vector<Section> read_container_header(const InputFile& file) {
  if (!begins_as_container(file)) {
    throw Error(ErrorCode::bad_data, "is not a Tessera container", file.path(),
                "give a file that tessera wrote with the ending .tsr");
  }
  if (file.size() < static_cast<std::int64_t>(header_bytes)) {
    damaged(file.path(), "is too short for a container");
  }
  std::byte header[header_bytes];
  file.read(0, header);
  const FixedHeader fixed = check_fixed_header(file, header);
  Buffer<std::byte> table(fixed.table_bytes);
  file.read(header_bytes, table.span());
  Crc32 crc{std::span(header).subspan(checked_from)};
  crc.add(table.span());
  if (crc.value() != fixed.crc) damaged(file.path(), "the checksum of the header does not match");
  if (std::any_of(header + reserved_from, header + header_bytes,
                  [](std::byte b) { return b != std::byte{}; })) {
    damaged(file.path(), "reserved bytes of the header are not zero");
  }
  std::vector<Section> sections;
  TableReader reader(file, table.span());
  while (!reader.at_end()) sections.push_back(reader.next());
  if (sections.size() != fixed.sections) {
    damaged(file.path(), fmt::format("lists {} sections, but its header says {}", sections.size(),
                                     fixed.sections));
  }
  check_sections(file, sections, fixed.table_bytes);
  return sections;
}

}  // namespace tessera::io
