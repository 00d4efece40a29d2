#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "page/chart.h"
#include "page/html.h"
#include "report/page/sections.h"
#include "report/synthetic_report.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("hostile names, paths and texts stay text on the page", "[report]") {
  const std::string hostile = "</script><script>alert(1)</script><img src=x onerror='a'>\"\xff";
  ParityReport r = synthetic_report(50, 3);
  r.reason = r.kind_reason = r.command = r.version = hostile;
  r.caveats = r.damage = r.gate.equal = r.noise.runs_a = {hostile};
  r.gate.unknown = {{.key = hostile}};
  r.claims[0].sentence = r.claims[0].stronger = r.claims[1].sentence = hostile;
  r.claims[0].tests[1].name = r.claims[0].tests[1].method = r.claims[0].tests[1].unit = hostile;
  r.claims[0].tests[1].margin = {1, MarginSource::kDeclared, hostile, hostile, hostile};
  r.gate.mismatches.push_back({hostile, hostile, hostile, MismatchClass::kFatal, hostile});
  for (Side* side : {&r.a, &r.b}) {
    side->label = side->database = side->database_sha256 = hostile;
    side->run->name = side->run->status = side->run->run_id = hostile;
    side->run->attempts[0].environment = R"({"<script>":"<script>"})";
    side->run->attempts[0].build = "{" + hostile;
    side->run->attempts[0].policy = std::string(100'000, '[');
    side->run->inputs[0].path = hostile;
  }
  r.identity.first_field = r.identity.operation->operation = r.noise.to_run = hostile;
  r.identity.parted_state->names = {hostile, "`" + hostile};
  r.identity.reference_a.numerics = r.identity.reference_b.audits[1].difference = hostile;
  r.identity.reference_a.audits[0].machine = r.identity.reference_a.audits[0].verdict = hostile;
  r.noise.looked_at[0].run_id = r.noise.looked_at[0].host = hostile;
  r.noise.looked_at[0].tags = r.noise.looked_at[5].left_out = r.noise.looked_at[1].known_by =
      hostile;
  r.trajectory->caveats = {hostile};
  r.trajectory->margin_source = r.trajectory->marks[0].text = r.trajectory->marks[0].kind = hostile;
  r.tasks->tasks[0].task = r.tasks->flips[0].task = r.tasks->noise_source = hostile;
  r.tasks->flips[0].context = hostile;
  r.tasks->flips[0].continuations = {hostile, hostile};
  r.tasks->invalid = r.tasks->mismatched = {hostile};
  r.perplexity->sources[0].source = hostile;
  r.efficiency_a->energy_method = r.efficiency_a->device = hostile;
  const std::string html = parity_html(r);
  CHECK(occurrences(html, "<script") == 2);
  CHECK(occurrences(html, "</script") == 2);
  CHECK(occurrences(html, "<img") == 0);
  CHECK(html.find('\xff') == std::string::npos);
  CHECK_THAT(parity_markdown(r), !Contains("<script"));
  EvaluationScores scores;
  scores.status = hostile;
  scores.problems = {hostile};
  scores.scores.push_back({hostile, hostile, hostile, hostile, 1, 0.5, true, {}});
  const RunReport run{r.a,     r.efficiency_a, r.trajectory->marks,          hostile,
                      hostile, {scores},       r.identity.reference_a.audits};
  CHECK(occurrences(run_html(run), "<script") == 2);
  CHECK_THAT(run_markdown(run), !Contains("<script"));
}

TEST_CASE("a page is one file, small, and the same for the same report", "[report]") {
  ParityReport report = synthetic_report(1'000'000, 200);
  for (Flip& flip : report.tasks->flips) {
    flip.context = std::string(5000, 'x');
    flip.continuations.assign(4, std::string(400, 'y'));
  }
  const std::string html = parity_html(report);
  CHECK(html == parity_html(report));
  CHECK(html.size() <= 2'000'000);
  CHECK(occurrences(html, "http") == occurrences(html, "http-equiv"));
  for (const char* outside : {"src=", "@import", "url(", "<link"})
    CHECK_THAT(html, !Contains(outside));
  CHECK_THAT(html, Contains("id=\"report\""));
}

TEST_CASE("the line of a noisy curve is smooth, and its noise a band behind it", "[report]") {
  std::vector<std::int64_t> x;
  std::vector<double> y;
  for (int i = 0; i < 20'000; ++i) {
    x.push_back(i);
    y.push_back(wobble(i, 1));
  }
  double lowest = 1, highest = -1, thinnest = 2;
  for (const page::Bin& bin : page::binned(x, y)) {
    if (bin.x < 5000) continue;
    lowest = std::min(lowest, bin.mean);
    highest = std::max(highest, bin.mean);
    thinnest = std::min(thinnest, bin.high - bin.low);
  }
  CHECK(highest - lowest < 0.35);
  CHECK(thinnest > 1);
  const std::string html = parity_html(synthetic_report(20'000, 3));
  CHECK_THAT(html, Contains("<path class=\"area diff\""));
}

TEST_CASE("a curve carries steps and tokens for the readout and the other axis", "[report]") {
  const std::string html = parity_html(synthetic_report(1000, 3));
  CHECK_THAT(html, Contains("data-steps=\"4194304,1;4194304000,1000\""));
  ParityReport r = synthetic_report(1000, 3);
  r.a.run->tokens_known = r.b.run->tokens_known = r.trajectory->tokens_known = false;
  CHECK_THAT(parity_html(r), !Contains("data-steps=\""));
}

TEST_CASE("the first screen has a row for each claim, with who declared the margin and when",
          "[report]") {
  const ParityReport r = synthetic_report(50, 3);
  const std::string html = parity_html(r);
  const std::string first = html.substr(0, html.find("<section"));
  for (const char* text :
       {"These two models", "These two setups", "macro average", "MOVER, 8 tasks; n 18,786",
        "declared by a.user, 2026-04-30T12:00 UTC", "±0.5 pp", "54 %", "Welch, 4 and 1 runs",
        "<blockquote>No difference between the two setups"})
    CHECK_THAT(first, Contains(text));
  CHECK_THAT(html, Contains("over 10 tests of differences"));
  CHECK_THAT(html, Contains("To make it stronger</b>: run side B five more times"));
}

TEST_CASE("scores at several checkpoints are drawn by step with their intervals, of both sides",
          "[report]") {
  ParityReport r = synthetic_report(50, 3);
  const std::string html = parity_html(r);
  CHECK(occurrences(html, "<path class=\"bars a\"") == 3);
  CHECK(occurrences(html, "<path class=\"bars b\"") == 3);
  CHECK(parity_json(r)["evaluations"]["b"].size() == 5);
  const RunReport run{r.a, {}, {}, "", "", r.scores_a, {}};
  CHECK(occurrences(run_html(run), "<path class=\"bars a\"") == 3);
  r.scores_a.resize(1);
  r.scores_b.resize(1);
  CHECK_THAT(parity_html(r), !Contains("Over the checkpoints"));
}

TEST_CASE("every run that was looked at stands with its seed, host and why it counts or not",
          "[report]") {
  ParityReport r = synthetic_report(50, 3);
  const std::string html = parity_html(r);
  for (const char* text : {"20260501T080003-7f3a9c11", "6200", "nid005012", "host nid005012",
                           "no: its chain is that of 20260501T080002-7f3a9c11",
                           "Where they part</h3>", "Step 17 is missing in A."})
    CHECK_THAT(html, Contains(text));
  CHECK(parity_json(r)["noise_floor"]["looked_at"][1]["side"] == "B");
  CHECK(parity_json(r)["trajectory"]["partings"][0]["position"] == 700);
  r.noise = {};
  CHECK_THAT(parity_html(r), Contains("One run a side: what chance does is not known."));
}

TEST_CASE("a section without content is one line", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.tasks.reset();
  r.scores_a.clear();
  r.scores_b.clear();
  CHECK_THAT(parity_html(r), Contains("<section class=\"empty\" id=\"tasks\">"));
}

TEST_CASE("the evidence of a single task, which has no macro average, says what was certified",
          "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.tasks->tasks.resize(1);
  r.tasks->macro.reset();
  CHECK_THAT(parity_markdown(r), Contains("| Tasks | 0 of 1 task certified"));
}

TEST_CASE("a fact that no record tells takes the mark away and says what would settle it",
          "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.gate.mismatches.clear();
  const auto mark = [&] { return page::findings(r).front().standing; };
  CHECK(mark() == page::Standing::kWarning);
  CHECK_THAT(parity_html(r), Contains("--assume global_train_batch_size=VALUE"));
  r.gate.unknown[0].assumed = "2048";
  CHECK(mark() == page::Standing::kGood);
  r.gate.unknown[0] = {.key = "host", .if_different = MismatchClass::kBenign};
  CHECK(mark() == page::Standing::kGood);
  CHECK_THAT(parity_html(r), Contains("nothing that could change the verdict: host."));
}

TEST_CASE("that nothing differs is said only where nothing does", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.gate.unknown.clear();
  r.gate.mismatches = {{"seed", "1", "2", MismatchClass::kBenign, "This is what is compared."}};
  const auto text = [&] { return page::findings(r).front().text; };
  CHECK_THAT(text(), StartsWith("what differs cannot change the result, or is what is compared"));
  r.gate.mismatches.clear();
  CHECK_THAT(text(), StartsWith("nothing differs"));
}

TEST_CASE("a repeat that diverged takes the mark of the repeats away", "[report]") {
  ParityReport report = synthetic_report(10, 0);
  report.claims[1].tests[0].certified = true;
  CHECK(parity_markdown(report).find("| ✓ | Repeated runs |") != std::string::npos);
  report.noise.caps = {"the repeat x of A diverged"};
  const std::string text = parity_markdown(report);
  CHECK(text.find("| ! | Repeated runs |") != std::string::npos);
  CHECK(text.find("nats; the repeat x of A diverged |") != std::string::npos);
}

TEST_CASE("of too few values JSON and CSV have an estimate, and no interval", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  Test& test = r.claims[0].tests[0];
  CHECK(parity_json(r)["claims"][0]["tests"][0]["interval90"].is_array());
  test.too_few = true;
  test.interval90 = test.interval95 = {};
  test.excludes = 0;
  const auto json = parity_json(r)["claims"][0]["tests"][0];
  CHECK(json["estimate"] == test.estimate);
  for (const char* key : {"interval90", "interval95", "excludes"}) CHECK(json[key].is_null());
  CHECK_THAT(parity_csv(r), Contains("\nclaim models," + test.name + "," + test.unit + ",,,"));
  CHECK_THAT(parity_csv(r), !Contains(",0,0,"));
}

TEST_CASE("the JSON of a run of which no size is known has none", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  CHECK(parity_json(r)["a"]["run"]["parameters"] == 1'176'764'416);
  r.a.run->n_parameters = 0;
  CHECK(parity_json(r)["a"]["run"]["parameters"].is_null());
}

TEST_CASE("what is absent is said to be absent, and null in the JSON", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.trajectory->last_a = std::numeric_limits<double>::quiet_NaN();
  const auto json = parity_json(r);
  CHECK(json["schema"] == "olmo-harness/parity@1");
  CHECK(json["verdict"] == "CONSISTENT");
  CHECK(json["exit_code"] == 10);
  CHECK(json["trajectory"]["last_stretch"]["loss_a"].is_null());
  CHECK(json["noise_floor"]["p"].is_null());
  CHECK(json["efficiency"]["a"]["joules"].is_null());
  CHECK(json["efficiency"]["b"]["joules"] == 6.1e9);
  CHECK(json["tasks"]["tasks"].size() == 8);
  const std::string html = parity_html(r);
  CHECK_THAT(html, Contains("not measured: no sensor could be read on this node"));
  CHECK_THAT(html, !Contains("not measured: not measured"));
  CHECK_THAT(html, Contains("tokens/s × FLOP per token"));
  CHECK_THAT(html, Contains("310,000 tokens/s on 128 devices (2,422 per device)"));
  for (const char* peak :
       {"19.10 %", "26.10 %", "measured: matrix products", "The peaks of A and B"})
    CHECK_THAT(html, Contains(peak));
}

TEST_CASE("the identity section says where runs part and how far each is from the reference",
          "[report]") {
  ParityReport r = synthetic_report(50, 3);
  const auto says = [&](const char* text) {
    CHECK_THAT(parity_html(r), Contains(text));
    CHECK_THAT(parity_markdown(r), Contains(text));
  };
  const auto both = [&](const std::string& html, const std::string& markdown) {
    CHECK_THAT(parity_html(r), Contains(html));
    CHECK_THAT(parity_markdown(r), Contains(markdown));
  };
  Identity& identity = r.identity;
  both("<h2>Identity</h2>", "## Identity\n\n- ");
  says("The hash chains agree at no step; step ");
  both("differs, in <code>ce_loss</code>.", "differs, in `ce_loss`.");
  both("<b>675</b> of 678 tensors differ at step <b>25</b>: <code>model/transformer.wte.weight",
       "675 of 678 tensors differ at step 25: `model/transformer.wte.weight`, ");
  says(" and 673 more.");
  says("3 of 678 tensors are the same at step 50.");
  says("its output differs.");
  says("within the envelope");
  says("differs at step 44 in ce_loss");
  both("<td class=\"n\" data-h=\"Loss, nats\">1.1×10⁻⁶", "| 1.1×10⁻⁶ | 3.2×10⁻⁵ |");
  says("no further apart than the two are from the reference together");
  CHECK(parity_json(r)["identity"]["reference"]["b"]["audits"][1]["difference_step"] == 44);
  CHECK(parity_json(r)["identity"]["operation"]["traced_step"] == 1);
  CHECK(parity_json(r)["identity"]["between"]["steps"] == 20);

  identity.between->explained = false;
  says("further apart than the two are from the reference together: these steps began");
  identity.between->steps = 0;
  says("No step was audited on both sides");
  identity.reference_a = {"portable", {{1, 3, "", "identical", {}, "", "", 0, 0}}, 0, 0};
  says("the same bits");
  identity.reference_b = {};
  identity.between.reset();
  both("is not measured: run <code>olmo-harness audit RUN --sample 2 --record</code>",
       "How far B is from the portable reference is not measured: run `olmo-harness audit RUN "
       "--sample 2 --record`");
  CHECK(parity_json(r)["identity"]["between"].is_null());

  identity.operation = TracedOperation{5, 9, "loss", "its output differs", "audit it"};
  says("The runs had parted before, at step 5.");
  both("run <code>audit it</code> on each", "run `audit it` on each");
  identity.operation->operation.clear();
  says("No operation differs in the traces up to step 9.");
  identity.operation->traced.reset();
  says("was traced on both sides.");
  identity.parted_state.reset();
  identity.first_different = 0;
  says("The hash chains agree for all ");
  identity.last_state.reset();
  says("were not hashed at a step that both reached.");
  identity.known = false;
  says("Not known: a hash chain");
}

TEST_CASE("a report of nothing, and of either side alone, is still a page", "[report]") {
  ParityReport nothing;
  nothing.damage = {"lumi.db: not a database"};
  CHECK_THAT(parity_html(nothing), Contains("INVALID_<wbr>DATA"));
  CHECK(parity_json(nothing)["trajectory"].is_null());
  CHECK(parity_json(nothing)["identity"].is_null());
  CHECK(parity_csv(nothing) ==
        "section,name,metric,a,b,difference,low95,high95,margin,p,certified\n");
  const auto without = [](auto change) {
    ParityReport r = synthetic_report(50, 3);
    change(r);
    std::string html = parity_html(r);
    CHECK_THAT(html, Contains("</html>"));
    CHECK(parity_markdown(r).size() > 100);
    return html;
  };
  without([](ParityReport& r) { r.a.run.reset(); });
  without([](ParityReport& r) { r.tasks.reset(); });
  without([](ParityReport& r) { r.perplexity.reset(); });
  without([](ParityReport& r) { r.efficiency_a.reset(); });
  without([](ParityReport& r) { r.trajectory.reset(); });
  without([](ParityReport& r) { *r.trajectory = Trajectory{}; });
  without([](ParityReport& r) { r.a.run->steps = r.b.run->steps = store::StepColumns{}; });
  without([](ParityReport& r) { r.a.run->steps.loss.assign(50, std::nan("")); });
  without([](ParityReport& r) { r.trajectory->loss.values.assign(50, 0.0); });
  CHECK_THAT(run_html({}), Contains("No training steps"));
  RunReport one;
  one.side.run.emplace();
  one.side.run->steps.step = {1};
  one.side.run->steps.tokens = {8};
  CHECK_THAT(run_markdown(one), Contains("1 step,"));
}

TEST_CASE("a source that is not measured in bits per byte says so everywhere", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  CHECK_THAT(parity_html(r), !Contains("or token"));
  r.perplexity->sources[0].unit = r.perplexity->sources.back().unit = kBitsPerToken;
  CHECK(parity_json(r)["perplexity"]["sources"][0]["unit"] == "bits per token");
  CHECK(parity_json(r)["perplexity"]["sources"][1]["unit"] == "bits per byte");
  CHECK_THAT(parity_html(r), Contains("bits per byte or token; left of 0"));
  CHECK_THAT(parity_html(r), Contains("512 documents, bits per token"));
  const std::string csv = parity_csv(r);
  CHECK_THAT(csv, Contains("\nperplexity,paloma/c4_en,bits_per_token,"));
  CHECK_THAT(csv, Contains("\nperplexity,paloma/dolma_books,bits_per_byte,"));
  CHECK_THAT(csv, Contains("\nperplexity,paloma,bits_per_token_macro,"));
}

TEST_CASE("the CSV has a line for each comparison", "[report]") {
  const std::string csv = parity_csv(synthetic_report(50, 3));
  CHECK_THAT(csv, Contains("trajectory,last stretch,ce_loss,2.33841,2.33827,-0.000137,-0.00072,"
                           "0.00045,0.0024,9e-04,yes\n"));
  CHECK_THAT(csv, Contains("\ntasks,boolq,len_norm,"));
  CHECK_THAT(csv, Contains("\nefficiency,run,joules,,6.1e+09,,,,,,\n"));
}

TEST_CASE("market-based carbon is shown where a cluster file states its intensity", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  CHECK_THAT(parity_html(r), !Contains("market-based"));
  CHECK(parity_json(r)["efficiency"]["b"]["carbon_kg_market"].is_null());
  r.efficiency_b->cluster.kg_per_kwh_market = 0.01;
  r.efficiency_b->carbon_kg_market = 18.75;
  CHECK_THAT(parity_html(r), Contains("Carbon, market-based") && Contains("18.75"));
  CHECK(parity_json(r)["efficiency"]["b"]["carbon_kg_market"] == 18.75);
  CHECK(parity_json(r)["efficiency"]["b"]["cluster"]["kg_per_kwh_market"] == 0.01);
  CHECK_THAT(parity_csv(r), Contains("\nefficiency,run,carbon_kg_market,,18.75,"));
}

TEST_CASE("verdicts and kinds have names", "[report]") {
  CHECK(to_string(Verdict::kDifferentNegligible) == std::string("DIFFERENT_NEGLIGIBLE"));
  for (const Kind kind : {Kind::kCheckpoint, Kind::kTrajectory, Kind::kOutcome})
    CHECK(kind_named(to_string(kind)) == kind);
  CHECK_THROWS_AS(kind_named("outcomes"), Error);
}

TEST_CASE("the page of a negligible difference tells both exit codes of its command", "[report]") {
  ParityReport r = synthetic_report(50, 3);
  r.verdict = Verdict::kDifferentNegligible;
  CHECK_THAT(parity_html(r), Contains(" Exit code 21 (0 under --allow-negligible)."));
  r.verdict = Verdict::kDifferent;
  CHECK_THAT(parity_html(r), !Contains("--allow-negligible"));
}

TEST_CASE("pages to look at", "[.page]") {
  const auto write = [](const char* path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  };
  const ParityReport r = synthetic_report(4000, 60);
  write("/tmp/page.html", parity_html(r));
  write("/tmp/page.md", parity_markdown(r));
  write("/tmp/page_run.html",
        run_html({r.a, r.efficiency_a, r.trajectory->marks, r.command, r.version}));
  ParityReport bad;
  bad.damage = {"lumi.db: step 17 is there twice"};
  bad.reason = "The record of A is damaged.";
  write("/tmp/page_bad.html", parity_html(bad));
}

}  // namespace olmo::report
