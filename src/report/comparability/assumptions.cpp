#include "report/comparability/assumptions.h"

#include "core/error.h"

namespace olmo::report {

std::map<std::string, std::string> parse_assumptions(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> facts;
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw Error(ErrorKind::kUsage, "assume: expected KEY=VALUE, received `" + text + "`");
    facts[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return facts;
}

}  // namespace olmo::report
