// SPDX-License-Identifier: Apache-2.0
#include "train/number_sections.hpp"

#include <string_view>

#include "io/dataset_arrays.hpp"
#include "io/sections.hpp"

namespace tessera::train {
namespace {

constexpr const char* means = "target_means";
constexpr const char* deviations = "target_deviations";
constexpr const char* name_bytes = "target_names";
constexpr const char* name_ends = "target_name_ends";

std::vector<double> read_doubles(io::ArrayReader& array) {
  const auto numbers =
      io::read_exact<double>(array, "must be numbers of double precision in one dimension");
  return {numbers.begin(), numbers.end()};
}

}  // namespace

bool NumberSections::take(io::ArrayReader& array) {
  const std::string_view name = array.name();
  if (name == means) {
    means_ = read_doubles(array);
  } else if (name == deviations) {
    deviations_ = read_doubles(array);
  } else if (name == name_bytes) {
    name_bytes_ = io::read_text(array);
  } else if (name == name_ends) {
    name_ends_ = io::read_vector<std::int64_t>(array);
  } else {
    return false;
  }
  return true;
}

void NumberSections::give(const std::string& path, Checkpoint& checkpoint) const {
  if (!means_ && !deviations_ && name_ends_.empty()) return;
  NumberOutputs& outputs = checkpoint.numbers.emplace();
  outputs.means = means_.value_or(std::vector<double>());
  outputs.deviations = deviations_.value_or(std::vector<double>());
  io::naming_file(path, [&] {
    outputs.names =
        Names(name_ends_, std::vector<std::uint8_t>(name_bytes_.begin(), name_bytes_.end()));
  });
}

void add_number_sections(const Checkpoint& checkpoint, std::vector<io::NamedArray>& arrays) {
  if (!checkpoint.numbers) return;
  const NumberOutputs& outputs = *checkpoint.numbers;
  arrays.emplace_back(means, io::stored(SharedArray<double>(outputs.means)));
  arrays.emplace_back(deviations, io::stored(SharedArray<double>(outputs.deviations)));
  if (outputs.names.empty()) return;
  arrays.emplace_back(name_bytes, io::stored(outputs.names.bytes()));
  arrays.emplace_back(name_ends, io::stored(outputs.names.ends()));
}

}  // namespace tessera::train
