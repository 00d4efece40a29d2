// Verdict and gate.
#include <algorithm>
#include <array>

#include "report/page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

const char* kind_title(Kind kind) {
  if (kind == Kind::kCheckpoint) return "the same weights, evaluated twice";
  return kind == Kind::kTrajectory ? "the same start and data, trained twice"
                                   : "independent trainings";
}

std::string side_card(char letter, const Side& side) {
  std::string html = "<p class=\"name\">" + side_mark(letter) +
                     shown(side.label.empty() ? side.database : side.label, 120) + "</p>";
  html += paragraph(code(side.database));
  if (side.run) {
    const store::StepColumns& steps = side.run->steps;
    std::string text = count(static_cast<std::int64_t>(steps.size())) +
                       (steps.steps_known ? " steps" : " points, steps unknown");
    if (side.run->tokens_known && !steps.tokens.empty())
      text += ", " + count(steps.tokens.back()) + " tokens";
    if (side.run->n_parameters > 0)
      text += ", " + compact(static_cast<double>(side.run->n_parameters)) + " parameters";
    html += paragraph(text + (side.run->imported ? "; imported log" : ""));
  }
  if (side.evaluation)
    html +=
        paragraph("evaluated: " + count(static_cast<std::int64_t>(side.evaluation->tasks.size())) +
                  " tasks, " + count(static_cast<std::int64_t>(side.evaluation->suites.size())) +
                  " perplexity suites");
  if (!side.run && !side.evaluation) html += note("no readable record");
  return element("div", "", html);
}

std::string standing_mark(Standing standing) {
  constexpr std::array<std::array<const char*, 3>, 5> kMarks = {
      {{"✓", "m good", "shown"},
       {"○", "m", "not certified"},
       {"!", "m warn", "caution"},
       {"✕", "m bad", "fails"},
       {"–", "m note", "for information"}}};
  const auto& [symbol, classes, title] = kMarks.at(static_cast<std::size_t>(standing));
  return std::string("<span class=\"") + classes + "\" title=\"" + title + "\">" + symbol +
         "</span>";
}

std::string glance(const ParityReport& report) {
  std::string items;
  for (const Finding& finding : findings(report))
    items += "<li>" + standing_mark(finding.standing) + "<a href=\"#" + finding.section + "\">" +
             escape(finding.title) + "</a><span>" + shown(finding.text) + "</span></li>\n";
  return element("ul", "glance", items) + "\n";
}

std::string mismatch_tag(MismatchClass mismatch) {
  const char* classes = mismatch == MismatchClass::kFatal      ? "tag bad"
                        : mismatch == MismatchClass::kConfound ? "tag warn"
                                                               : "tag note";
  return element("span", classes, to_string(mismatch));
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShownRows); ++i)
    text += (i == 0 ? "" : ", ") + shown(names[i], 160);
  if (names.size() > kShownRows)
    text += " and " + count(static_cast<std::int64_t>(names.size() - kShownRows)) + " more";
  return text;
}

}  // namespace

std::string verdict_section(const ParityReport& report) {
  const VerdictLook look = look_of(report.verdict);
  std::string html =
      "<header>\n<p class=\"kicker\">Parity of two runs: " + std::string(kind_title(report.kind)) +
      "</p>\n<h1 class=\"verdict " + look.classes + "\"><span aria-hidden=\"true\">" + look.symbol +
      "</span>";
  // An underscore offers no place to break a line on a phone.
  for (const char c : std::string(to_string(report.verdict)))
    html += c == '_' ? std::string("_<wbr>") : std::string(1, c);
  html += "</h1>\n" + element("p", "reason", shown(report.reason, 2000)) + "\n";
  if (!report.caveats.empty()) html += element("div", "caveats", list_of(report.caveats)) + "\n";
  if (!report.damage.empty()) html += "<h2>What is damaged</h2>\n" + list_of(report.damage);
  html += element("div", "sides", side_card('A', report.a) + side_card('B', report.b)) + "\n";
  html += note(std::string("Kind of comparison: <b>") + to_string(report.kind) + "</b>. " +
               shown(report.kind_reason, 1000) + " Exit code " +
               std::to_string(exit_code(report.verdict)) + ". Every difference is B minus A.");
  return html + glance(report) + "</header>\n";
}

std::string gate_section(const ParityReport& report) {
  std::string html;
  Table table({{"What", false}, {"Class", false}, {"A", false}, {"B", false}, {"Why", false}});
  for (const Mismatch& m : report.gate.mismatches)
    table.row({code(m.what), mismatch_tag(m.mismatch), code(m.a), code(m.b), shown(m.reason)});
  html += !table.empty()              ? table.html()
          : report.gate.equal.empty() ? note("Nothing was compared.")
                                      : paragraph("Nothing that was compared differs.");
  if (!report.gate.equal.empty())
    html += paragraph("<b>Equal</b>: " + joined(report.gate.equal) + ".");
  std::vector<std::string> keys;
  for (const UnknownFact& fact : report.gate.unknown) keys.push_back(fact.key);
  if (!keys.empty()) html += note("<b>Not told by the records</b>: " + joined(keys) + ".");
  return section("gate", "Comparability", html);
}

}  // namespace olmo::report::page
