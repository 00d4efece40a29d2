#include <array>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "report/page/efficiency_section.h"
#include "report/page/html.h"
#include "report/page/identity_section.h"
#include "report/page/parity_page.h"
#include "report/page/provenance_section.h"
#include "report/page/tasks_section.h"
#include "report/page/trajectory_section.h"
#include "report/page/verdict_section.h"

namespace olmo::report {
namespace {

const Efficiency* pointer(const std::optional<Efficiency>& efficiency) {
  return efficiency ? &*efficiency : nullptr;
}

}  // namespace

std::string parity_html(const ParityReport& report) {
  using namespace page;
  const std::array<NamedSide, 2> sides = {{{'A', &report.a, pointer(report.efficiency_a)},
                                           {'B', &report.b, pointer(report.efficiency_b)}}};
  const std::string body =
      verdict_section(report) + gate_section(report) + identity_section(report) +
      noise_section(report) + trajectory_section(report) + tasks_section(report) +
      perplexity_section(report) + efficiency_section(sides) + provenance_section(sides) +
      command_section(report.command, report.version, sides);
  const std::string json = json_text(parity_json(report));
  return document(std::string(to_string(report.verdict)) + ": " + clip(report.a.label, 80) +
                      " and " + clip(report.b.label, 80),
                  body, json);
}

}  // namespace olmo::report
