// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tessera/core/error.hpp"

#include "io/little_endian.hpp"
#include "io/zip.hpp"
#include "io/zip_layout.hpp"

namespace tessera::fuzz {
namespace {

/// Names and unpacked bytes.
using Members = std::vector<std::pair<std::string, std::string>>;

Members unpacked(const std::string& input) {
  const MemoryFile memory(input);
  const io::InputFile file(memory.path());
  const std::vector<io::ZipEntry> entries = io::read_zip_directory(file);
  Members members;
  for (const io::ZipEntry& entry : entries) {
    std::string bytes(static_cast<std::size_t>(entry.size), '\0');
    io::ZipEntryReader(file, entry).read(std::as_writable_bytes(std::span(bytes)));
    members.emplace_back(entry.name, std::move(bytes));
  }
  return members;
}

void put_description(std::string& out, const std::string& name, const std::string& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  io::put_little_endian(out, io::zip::version_plain);
  io::put_little_endian(out, std::uint32_t{0});
  io::put_little_endian(out, std::uint16_t{0});
  io::put_little_endian(out, io::zip::no_date);
  io::put_little_endian(out, io::Crc32(io::bytes_of(bytes)).value());
  io::put_little_endian(out, size);
  io::put_little_endian(out, size);
  io::put_little_endian(out, static_cast<std::uint16_t>(name.size()));
  io::put_little_endian(out, std::uint16_t{0});
}

/// Nothing is packed: that takes longest, and readers have seen it in the seeds.
std::string packed(const Members& members) {
  std::string out;
  std::string directory;
  for (const auto& [name, bytes] : members) {
    const auto offset = static_cast<std::uint32_t>(out.size());
    io::put_little_endian(out, io::zip::local_header_mark);
    put_description(out, name, bytes);
    out += name + bytes;
    io::put_little_endian(directory, io::zip::directory_entry_mark);
    io::put_little_endian(directory, io::zip::version_plain);
    put_description(directory, name, bytes);
    directory.append(10, '\0');
    io::put_little_endian(directory, offset);
    directory += name;
  }
  const auto begin = static_cast<std::uint32_t>(out.size());
  const auto count = static_cast<std::uint16_t>(members.size());
  out += directory;
  io::put_little_endian(out, io::zip::directory_end_mark);
  io::put_little_endian(out, std::uint32_t{0});
  io::put_little_endian(out, count);
  io::put_little_endian(out, count);
  io::put_little_endian(out, static_cast<std::uint32_t>(directory.size()));
  io::put_little_endian(out, begin);
  io::put_little_endian(out, std::uint16_t{0});
  return out;
}

void change(Members& members, Draw& draw) {
  const std::size_t place = draw.below(members.size());
  std::string& bytes = members[place].second;
  switch (draw.below(12)) {
    case 0: members.erase(members.begin() + static_cast<std::ptrdiff_t>(place)); break;
    case 1: members[place].first = members[draw.below(members.size())].first; break;
    case 2: bytes = members[draw.below(members.size())].second; break;
    case 3: members.push_back(members[place]); break;
    case 4: members[place].first = mutated_bytes(members[place].first, draw.next()); break;
    case 5:
    case 6: {  // numbers behind the header of the array
      const std::size_t begin = std::min<std::size_t>(bytes.size(), 128);
      if (begin < bytes.size()) {
        bytes[begin + draw.below(bytes.size() - begin)] = static_cast<char>(draw.next());
      }
      break;
    }
    default: bytes = mutated_bytes(bytes, draw.next());
  }
}

}  // namespace

std::string mutated_archive(const std::string& input, std::uint64_t number,
                            const std::vector<std::string>& seeds) {
  if (number % 4 == 0) return mutated_bytes(input, number);
  static const std::vector<Members> known = [&] {
    std::vector<Members> all;
    for (const std::string& seed : seeds) all.push_back(unpacked(seed));
    return all;
  }();
  const auto seed = std::find(seeds.begin(), seeds.end(), input);
  Members members;
  if (seed != seeds.end()) {
    members = known[static_cast<std::size_t>(seed - seeds.begin())];
  } else {
    try {
      members = unpacked(input);
    } catch (const Error&) {
      members = known[number % known.size()];
    }
  }
  Draw draw(number);
  for (std::uint64_t i = 0; i <= number % 3 && !members.empty(); ++i) change(members, draw);
  return packed(members);
}

}  // namespace tessera::fuzz
