// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tessera/io/open.hpp"

/// Files of Python's that only Python can read: they are refused with the command that converts
/// them.
namespace tessera::io {

/// True for the first bytes of what `torch.save` writes.
bool begins_as_torch_file(std::string_view first_bytes);

/// True for a folder that has such files, as PyG's data sets keep them in `processed/`.
bool is_processed_folder(const std::string& folder);

[[noreturn]] Dataset refuse_torch_file(const std::string& path, const ReadOptions& options);
[[noreturn]] Dataset refuse_planetoid_file(const std::string& path, const ReadOptions& options);

}  // namespace tessera::io
