// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/container.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/checksum.hpp"
#include "io/container_layout.hpp"
#include "io/dataset_arrays.hpp"

namespace tessera::io {
namespace {

/// Sections of arrays Tessera has no use for carry this before their name, so that they never meet
/// a name with a meaning.
constexpr std::string_view extra_prefix = "extra:";

/// One section, read by all threads: each checks its part while it is in the cache.
class SectionReader final : public ArrayReader {
 public:
  SectionReader(const InputFile& file, const Section& section, SharedArray<std::byte> mapped)
      : ArrayReader(section.name, file.path() + ": section '" + section.name + "'", section.type,
                    section.shape),
        file_(file),
        section_(section),
        mapped_(std::move(mapped)) {}

  SharedArray<std::byte> bytes() override {
    if (mapped_.empty()) return ArrayReader::bytes();
    const auto owner = std::make_shared<const SharedArray<std::byte>>(mapped_);
    const SharedArray<std::byte> bytes(owner, mapped_.data() + section_.offset, section_.bytes);
    check(parallel_crc32(bytes.span()));
    return bytes;
  }

  void copy_to(std::byte* out) override {
    constexpr std::int64_t grain = 1 << 20;
    check(parallel_reduce(
        section_.bytes, grain, Crc32(),
        [&](std::int64_t begin, std::int64_t end) {
          const std::span<std::byte> part(out + begin, static_cast<std::size_t>(end - begin));
          file_.read(section_.offset + begin, part);
          return Crc32(part);
        },
        [](Crc32 sum, const Crc32& next) {
          sum.join(next);
          return sum;
        }));
  }

 private:
  void check(const Crc32& crc) const {
    if (crc.value() != section_.crc) {
      throw Error(ErrorCode::bad_data, "the checksum does not match", where(), damaged_file_mend);
    }
  }

  const InputFile& file_;
  const Section& section_;
  SharedArray<std::byte> mapped_;
};

/// What the container holds besides the arrays that all formats share.
struct OwnParts {
  SharedArray<EdgeOffset> row_offsets;
  SharedArray<VertexId> col_indices;
  std::int64_t num_cols = -1;
  std::int64_t edges_stored = -1;
  std::string name;
};

struct OwnKind {
  std::string_view name;
  void (*take)(OwnParts&, ArrayReader&);
  ExtraArray (*give)(const Dataset&);
};

std::string read_text(ArrayReader& array) {
  if (array.type() != type_name<std::uint8_t>()) array.reject("is not a text");
  const SharedArray<std::byte> bytes = array.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

ExtraArray stored_text(const std::string& text) {
  return stored(SharedArray<std::uint8_t>(std::vector<std::uint8_t>(text.begin(), text.end())));
}

const OwnKind own_kinds[] = {
    {"name", [](OwnParts& p, ArrayReader& a) { p.name = read_text(a); },
     [](const Dataset& d) { return stored_text(d.name); }},
    {"edges_stored", [](OwnParts& p, ArrayReader& a) { p.edges_stored = read_integer(a); },
     [](const Dataset& d) { return stored(d.edges_stored); }},
    {"num_cols", [](OwnParts& p, ArrayReader& a) { p.num_cols = read_integer(a); },
     [](const Dataset& d) { return stored(std::int64_t{d.graph.num_cols()}); }},
    {"row_offsets", [](OwnParts& p, ArrayReader& a) { p.row_offsets = read_vector<EdgeOffset>(a); },
     [](const Dataset& d) { return stored(d.graph.row_offsets()); }},
    {"col_indices", [](OwnParts& p, ArrayReader& a) { p.col_indices = read_vector<VertexId>(a); },
     [](const Dataset& d) { return stored(d.graph.col_indices()); }},
};

void take_section(const Section& section, ArrayReader& array, OwnParts& own, DatasetParts& parts) {
  const auto* const kind = std::find_if(std::begin(own_kinds), std::end(own_kinds),
                                        [&](const OwnKind& k) { return k.name == section.name; });
  if (kind != std::end(own_kinds)) {
    kind->take(own, array);
  } else if (is_dataset_array(section.name)) {
    take_dataset_array(parts, array);
  } else if (section.name.starts_with(extra_prefix)) {
    take_extra(parts, section.name.substr(extra_prefix.size()), array);
  } else {
    throw Error(ErrorCode::unsupported, "is not known to this program", array.where(),
                "use a newer tessera");
  }
}

Graph build_graph(const OwnParts& own, const SharedArray<float>& values, const InputFile& file) {
  if (own.num_cols < 0 || own.row_offsets.empty()) {
    throw Error(ErrorCode::bad_data, "holds no graph", file.path(), damaged_file_mend);
  }
  const VertexId rows = checked_vertex_count(own.row_offsets.size() - 1, file.size(),
                                             file.path() + ": section 'row_offsets'");
  const VertexId cols =
      checked_vertex_count(own.num_cols, file.size(), file.path() + ": section 'num_cols'");
  return {rows, cols, own.row_offsets, own.col_indices, values};
}

std::vector<std::pair<std::string, ExtraArray>> all_arrays(const Dataset& dataset) {
  std::vector<std::pair<std::string, ExtraArray>> arrays;
  auto shared = arrays_to_write(dataset);
  for (const OwnKind& kind : own_kinds) arrays.emplace_back(kind.name, kind.give(dataset));
  std::move(shared.begin(), shared.end(), std::back_inserter(arrays));
  for (auto& [name, array] : extras_to_write(dataset)) {
    arrays.emplace_back(std::string(extra_prefix) + name, std::move(array));
  }
  return arrays;
}

void pad_to(AtomicFile& file, std::int64_t offset) {
  file.write(bytes_of(std::string(static_cast<std::size_t>(offset - file.size()), '\0')));
}

}  // namespace

Dataset read_container(const std::string& path, const ReadOptions& options) {
  const InputFile file(path);
  const std::vector<Section> sections = read_container_header(file);
  const SharedArray<std::byte> mapped = options.map ? file.map() : SharedArray<std::byte>();
  OwnParts own;
  DatasetParts parts;
  for (const Section& section : sections) {
    report(options.progress, "reading", section.offset, file.size());
    SectionReader array(file, section, mapped);
    take_section(section, array, own, parts);
  }
  Graph graph = build_graph(own, parts.values, file);
  parts.dataset.name = std::move(own.name);
  parts.dataset.edges_stored = own.edges_stored;
  return assemble(std::move(parts), std::move(graph), path, options);
}

void write_container(const Dataset& dataset, const std::string& path, const Progress& progress) {
  const auto arrays = all_arrays(dataset);
  std::vector<Section> sections;
  for (const auto& [name, array] : arrays) {
    sections.push_back({name, array.type, array.shape, array.bytes.size(),
                        parallel_crc32(array.bytes.span()).value(), 0});
  }
  place_sections(sections);
  AtomicFile file(path);
  file.write(bytes_of(encode_container_header(sections)));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    report(progress, "writing", file.size(), sections.back().offset + sections.back().bytes);
    pad_to(file, sections[i].offset);
    file.write(arrays[i].second.bytes.span());
  }
  file.commit();
}

}  // namespace tessera::io
