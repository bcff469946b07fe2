// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <map>

#include "io/checksum.hpp"
#include "io/container_layout.hpp"
#include "io/npy.hpp"
#include "support/hostile.hpp"

/// Files that are whole but lie: about sizes, places, types, or in what their arrays hold.
namespace tessera {
namespace {

using test::read_container;
using test::read_npz;
using testing::HasSubstr;
using Arrays = std::map<std::string, ExtraArray>;

template <class T>
ExtraArray vector_of(const std::vector<T>& values) {
  return test::extra_array<T>(std::string(io::type_name<T>()),
                              {static_cast<std::int64_t>(values.size())}, values);
}

ExtraArray number(std::int64_t value) {
  return test::extra_array<std::int64_t>("<i8", {}, {value});
}

std::string text_bytes(const ExtraArray& array) {
  return {reinterpret_cast<const char*>(array.bytes.data()),
          static_cast<std::size_t>(array.bytes.size())};
}

/// Files made of given arrays, well-formed in everything but what the arrays say.
class HostileArrays : public test::HostileFile {
 protected:
  Arrays good() const {
    return {{"row", vector_of<std::int32_t>({0, 1, 2})},
            {"col", vector_of<std::int32_t>({1, 2, 0})},
            {"num_nodes", number(3)}};
  }
  std::string npz(const Arrays& arrays) {
    io::AtomicFile file(file_);
    io::ZipWriter zip(file);
    for (const auto& [name, array] : arrays) {
      const std::string header = io::npy_header(array.type, array.shape);
      const std::span<const std::byte> parts[] = {io::bytes_of(header), array.bytes.span()};
      zip.add(name + ".npy", parts);
    }
    zip.finish();
    file.commit();
    return test::read_file(file_);
  }
  std::string npz_outcome(const Arrays& changes) {
    Arrays arrays = good();
    for (const auto& [name, array] : changes) arrays[name] = array;
    return outcome(npz(arrays), read_npz);
  }

  Arrays good_container() const {
    return {{"row_offsets", vector_of<std::int64_t>({0, 1, 2})},
            {"col_indices", vector_of<std::int32_t>({1, 0})},
            {"num_cols", number(2)}};
  }
  static std::string container(const Arrays& arrays) {
    std::vector<io::Section> sections;
    for (const auto& [name, array] : arrays) {
      sections.push_back({name, array.type, array.shape, array.bytes.size(),
                          io::Crc32(array.bytes.span()).value(), 0});
    }
    io::place_sections(sections);
    std::string bytes = io::encode_container_header(sections);
    for (const io::Section& section : sections) {
      bytes.resize(static_cast<std::size_t>(section.offset));
      bytes += text_bytes(arrays.at(section.name));
    }
    return bytes;
  }
  std::string container_outcome(const Arrays& changes) {
    Arrays arrays = good_container();
    for (const auto& [name, array] : changes) arrays[name] = array;
    return outcome(container(arrays), read_container);
  }
};

TEST_F(HostileArrays, NpzContents) {
  EXPECT_EQ(npz_outcome({}), "no error");
  const auto ids = [](std::vector<std::int64_t> values) { return vector_of(values); };
  EXPECT_THAT(npz_outcome({{"row", ids({0, 1, 3})}}), HasSubstr("row index 3"));
  EXPECT_THAT(npz_outcome({{"col", ids({0, -1, 1})}}), HasSubstr("column index -1"));
  EXPECT_THAT(npz_outcome({{"col", ids({0, 1, 1LL << 32})}}), HasSubstr("'col.npy'"));
  EXPECT_THAT(npz_outcome({{"col", vector_of<std::uint32_t>({0, 1, 0xFFFFFFFF})}}),
              HasSubstr("4294967295"));
  EXPECT_THAT(npz_outcome({{"row", ids({0, 1})}}), HasSubstr("differ in number"));
  EXPECT_THAT(npz_outcome({{"row", vector_of<float>({0, 1, 2})}}), HasSubstr("fractions"));
  EXPECT_THAT(npz_outcome({{"row", test::extra_array<std::int32_t>("<i4", {3, 1}, {0, 1, 2})}}),
              HasSubstr("dimensions"));
  EXPECT_THAT(npz_outcome({{"num_nodes", number(-1)}}), HasSubstr("negative"));
  EXPECT_THAT(npz_outcome({{"num_nodes", number(2)}}), HasSubstr("index 2"));
  EXPECT_THAT(npz_outcome({{"num_nodes", number(1'000'000'000'000'000)}}), HasSubstr("may claim"));
  EXPECT_THAT(npz_outcome({{"num_nodes", number(2'000'000'000)}}), HasSubstr("may claim"));
  EXPECT_THAT(npz_outcome({{"num_nodes", ids({3, 3})}}), HasSubstr("single number"));
  EXPECT_THAT(npz_outcome({{"value", vector_of<float>({1, 2})}}), HasSubstr("2 values"));
  EXPECT_THAT(npz_outcome({{"edge_id", ids({0, 3})}}), HasSubstr("edge_ids[1]"));
  EXPECT_THAT(npz_outcome({{"row_scale", vector_of<float>({1, 2})}}), HasSubstr("row_scale"));
  EXPECT_THAT(npz_outcome({{"y", ids({0, 1})}}), HasSubstr("labels"));
  EXPECT_THAT(npz_outcome({{"y", ids({0, 1, -2})}}), HasSubstr("labels"));
  EXPECT_THAT(npz_outcome({{"train_idx", ids({3})}}), HasSubstr("train"));
  EXPECT_THAT(npz_outcome({{"train_mask", ids({1, 0})}}), HasSubstr("2 entries for 3 vertices"));
  EXPECT_THAT(npz_outcome({{"val_mask", ids({1, 0, 2})}}), HasSubstr("val_mask[2]"));
  EXPECT_THAT(npz_outcome({{"test_mask", ids({1, 0, 0})}, {"test_idx", ids({1})}}),
              HasSubstr("differs from test_idx"));
  EXPECT_THAT(npz_outcome({{"train_mask", ids({1, 0, 0})}, {"val_mask", ids({1, 0, 0})}}),
              HasSubstr("vertex 0"));
  EXPECT_EQ(npz_outcome({{"test_mask", ids({1, 0, 1})}, {"test_idx", ids({2, 0})}}), "no error");
  EXPECT_THAT(npz_outcome({{"graph_id", ids({0, 0, 1LL << 31})}}), HasSubstr("out of range"));
  EXPECT_THAT(npz_outcome({{"x", test::extra_array<float>("<f4", {2, 1}, {0, 1})}}),
              HasSubstr("features"));
  EXPECT_THAT(npz_outcome({{"x", test::extra_array<char>("|S1", {3, 1}, {'a', 'b', 'c'})}}),
              HasSubstr("real number"));
}

TEST_F(HostileArrays, NpzMasksAreTheSplit) {
  const auto truth = [](std::vector<std::uint8_t> values) {
    return test::extra_array<std::uint8_t>("|b1", {3}, std::move(values));
  };
  ASSERT_EQ(npz_outcome({{"train_mask", truth({1, 0, 0})},
                         {"val_mask", truth({0, 0, 1})},
                         {"test_mask", truth({0, 1, 0})}}),
            "no error");
  const Dataset dataset = io::read_npz(file_);
  EXPECT_THAT(dataset.train.span(), testing::ElementsAre(0));
  EXPECT_THAT(dataset.validation.span(), testing::ElementsAre(2));
  EXPECT_THAT(dataset.test.span(), testing::ElementsAre(1));
  EXPECT_TRUE(dataset.extras.empty());
}

TEST_F(HostileArrays, NpzSparseFeatures) {
  const Arrays features{{"x_indptr", vector_of<std::int64_t>({0, 2, 2, 3})},
                        {"x_indices", vector_of<std::int32_t>({4, 1, 2})},
                        {"x_data", vector_of<float>({40, 10, 20})},
                        {"x_dim", number(5)}};
  const auto with = [&](const std::string& name, const ExtraArray& array) {
    Arrays changed = features;
    changed[name] = array;
    return npz_outcome(changed);
  };
  ASSERT_EQ(npz_outcome(features), "no error");
  // SciPy leaves rows unsorted; they are sorted on the way in.
  const auto sparse = std::get<SparseFeatures>(io::read_npz(file_).features);
  EXPECT_THAT(sparse.col_indices().span(), testing::ElementsAre(1, 4, 2));
  EXPECT_THAT(sparse.values().span(), testing::ElementsAre(10, 40, 20));

  EXPECT_THAT(with("x_indptr", vector_of<std::int64_t>({0, 4, 2, 3})), HasSubstr("rise"));
  EXPECT_THAT(with("x_indptr", vector_of<std::int64_t>({0, 1LL << 60, 2, 3})), HasSubstr("rise"));
  EXPECT_THAT(with("x_indptr", vector_of<std::int64_t>({-1, 2, 2, 3})), HasSubstr("rise"));
  EXPECT_THAT(with("x_indptr", vector_of<std::int64_t>({0, 2, 3})), HasSubstr("x_indptr"));
  EXPECT_THAT(with("x_indices", vector_of<std::int32_t>({0, 1, 5})), HasSubstr("5"));
  EXPECT_THAT(with("x_indices", vector_of<std::int32_t>({1, -1, 2})), HasSubstr("-1"));
  EXPECT_THAT(with("x_data", vector_of<float>({1})), HasSubstr("x_data"));
  EXPECT_THAT(with("x_dim", number(1LL << 40)), HasSubstr("x_dim"));
  EXPECT_THAT(with("x_dim", number((1LL << 31) - 1)), HasSubstr("may claim 0 to 16777216"));
  EXPECT_THAT(with("x_dim", number(1LL << 24)), HasSubstr("no error"));
  EXPECT_THAT(with("x", test::extra_array<float>("<f4", {3, 1}, {0, 1, 2})), HasSubstr("twice"));
  EXPECT_THAT(npz_outcome({{"x_dim", number(5)}}), HasSubstr("x_indptr"));
}

TEST_F(HostileArrays, NpzMissingParts) {
  for (const char* name : {"row", "col", "num_nodes"}) {
    Arrays arrays = good();
    arrays.erase(name);
    EXPECT_THAT(outcome(npz(arrays), read_npz), HasSubstr("num_nodes")) << name;
  }
  EXPECT_THAT(outcome(npz({}), read_npz), HasSubstr("no edges"));
}

TEST_F(HostileArrays, NpzEdgeListsAreSourceThenTarget) {
  Arrays arrays{{"src_li", vector_of<std::int64_t>({0, 0})},
                {"dst_li", vector_of<std::int64_t>({2, 1})},
                {"num_nodes", number(3)}};
  ASSERT_EQ(outcome(npz(arrays), read_npz), "no error");
  const Dataset dataset = io::read_npz(file_);
  EXPECT_THAT(dataset.graph.row_offsets().span(), testing::ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(dataset.graph.col_indices().span(), testing::ElementsAre(0, 0));
  EXPECT_EQ(dataset.edges_stored, 2);
}

TEST_F(HostileArrays, NpyHeadersThatLie) {
  const auto with_header = [&](const std::string& type, const std::vector<std::int64_t>& shape) {
    Arrays arrays = good();
    arrays["row"] = {type, shape, arrays["row"].bytes};
    return outcome(npz(arrays), read_npz);
  };
  EXPECT_THAT(with_header("<i4", {1'000'000'000'000'000}), HasSubstr("12 follow"));
  EXPECT_THAT(with_header("<i4", {1LL << 62, 1LL << 62}), HasSubstr("overflows"));
  EXPECT_THAT(with_header("<i4", {1LL << 62, 4, 0}), HasSubstr("overflows"));
  EXPECT_THAT(with_header("<i8", {3}), HasSubstr("24 bytes"));
  EXPECT_THAT(with_header("|O", {3}), HasSubstr("Python objects"));
  EXPECT_THAT(with_header("|O8", {3}), HasSubstr("Python objects"));
  for (const char* type : {"<f16", "<i3", "i4", "", "<", "<i", "<i4x", "<i-4", "<M8[ns]", "|V4",
                           "<U99999999999", "<U9999999"}) {
    EXPECT_THAT(with_header(type, {3}), HasSubstr("not known")) << type;
  }
}

TEST_F(HostileArrays, NpyDictionaries) {
  const std::string where = "here";
  const auto parse = [&](const std::string& text) { io::parse_npy_dictionary(text, where); };
  parse("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }   \n");
  parse("{\"shape\":(),'descr':'<i4','fortran_order':True}");
  parse("{'shape': (2L, 3L), 'descr': '<i4', 'fortran_order': True}");
  for (const char* text :
       {"", "{", "{}", "[]", "{'descr': '<i4', 'fortran_order': False}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'descr': '<i4'}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': '<i4'}",
        "{'descr': '<i4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<i4\\x00', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3,"}) {
    EXPECT_THROW(parse(text), Error) << text;
  }
  std::string deep = "{'descr': '<i4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i) deep += "1,";
  EXPECT_THROW(parse(deep + ")}"), Error);
}

/// Overwrites a number somewhere in a string.
template <class T>
void patch(std::string& bytes, std::size_t position, T value) {
  std::array<char, sizeof(T)> parts;
  std::memcpy(parts.data(), &value, sizeof(T));
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.at(position + i) = parts[i];
}

TEST_F(HostileArrays, ZipDirectoriesThatLie) {
  const std::string bytes = npz(good());
  const std::size_t entry = bytes.find("PK\x01\x02");
  const std::size_t end = bytes.rfind("PK\x05\x06");
  const auto with = [&](std::size_t position, auto value) {
    std::string changed = bytes;
    patch(changed, position, value);
    return outcome(changed, read_npz);
  };
  EXPECT_THAT(with(entry + 24, std::uint32_t{0x7FFFFFFF}), HasSubstr("can hold"));
  EXPECT_THAT(with(entry + 24, std::uint32_t{0xFFFFFFFF}), HasSubstr("can hold"));
  EXPECT_THAT(with(entry + 20, std::uint32_t{0x7FFFFFFF}), HasSubstr("outside the file"));
  EXPECT_THAT(with(entry + 42, std::uint32_t{0x7FFFFFFF}), HasSubstr("outside the file"));
  EXPECT_THAT(with(entry + 42, std::uint32_t{1}), HasSubstr("own header"));
  EXPECT_THAT(with(entry + 16, std::uint32_t{1}), HasSubstr("checksum"));
  EXPECT_THAT(with(entry + 8, std::uint16_t{1}), HasSubstr("encrypted"));
  EXPECT_THAT(with(entry + 10, std::uint16_t{14}), HasSubstr("method 14"));
  EXPECT_THAT(with(entry + 24, std::uint32_t{1}), HasSubstr("ends early"));
  EXPECT_THAT(with(end + 10, std::uint16_t{1000}), HasSubstr("outside the file"));
  EXPECT_THAT(with(end + 10, std::uint16_t{4}), HasSubstr("outside the file"));
  EXPECT_THAT(with(end + 12, std::uint32_t{0x7FFFFFFF}), HasSubstr("outside the file"));
  EXPECT_THAT(with(end + 16, std::uint32_t{0x7FFFFFFF}), HasSubstr("outside the file"));
  EXPECT_THAT(with(end + 4, std::uint16_t{1}), HasSubstr("volumes"));

  // Two entries for one place: the second takes the first one's name and offset.
  std::string doubled = bytes;
  const std::size_t second = bytes.find("PK\x01\x02", entry + 4);
  doubled.replace(second, 46 + 7, bytes.substr(entry, 46 + 7));
  EXPECT_NE(outcome(doubled, read_npz), "no error");
}

TEST_F(HostileArrays, ContainerContents) {
  EXPECT_EQ(container_outcome({}), "no error");
  EXPECT_THAT(container_outcome({{"col_indices", vector_of<std::int32_t>({1, 2})}}),
              HasSubstr("column 2"));
  EXPECT_THAT(container_outcome({{"col_indices", vector_of<std::int32_t>({-1, 0})}}),
              HasSubstr("column -1"));
  EXPECT_THAT(container_outcome({{"row_offsets", vector_of<std::int64_t>({0, 5, 2})}}),
              HasSubstr("fall"));
  EXPECT_THAT(container_outcome({{"row_offsets", vector_of<std::int64_t>({0, 1, 1LL << 60})}}),
              HasSubstr("row_offsets end"));
  EXPECT_THAT(container_outcome({{"row_offsets", vector_of<std::int64_t>({})}}),
              HasSubstr("no graph"));
  EXPECT_THAT(container_outcome({{"num_cols", number(1LL << 31)}}), HasSubstr("may claim"));
  EXPECT_THAT(container_outcome({{"value", vector_of<float>({1})}}), HasSubstr("values"));
  EXPECT_THAT(container_outcome({{"news", number(1)}}), HasSubstr("newer"));
  EXPECT_EQ(container_outcome({{"extra:news", number(1)}}), "no error");
}

TEST_F(HostileArrays, ContainerTablesThatLie) {
  const auto with_section = [&](const std::function<void(io::Section&)>& change) {
    const Arrays arrays = good_container();
    std::vector<io::Section> sections;
    for (const auto& [name, array] : arrays) {
      sections.push_back({name, array.type, array.shape, array.bytes.size(),
                          io::Crc32(array.bytes.span()).value(), 0});
    }
    io::place_sections(sections);
    const std::string valid = container(arrays);
    const std::size_t old_header = io::encode_container_header(sections).size();
    change(sections[0]);
    std::string header = io::encode_container_header(sections);
    EXPECT_EQ(header.size(), old_header);
    // The file's own length stays true, so that the section is what is found wrong.
    patch(header, 16, static_cast<std::int64_t>(valid.size()));
    patch(header, 12, io::Crc32(io::bytes_of(header.substr(16))).value());
    return outcome(header + valid.substr(old_header), read_container);
  };
  EXPECT_EQ(with_section([](io::Section&) {}), "no error");
  EXPECT_THAT(with_section([](io::Section& s) { s.offset += 64; }), HasSubstr("where it must"));
  EXPECT_THAT(with_section([](io::Section& s) { s.offset = 0; }), HasSubstr("where it must"));
  EXPECT_THAT(with_section([](io::Section& s) { s.offset = -64; }), HasSubstr("where it must"));
  EXPECT_THAT(with_section([](io::Section& s) { s.bytes = 1LL << 60; }),
              HasSubstr("where it must"));
  EXPECT_THAT(with_section([](io::Section& s) { s.bytes = -1; }), HasSubstr("where it must"));
  EXPECT_THAT(with_section([](io::Section& s) { s.shape[0] = 1LL << 50; }), HasSubstr("fit"));
  EXPECT_THAT(with_section([](io::Section& s) { s.shape[0] = -1; }), HasSubstr("negative"));
  EXPECT_THAT(with_section([](io::Section& s) { s.type = ">i4"; }), HasSubstr("fit"));
  EXPECT_THAT(with_section([](io::Section& s) { s.type = "|O8"; }), HasSubstr("Python"));
  EXPECT_THAT(with_section([](io::Section& s) { s.crc ^= 1; }), HasSubstr("checksum"));
  EXPECT_THAT(with_section([](io::Section& s) { s.name = "col_indexes"; }), HasSubstr("not known"));
}

}  // namespace
}  // namespace tessera
