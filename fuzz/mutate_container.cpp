// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support.hpp"
#include "tessera/core/error.hpp"

#include "io/checksum.hpp"
#include "io/sections.hpp"

namespace tessera::fuzz {
namespace {

using Arrays = std::vector<io::NamedArray>;

Arrays taken_apart(const std::string& input) {
  const MemoryFile memory(input);
  const io::InputFile file(memory.path());
  Arrays arrays;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    arrays.emplace_back(section.name, io::read_as_is(array));
  }
  return arrays;
}

/// What `write_sections` would write, also of arrays that it would not be given.
std::string put_together(const Arrays& arrays) {
  std::vector<io::Section> sections;
  for (const auto& [name, array] : arrays) {
    sections.push_back({name, array.type, array.shape, array.bytes.size(),
                        io::Crc32(array.bytes.span()).value(), 0});
  }
  io::place_sections(sections);
  std::string text = io::encode_container_header(sections);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    text.resize(static_cast<std::size_t>(sections[i].offset));
    const SharedArray<std::byte>& bytes = arrays[i].second.bytes;
    text.append(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::size_t>(bytes.size()));
  }
  return text;
}

constexpr const char* odd_values[] = {"0",
                                      "1",
                                      "2",
                                      "-1",
                                      "4294967296",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "18446744073709551616",
                                      "1e308",
                                      "nan",
                                      "inf",
                                      "-0.0",
                                      "true",
                                      "none",
                                      "",
                                      "gat",
                                      "cheb",
                                      "agnn",
                                      "accuracy",
                                      "roc_auc",
                                      "sum"};
constexpr const char* odd_types[] = {"<f4", "<f8", "<i4", "<i8", "|u1", "|b1", "|S0", "<U3", "<f2"};
constexpr std::int64_t odd_extents[] = {0, 1, 2, 3, 7, 1 << 20, std::int64_t{1} << 40, -1};

class Mutation {
 public:
  Mutation(Arrays arrays, std::uint64_t number) : arrays_(std::move(arrays)), draw_(number) {}

  Arrays made(std::uint64_t changes) {
    for (std::uint64_t i = 0; i < changes && !arrays_.empty(); ++i) change();
    return std::move(arrays_);
  }

 private:
  std::size_t below(std::size_t limit) { return draw_.below(limit); }
  template <class T, std::size_t N>
  const T& any(const T (&choices)[N]) {
    return choices[below(N)];
  }
  io::NamedArray& any_array() { return arrays_[below(arrays_.size())]; }

  void change() {
    switch (below(11)) {
      case 0:
      case 1:
      case 2: change_line(); break;
      case 3:
      case 4: change_bytes(any_array().second); break;
      case 5: change_shape(any_array().second); break;
      case 6: any_array().second.type = any(odd_types); break;
      case 7: change_name(any_array().first); break;
      case 8:
        arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(below(arrays_.size())));
        break;
      case 9: {
        const std::size_t other = below(arrays_.size());
        if (other > 0) std::swap(arrays_[0], arrays_[other]);
        break;
      }
      default: any_array().second = ExtraArray(any_array().second);
    }
  }

  /// A section of text is lines "name = value".
  void change_line() {
    std::vector<ExtraArray*> texts;
    for (auto& [name, array] : arrays_) {
      if (array.type == "|u1" && array.bytes.size() > 0) texts.push_back(&array);
    }
    if (texts.empty()) return;
    ExtraArray& array = *texts[below(texts.size())];
    std::string text(reinterpret_cast<const char*>(array.bytes.data()),
                     static_cast<std::size_t>(array.bytes.size()));
    const std::size_t before = text.rfind('\n', below(text.size()));
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t sign = text.find(" = ", begin);
    switch (below(5)) {
      case 0: text.erase(begin, end - begin + 1); break;
      case 1: text.insert(begin, text.substr(begin, end - begin) + "\n"); break;
      case 2: text[begin + below(end - begin)] = static_cast<char>(draw_.next()); break;
      default:
        if (sign != std::string::npos && sign < end) {
          text.replace(sign + 3, end - sign - 3, any(odd_values));
        }
    }
    array = io::stored_text(text);
  }

  void change_bytes(ExtraArray& array) {
    std::vector<std::byte> bytes(array.bytes.begin(), array.bytes.end());
    if (bytes.empty()) return;
    const std::size_t place = below(bytes.size());
    const double values[] = {0.0, 1.0, -1.0, 0.5, 1e308, __builtin_inf(), __builtin_nan("")};
    const double value = any(values);
    if (below(2) == 0 && place + sizeof(value) <= bytes.size()) {
      std::memcpy(bytes.data() + place / sizeof(value) * sizeof(value), &value, sizeof(value));
    } else {
      bytes[place] = static_cast<std::byte>(draw_.next());
    }
    array.bytes = std::move(bytes);
  }

  /// The bytes follow the shape where they are not too many.
  void change_shape(ExtraArray& array) {
    if (array.shape.empty() || below(8) == 0) {
      array.shape.push_back(any(odd_extents));
    } else {
      array.shape[below(array.shape.size())] = any(odd_extents);
    }
    const std::int64_t size = array.type.ends_with('8') ? 8 : array.type.ends_with('4') ? 4 : 1;
    std::int64_t bytes = size;
    for (const std::int64_t extent : array.shape) {
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > (1 << 20)) return;
    }
    std::vector<std::byte> content(array.bytes.begin(), array.bytes.end());
    content.resize(static_cast<std::size_t>(bytes));
    array.bytes = std::move(content);
  }

  void change_name(std::string& name) {
    if (below(2) == 0) {
      name = any_array().first;
    } else if (!name.empty()) {
      name[below(name.size())] = "0123456789:.-x"[below(14)];
    }
  }

  Arrays arrays_;
  Draw draw_;
};

/// Seeds are taken apart once: that takes longer than to change them.
Arrays arrays_of(const std::string& input, std::uint64_t number,
                 const std::vector<std::string>& seeds) {
  static const std::map<std::string, Arrays> known = [&] {
    std::map<std::string, Arrays> all;
    for (const std::string& seed : seeds) all.emplace(seed, taken_apart(seed));
    return all;
  }();
  const auto found = known.find(input);
  if (found != known.end()) return found->second;
  try {
    return taken_apart(input);
  } catch (const Error&) {
    return known.at(seeds[number % seeds.size()]);
  }
}

}  // namespace

std::string mutated_container(const std::string& input, std::uint64_t number,
                              const std::vector<std::string>& seeds) {
  if (number % 16 == 0) return mutated_bytes(input, number);
  return put_together(Mutation(arrays_of(input, number, seeds), number).made(1 + number % 3));
}

}  // namespace tessera::fuzz
