#include "serve/form.h"

#include "page/html.h"

namespace olmo::serve {

using page::escape;

std::string option(const std::string& value, const std::string& text, bool chosen) {
  return "<option value=\"" + escape(value) + "\"" + (chosen ? " selected" : "") + ">" +
         page::shown(text, 120) + "</option>";
}

std::string choice(const char* name, const std::string& label, const std::string& options_html) {
  return "<label>" + escape(label) + " <select name=\"" + name + "\" autocomplete=\"off\">" +
         options_html + "</select></label>\n";
}

std::string hidden_field(const char* name, const std::string& value) {
  return std::string("<input type=\"hidden\" name=\"") + name + "\" value=\"" + escape(value) +
         "\">";
}

}  // namespace olmo::serve
