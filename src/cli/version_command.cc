#include "cli/command.h"

namespace postflight {

Command version_command() {
  return {.name = "version",
          .sentence = "Shows the version of the program.",
          .examples = {{"postflight version", "postflight 0.1.0"},
                       {"postflight version --json", "for a program"},
                       {"postflight --version", "the same"}},
          .declare = [](CommandArguments&) {
            return [](Session& session) {
              session.print(session.options().json
                                ? "{\"schema\":\"postflight.version/1\","
                                  "\"version\":\"" POSTFLIGHT_VERSION "\"}\n"
                                : "postflight " POSTFLIGHT_VERSION "\n");
              return Exit::kWell;
            };
          }};
}

}  // namespace postflight
