// What is claimed, the tests that a claim rests on, and how they work.
#include <algorithm>

#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

/// Of 2026-01-31T23:59:59.123Z the part up to the minute.
constexpr std::size_t kMinutes = 16;

constexpr char kMethods[] =
    "<p><b>Two claims.</b> <i>These two models</i> is about the two sets of weights that were "
    "made: "
    "one run a side is enough, and a difference says nothing yet about the clusters, as two runs "
    "of "
    "one cluster differ, too. <i>These two setups</i> is about what training on the two clusters "
    "gives: it needs repeated runs, branches or a published deviation between runs.</p>\n"
    "<p><b>Equivalence</b> is never read off a missing difference. It is certified when the 90 % "
    "interval of the difference lies inside the margin; then a true difference as large as the "
    "margin would have been certified by chance in at most 5 % of cases. The endpoints are tested "
    "in "
    "a fixed order: loss of the last stretch, macro average of the tasks, bits per byte, single "
    "tasks. The first that fails ends it, so that all together keep to 5 %.</p>\n"
    "<p><b>Difference</b>: p is the probability of a difference at least this large if there were "
    "none, made larger for the number of tests (Holm). Below 5 % the difference counts.</p>\n"
    "<p><b>A margin</b> is the largest difference that does not matter to you. It should be "
    "declared "
    "before the results are seen: <code>olmo-harness report declare</code> writes it into the "
    "record with a time. Else it comes from repeated runs, else from a default.</p>\n"
    "<p><b>A repeat</b> is another run of the same model, data and settings on the same side, as "
    "long as the compared stretch. Runs with equal hash chains or equal curves are one run. Parts "
    "of one run are no repeats.</p>\n"
    "<p><b>Excludes</b> is the smallest true difference, in either direction, that these data rule "
    "out with 95 % confidence. <b>Power</b> is how often two equal sides with such data would have "
    "been certified: below 80 %, a failure to certify says little.</p>\n";

std::string p_of(const Test& test) {
  if (!test.p) return "–";
  return test.holm_p ? p_value(*test.holm_p) : p_value(*test.p);
}

std::string name_cell(const Test& test, bool decides) {
  return shown(test.name, 80) + (decides ? " <b>(decides)</b>" : "") + "<br><span class=\"note\">" +
         (test.primary ? "primary; " : "") + method_of(test) + "</span>";
}

std::string estimate_cell(const Test& test) {
  return signed_number(test.estimate, 3) + " " + escape(test.unit) + "<br>" +
         interval_text(test.interval90, 3) + "<br><span class=\"note\">" +
         interval_text(test.interval95, 3) + "</span>";
}

std::string tests_table(const Claim& claim) {
  Table table({{"Test", false},
               {"B − A; 90 %, 95 % interval", true},
               {"± margin", true},
               {"Outcome", false},
               {"Excludes", true},
               {"p, Holm", true},
               {"Power", true}});
  for (std::size_t i = 0; i < claim.tests.size(); ++i) {
    const Test& test = claim.tests[i];
    const std::string name = name_cell(test, claim.deciding == i);
    if (test.too_few) {
      table.row({name, signed_number(test.estimate, 3) + " " + escape(test.unit), "–",
                 outcome_of(test), "–", "–", "–"});
      continue;
    }
    table.row(
        {name, estimate_cell(test), number(test.margin.value, 3),
         (test.certified ? "<b class=\"ok\">✓</b> " : "") + outcome_of(test),
         "±" + number(test.excludes, 3), p_of(test), test.power ? whole_percent(*test.power) : "–"},
        claim.deciding == i ? "sum" : "");
  }
  return table.html();
}

std::string alpha_text(const AlphaSpent& alpha) {
  return "Errors allowed (α): " + number(100 * alpha.equivalence, 3) +
         " % that a claim certifies what is not equivalent, all its endpoints together; " +
         number(100 * alpha.difference, 3) + " % that it finds a difference where none is, over " +
         count(alpha.difference_tests) + (alpha.difference_tests == 1 ? " test" : " tests") +
         " of differences.";
}

}  // namespace

std::string method_of(const Test& test) {
  return (test.method.empty() ? "" : shown(test.method, 120) + "; ") + "n " + count(test.n) +
         "; runs " + count(test.k_a) + " and " + count(test.k_b) +
         (test.noise.empty() ? "" : "; noise: " + shown(test.noise, 160));
}

std::string source_of(const Margin& margin) {
  const std::string source = to_string(margin.source);
  if (margin.source != MarginSource::kDeclared)
    return margin.reason.empty() ? source : source + ": " + margin.reason;
  return source + (margin.who.empty() ? "" : " by " + margin.who) +
         (margin.when.empty() ? "" : ", " + margin.when.substr(0, kMinutes) + " UTC");
}

const Test* find_test(const ParityReport& report, Scope scope, Endpoint endpoint) {
  for (const Claim& claim : report.claims) {
    if (claim.scope != scope) continue;
    for (const Test& test : claim.tests)
      if (test.endpoint == endpoint && !test.too_few && !test.difference_only) return &test;
  }
  return nullptr;
}

std::string outcome_of(const Test& test) {
  if (test.too_few) return "too few values";
  if (test.difference_only) return test.different ? "different" : "no difference found";
  std::string text = test.certified       ? "certified"
                     : test.within_margin ? "inside the margin, after one that is not certified"
                                          : "not certified";
  const bool choices = test.endpoint == Endpoint::kMacro || test.endpoint == Endpoint::kTask;
  if (test.equal_bits) text += choices ? "; the same choices" : "; the same bits";
  return test.different ? text + "; different" : text;
}

std::string claims_section(const ParityReport& report) {
  if (report.claims.empty()) return {};
  std::string html;
  for (const Claim& claim : report.claims) {
    html += "<h3>" + escape(claim_title(claim.scope)) + "</h3>\n";
    if (claim.sentence != report.reason) html += paragraph(shown(claim.sentence, 2000));
    if (!claim.tests.empty()) html += tests_table(claim);
    if (!claim.stronger.empty())
      html += paragraph("<b>To make it stronger</b>: " + shown(claim.stronger, 1500));
  }
  html += note(alpha_text(report.alpha));
  return section("claims", "Claims and their tests",
                 html + folded("How the tests work, in plain words", kMethods));
}

}  // namespace olmo::report::page
