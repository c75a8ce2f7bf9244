#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Assembles a pickle from readable text, so that tests show what they feed:
//
//   pickle("PROTO 4  EMPTY_DICT  MARK BINUNICODE 'key' BININT1 7 SETITEMS
//   STOP")
//
// Opcodes go by pickletools' names, each followed by its argument: a number, a
// quoted text whose count is written for it, or for the line forms the quoted
// line (GLOBAL 'os' 'system', INT '12'). LONG1 and LONG4 take a number, or the
// bytes themselves in quotes. Quoted text knows \xNN, \n, \\ and \'.
//
// For hostile pickles: BINUNICODE#500 'abc' writes the count 500 whatever
// follows (LONG4#-1 ''), HEX 80 04 and RAW 'bytes' write what they say, and
// nothing asks for a STOP. A token that makes no sense aborts the test.
std::string pickle(std::string_view text);

}  // namespace postflight
