// `olmo-harness serve`: a local page of runs.
#include <iostream>

#include "cli/commands.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "serve/server.h"
#include "serve/site.h"

namespace olmo::cli {
namespace {

struct ServeArguments {
  std::vector<std::string> places;
  std::string host;
  std::optional<std::int64_t> port;
  bool token = false;
};

std::vector<std::filesystem::path> places_of(const ServeArguments& options) {
  std::vector<std::filesystem::path> places;
  for (const auto& place : options.places) {
    if (!is_there(place))
      throw Error(ErrorKind::kUsage,
                  "serve: " + place + " is not there: expected a folder of runs, or a FILE.db");
    places.emplace_back(place);
  }
  if (places.empty()) places.emplace_back(".");
  return places;
}

void serve_runs(const ServeArguments& options) {
  serve::Site site(places_of(options));
  serve::ServerOptions settings;
  settings.host = options.host;
  settings.token = options.token;
  if (options.port) {
    settings.port = static_cast<int>(*options.port);
    settings.next_free = false;
  }
  serve::Server server(settings,
                       [&](const serve::Request& request) { return site.answer(request); });
  const StopSignals signals;
  std::cout << server.url() << std::endl;  // whoever started it opens this
  log_line("serving until Ctrl-C; nothing is written, and nothing but these runs is shown");
  server.run([&] { return signals.requested() != StopRequest::kNone; });
  log_line("stopped by " + signals.name());
}

}  // namespace

void add_serve(const Command& program, const char* group) {
  const Command serving =
      program.add("serve", "Show runs on a local web page: table, curves, evaluations", group);
  auto& options = serving.options<ServeArguments>();
  serving.option("DIR", options.places,
                 "Folders of runs, looked through in depth, or FILE.db; without any, this folder");
  serving.number("--port", options.port, {0, 65'535},
                 "Port to listen at; 0 takes any that is free. Without it 8321, or the next free");
  serving.option("--host ADDR", options.host,
                 "Listen at this address of the machine, for others to see (0.0.0.0: all its "
                 "addresses). They need the token that is part of the address printed");
  serving.flag("--token", options.token,
               "Demand the token here, too: others who are logged in to this machine could look");
  serving.footer(
      "Ctrl-C ends it with exit code 0. From a machine that you reach by ssh: ssh -L "
      "8321:localhost:8321 HOST, then open http://localhost:8321/.\n"
      "Example: olmo-harness serve runs");
  serving.action([&options] { serve_runs(options); });
}

}  // namespace olmo::cli
