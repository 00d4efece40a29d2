// Verdict and gate.
#include <algorithm>
#include <array>

#include "page/html.h"
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
  html += paragraph(code(side.database) +
                    (side.run ? ", run " + code(clip(side.run->run_id, 80)) : ""));
  if (side.run) {
    const store::StepColumns& steps = side.run->steps;
    std::string text = count(static_cast<std::int64_t>(steps.size())) +
                       (!steps.steps_known  ? " points, steps unknown"
                        : steps.size() == 1 ? " step"
                                            : " steps");
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

/// An underscore offers no place to break a line on a phone.
std::string breakable(const char* verdict) {
  std::string html;
  for (const char c : std::string(verdict))
    html += c == '_' ? std::string("_<wbr>") : std::string(1, c);
  return html;
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

std::string with_unit(const std::string& value, const Test& test) {
  return value + " " + escape(test.unit);
}

std::string difference_cell(const Test& test) {
  return with_unit(signed_number(test.estimate, 3), test) + "<br>" +
         element("span", "i", interval_text(test.interval90, 3));
}

std::string margin_cell(const Test& test) {
  return with_unit("±" + number(test.margin.value, 4), test) + "<br><span class=\"note\">" +
         shown(source_of(test.margin), 300) + "</span>";
}

/// What is excluded, and how often equal sides would have been certified.
std::string strength_cell(const Test& test) {
  const std::string power = test.power ? "power " + whole_percent(*test.power) : "power not known";
  return "excludes " + with_unit("±" + number(test.excludes, 3), test) +
         "<br><span class=\"note\">" + power + "</span>";
}

/// Of a claim that no test decided.
std::string without_test(const Claim& claim) {
  if (const Test* test = claim.decided_by()) return shown(test->name, 80) + ": too few values";
  return claim.verdict == Verdict::kIdentical ? "equal bits" : "no test";
}

/// A row for each claim: what it says, by which test, against which margin, how sure.
std::string claims_table(const std::vector<Claim>& claims) {
  Table table({{"Claim", false},
               {"Verdict", false},
               {"Decided by", false},
               {"B − A, 90 % interval", false},
               {"Margin", false},
               {"How sure", false}});
  for (const Claim& claim : claims) {
    std::vector<std::string> cells = {
        claim_title(claim.scope),
        element("b", look_of(claim.verdict).classes, breakable(to_string(claim.verdict)))};
    const Test* test = claim.decided_by();
    if (test != nullptr && !test->too_few)
      cells.insert(cells.end(), {shown(test->name, 80) + "<br><span class=\"note\">" +
                                     method_of(*test) + "</span>",
                                 difference_cell(*test), margin_cell(*test), strength_cell(*test)});
    else
      cells.insert(cells.end(), {element("span", "absent", without_test(claim)), "–", "–", "–"});
    table.row(cells);
  }
  return table.empty() ? std::string() : table.html();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShownRows); ++i)
    text += (i == 0 ? "" : ", ") + shown(names[i], 160);
  if (names.size() > kShownRows)
    text += " and " + count(static_cast<std::int64_t>(names.size() - kShownRows)) + " more";
  return text;
}

/// The first few; the first screen is for the verdict.
std::string caveats(const std::vector<std::string>& all) {
  constexpr std::size_t kFew = 4;
  if (all.size() <= kFew + 1) return list_of(all);
  const std::vector<std::string> first(all.begin(), all.begin() + kFew),
      rest(all.begin() + kFew, all.end());
  return list_of(first) +
         folded("and " + count(static_cast<std::int64_t>(rest.size())) + " more", list_of(rest));
}

/// What the records leave open, and what would settle it.
std::string unknown_facts(const std::vector<UnknownFact>& facts) {
  Table table({{"Not known", false},
               {"A", false},
               {"B", false},
               {"If it differs", false},
               {"What would settle it", false}});
  std::vector<std::string> harmless;
  const auto told = [](const std::string& value) {
    return value.empty() ? element("span", "absent", "not told") : code(value);
  };
  for (const UnknownFact& fact : facts) {
    if (fact.if_different == MismatchClass::kBenign) {
      harmless.push_back(fact.key);
      continue;
    }
    const std::string value = fact.a.empty() && fact.b.empty() ? "=equal" : "=VALUE";
    table.row({code(fact.key), told(fact.a), told(fact.b),
               mismatch_tag(fact.if_different) + " " + shown(fact.reason),
               fact.assumed.empty()
                   ? "a record that tells it, or " + code("--assume " + fact.key + value)
                   : "assumed: " + code(fact.assumed)});
  }
  return (table.empty() ? "" : "<h3>What the records do not tell</h3>\n" + table.html()) +
         (harmless.empty() ? ""
                           : note("Not told either, and nothing that could change the verdict: " +
                                  joined(harmless) + "."));
}

}  // namespace

const Claim* claim_of_verdict(const ParityReport& report) {
  const auto found =
      std::find_if(report.claims.begin(), report.claims.end(),
                   [&](const Claim& claim) { return report.claim == to_string(claim.scope); });
  return found == report.claims.end() ? nullptr : &*found;
}

const char* claim_title(Scope scope) {
  return scope == Scope::kModels ? "These two models" : "These two setups";
}

std::string verdict_section(const ParityReport& report) {
  const VerdictLook look = look_of(report.verdict);
  std::string html =
      "<header>\n<p class=\"kicker\">Parity of two runs: " + std::string(kind_title(report.kind)) +
      "</p>\n<h1 class=\"verdict " + look.classes + "\"><span aria-hidden=\"true\">" + look.symbol +
      "</span>" + breakable(to_string(report.verdict)) + "</h1>\n" +
      element("p", "reason", shown(report.reason, 2000)) + "\n";
  if (const Claim* claim = claim_of_verdict(report);
      claim != nullptr && claim->sentence != report.reason)
    html += element("blockquote", "", shown(claim->sentence, 2000)) + "\n";
  html += claims_table(report.claims);
  if (!report.caveats.empty()) html += element("div", "caveats", caveats(report.caveats)) + "\n";
  if (!report.damage.empty()) html += "<h2>What is damaged</h2>\n" + list_of(report.damage);
  html += element("div", "sides", side_card('A', report.a) + side_card('B', report.b)) + "\n";
  html += note(
      std::string("Kind of comparison: <b>") + to_string(report.kind) + "</b>. " +
      shown(report.kind_reason, 1000) + " Exit code " + std::to_string(exit_code(report.verdict)) +
      (report.verdict == Verdict::kDifferentNegligible ? " (0 under --allow-negligible)" : "") +
      ". Every difference is B minus A.");
  return html + glance(report) + "</header>\n";
}

std::string gate_section(const ParityReport& report) {
  std::string html;
  Table table({{"What", false}, {"Class", false}, {"A", false}, {"B", false}, {"Why", false}});
  for (const Mismatch& m : report.gate.mismatches)
    table.row({code(m.what), mismatch_tag(m.mismatch), code(m.a), code(m.b), shown(m.reason)});
  html += !table.empty()              ? table.html()
          : report.gate.equal.empty() ? note("Nothing was compared.")
                                      : paragraph("Nothing that both records tell differs.");
  if (!report.gate.equal.empty())
    html += paragraph("<b>Equal</b>: " + joined(report.gate.equal) + ".");
  html += unknown_facts(report.gate.unknown);
  return section("gate", "Comparability", html);
}

}  // namespace olmo::report::page
