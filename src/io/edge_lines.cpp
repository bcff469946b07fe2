// SPDX-License-Identifier: Apache-2.0
#include "io/edge_lines.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace tessera::io {
namespace {

constexpr std::size_t shown_bytes = 40;

[[noreturn]] void no_number(const char* at, std::string_view field) {
  if (field.empty()) throw LineProblem{at, "has fewer than two ids", "give a source and a target"};
  throw LineProblem{at, fmt::format("'{}' is no number of a vertex", field.substr(0, shown_bytes)),
                    "give integers, or use --ids names where ids are texts"};
}

}  // namespace

const char* NumberedVertices::read(const char* at, const char* end, const FieldScanner& fields,
                                   std::string& scratch, VertexId& vertex) const {
  std::int64_t number = 0;
  const char* stop = scan_integer(at, end, number);
  if (stop == nullptr || (stop != end && !fields.ends(*stop))) {
    std::string_view field;
    stop = fields.scan(at, end, scratch, field);
    const char* const last = field.data() + field.size();
    if (scan_integer(field.data(), last, number) != last) no_number(at, field);
  }
  if (number < base) {
    const bool zero = number == 0;
    throw LineProblem{
        at,
        zero ? "vertex 0 in a list that counts from 1"
             : fmt::format("vertex {} is negative", number),
        zero ? "use --base 0" : "use --ids names where ids are not numbers of vertices"};
  }
  if (number - base > limit && known) {
    throw LineProblem{at, fmt::format("vertex {} is not within {} to {}", number, base, limit)};
  }
  if (number - base > limit) {
    throw LineProblem{
        at, fmt::format("vertex {}, but a file of this size may name 0 to {}", number, limit),
        "use --ids names, which numbers the ids as they appear"};
  }
  vertex = static_cast<VertexId>(number - base);
  return stop;
}

const char* NamedVertices::read(const char* at, const char* end, const FieldScanner& fields,
                                std::string& scratch, VertexId& vertex) const {
  std::string_view field;
  const char* const stop = fields.scan(at, end, scratch, field);
  vertex = names.find(field);
  if (vertex < 0 && !drop_unknown) {
    if (field.empty())
      throw LineProblem{at, "has an id that is empty", "name both ends of an edge"};
    throw LineProblem{at,
                      fmt::format("vertex '{}' is not in {}", field.substr(0, shown_bytes), origin),
                      "add it there, or use --unknown-ids drop to leave out such edges"};
  }
  return stop;
}

const char* EdgeLines::read_weight(const char* at, const char* end, std::string& scratch,
                                   float& weight) const {
  const FieldScanner& fields = layout_.table.fields;
  std::string_view field;
  const char* stop = nullptr;
  if (at != end && *at != '"') {
    stop = scan_real(
        at, end, [&](char c) { return fields.ends(c); }, weight);
  }
  if (stop == nullptr) {
    stop = fields.scan(at, end, scratch, field);
    const auto value = parse_real(field);
    if (!value) {
      throw LineProblem{at,
                        field.empty() ? "has no weight"
                                      : fmt::format("weight '{}' is no number that fits a 32-bit "
                                                    "float",
                                                    field.substr(0, shown_bytes)),
                        "give every edge a weight, with a decimal point, or use --weight none"};
    }
    weight = *value;
  }
  require_finite(weight, at, "weight", nonfinite_);
  return stop;
}

/// Has what is known of the names in the next lines fetched from memory, and returns where those
/// end. What is wrong with a line is for others to say.
const char* EdgeLines::look_ahead(const char* at, const char* end, const NameIndex& names) const {
  const FieldScanner& fields = layout_.table.fields;
  const std::int64_t last = std::max(layout_.source, layout_.target);
  std::array<std::size_t, 32> hashes;
  std::size_t count = 0;
  std::string scratch;
  while (at != end && count + 2 <= hashes.size()) {
    const char* const line = line_end(at, end);
    try {
      for (std::int64_t column = 0; column <= last && at != nullptr; ++column) {
        std::string_view field;
        at = fields.scan(at, line, scratch, field);
        if (column == layout_.source || column == layout_.target) {
          hashes[count++] = NameIndex::hash_of(field);
        }
        at = fields.next_field(at, line);
      }
    } catch (const LineProblem&) {
    }
    at = line == end ? end : line + 1;
  }
  names.fetch(std::span(hashes).first(count));
  return at;
}

/// `on_line` is called per line with the first field, and returns the place after the last field it
/// has read, of column `last`. `names` is where it looks names up, if it does.
template <class OnField>
void EdgeLines::for_each_line(const TextChunk& chunk, std::int64_t last, const NameIndex* names,
                              OnField&& on_line) const {
  const char* at = chunk.text.data();
  const char* const end = at + chunk.text.size();
  const char* seen = names == nullptr ? end : at;
  while (at != end) {
    if (at >= seen) seen = look_ahead(at, end, *names);
    const char* const begin = skip_blanks(at, end);
    if (is_remark(begin, end)) {
      at = line_end(begin, end);
    } else {
      at = finish_line(on_line(at, end), end, last);
    }
    if (at != end) ++at;
  }
}

void EdgeLines::too_few_columns(const char* at, std::int64_t columns) const {
  throw LineProblem{at, fmt::format("has {} columns instead of {}", columns, layout_.table.columns),
                    "give all lines the same columns"};
}

const char* EdgeLines::finish_line(const char* at, const char* end, std::int64_t column) const {
  const FieldScanner& fields = layout_.table.fields;
  // The pass that reads weights looks at the rest.
  if (layout_.weight > column) return line_end(at, end);
  // Columns that nothing uses are there all the same.
  std::string scratch;
  std::string_view unused;
  for (++column; column < layout_.table.columns; ++column) {
    const char* const next = fields.next_field(at, end);
    if (next == nullptr) too_few_columns(at, column);
    at = fields.scan(next, end, scratch, unused);
  }
  const char* after = fields.skip_padding(at, end);
  // A separator at the end of the line is no column.
  if (after != end && *after == fields.separator()) after = fields.skip_padding(after + 1, end);
  if (after != end && *after != '\n') {
    throw LineProblem{after, fmt::format("has more than {} columns", layout_.table.columns),
                      "give all lines the same columns"};
  }
  return after;
}

namespace {

/// Two small numbers with nothing but a separator between them, as nearly all lines have; null for
/// all others, right or wrong.
const char* scan_plain_pair(const char* at, const char* end, const FieldScanner& fields,
                            const NumberedVertices& vertices, VertexId& first, VertexId& second) {
  std::int64_t numbers[2];
  at = scan_few_digits(at, end, numbers[0]);
  if (at == nullptr || *at == '\n' || (*at != fields.separator() && !fields.by_blanks())) {
    return nullptr;
  }
  if (fields.by_blanks() && !is_blank(*at)) return nullptr;
  at = scan_few_digits(at + 1, end, numbers[1]);
  if (at == nullptr || !fields.ends(*at)) return nullptr;
  for (const std::int64_t number : numbers) {
    if (number < vertices.base || number - vertices.base > vertices.limit) return nullptr;
  }
  first = static_cast<VertexId>(numbers[0] - vertices.base);
  second = static_cast<VertexId>(numbers[1] - vertices.base);
  return at;
}

const NameIndex* names_of(const NumberedVertices&) { return nullptr; }
const NameIndex* names_of(const NamedVertices& vertices) { return &vertices.names; }

/// Names are never plain.
const char* scan_plain_pair(const char*, const char*, const FieldScanner&, const NamedVertices&,
                            VertexId&, VertexId&) {
  return nullptr;
}

}  // namespace

template <class Vertices>
std::int64_t EdgeLines::parse(const TextChunk& chunk, const Vertices& vertices, bool with_values,
                              std::vector<Entry>& out) const {
  const FieldScanner& fields = layout_.table.fields;
  const std::int64_t weight = with_values ? layout_.weight : -1;
  const std::int64_t last = std::max({layout_.source, layout_.target, weight});
  const bool begins_with_pair = layout_.source + layout_.target == 1 && weight <= 2;
  const bool source_first = layout_.source == 0;
  std::string scratch;
  std::int64_t dropped = 0;
  for_each_line(chunk, last, names_of(vertices), [&](const char* at, const char* end) {
    Entry entry{-1, -1, 1};
    const char* const after =
        begins_with_pair
            ? scan_plain_pair(at, end, fields, vertices, source_first ? entry.col : entry.row,
                              source_first ? entry.row : entry.col)
            : nullptr;
    if (after != nullptr && (weight < 0 || *after == fields.separator())) {
      if (weight == 2) {
        at = read_weight(fields.skip_padding(after + 1, end), end, scratch, entry.value);
      } else {
        at = after;
      }
      out.push_back(entry);
      return at;
    }
    for (std::int64_t column = 0;; ++column) {
      at = fields.skip_padding(at, end);
      if (column == layout_.source) {
        at = vertices.read(at, end, fields, scratch, entry.col);
      } else if (column == layout_.target) {
        at = vertices.read(at, end, fields, scratch, entry.row);
      } else if (column == weight) {
        at = read_weight(at, end, scratch, entry.value);
      } else {
        std::string_view skipped;
        at = fields.scan(at, end, scratch, skipped);
      }
      if (column == last) break;
      const char* const next = fields.next_field(at, end);
      if (next == nullptr) too_few_columns(at, column + 1);
      at = next;
    }
    if (entry.row >= 0 && entry.col >= 0) {
      out.push_back(entry);
    } else {
      ++dropped;
    }
    return at;
  });
  return dropped;
}
template std::int64_t EdgeLines::parse(const TextChunk&, const NumberedVertices&, bool,
                                       std::vector<Entry>&) const;
template std::int64_t EdgeLines::parse(const TextChunk&, const NamedVertices&, bool,
                                       std::vector<Entry>&) const;

void EdgeLines::collect(const TextChunk& chunk, NameIndex& names) const {
  const FieldScanner& fields = layout_.table.fields;
  const std::int64_t last = std::max(layout_.source, layout_.target);
  std::string scratch;
  for_each_line(chunk, last, &names, [&](const char* at, const char* end) {
    for (std::int64_t column = 0;; ++column) {
      const std::int64_t place = chunk.offset + (at - chunk.text.data());
      std::string_view field;
      at = fields.scan(at, end, scratch, field);
      if (column == layout_.source || column == layout_.target) {
        if (field.empty()) {
          throw LineProblem{at, "has an id that is empty", "name both ends of an edge"};
        }
        names.add(field, place);
      }
      if (column == last) return at;
      const char* const next = fields.next_field(at, end);
      if (next == nullptr) too_few_columns(at, column + 1);
      at = next;
    }
  });
}

}  // namespace tessera::io
