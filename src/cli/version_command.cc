#include "cli/command.h"
#include "json/writer.h"

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
                                ? json_text([](JsonWriter& json) {
                                    json.begin("postflight.version/1");
                                    json.field("version", POSTFLIGHT_VERSION);
                                    json.finish();
                                  })
                                : "postflight " POSTFLIGHT_VERSION "\n");
              return Exit::kWell;
            };
          }};
}

}  // namespace postflight
