// The keys of OLMo's own model.safetensors (olmo/safetensors_util.py): the URL-safe base64 of a
// Python pickle of ((name,), False). Only the bytes of that one shape are recognised; nothing is
// ever executed.
#pragma once

#include <string>

namespace olmo::store {

/// The key of a tensor's name, as OLMo writes it (pickle protocol 4).
std::string encode_olmo_key(const std::string& name);

/// The name behind a key of OLMo's; any other text as it is.
std::string decode_olmo_key(const std::string& key);

}  // namespace olmo::store
