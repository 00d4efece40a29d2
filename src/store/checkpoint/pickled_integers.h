#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace olmo::store {

/// The whole numbers, by name, of the dict that a Python pickle holds (protocol 2 to 5), as torch
/// saves one as data.pkl. Nothing of it is run: objects of classes are passed over. Throws
/// Error(kInput) beginning with `where` for anything else, and where the pickle ends early.
std::map<std::string, std::int64_t> pickled_integers(std::string_view pickle,
                                                     const std::string& where);

}  // namespace olmo::store
