#pragma once

#include <string>
#include <vector>

#include <rapidcheck.h>

namespace postflight {

// Plain text mixed with everything that is not: controls, wide and combining
// characters, surrogates, cut and invalid UTF-8, and random bytes.
inline rc::Gen<std::string> arbitrary_text() {
  const auto piece = rc::gen::oneOf(
      rc::gen::element<std::string>(
          "plain", "a longer plain text", "\\", "\"", "\n", "\t", "\r",
          "\x1b[31m", "\x7f", "\xc2\x9b", "\xc2\xad", "\xe2\x80\xae",
          "\xef\xbb\xbf", "\xc3\xa9", "e\xcc\x81", "\xe6\xbc\xa2",
          "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xe6\xbc",
          "\xc0\x80", "\xf4\x90\x80\x80", "\xff"),
      rc::gen::arbitrary<std::string>());
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& each : pieces)
                          text += each;
                        return text;
                      });
}

}  // namespace postflight
