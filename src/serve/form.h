// Fields of the forms by which a reader chooses what a page shows. A browser would fill them as
// they were before; `autocomplete` keeps them as the address has them.
#pragma once

#include <string>

namespace olmo::serve {

/// An option of choice().
std::string option(const std::string& value, const std::string& text, bool chosen);
/// A list of options to choose one of.
std::string choice(const char* name, const std::string& label, const std::string& options_html);
/// What the form sends on as it is.
std::string hidden_field(const char* name, const std::string& value);

}  // namespace olmo::serve
