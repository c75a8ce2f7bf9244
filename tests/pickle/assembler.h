#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Assembles a pickle from readable text, so that tests show their input:
//
//   pickle("PROTO 4  EMPTY_DICT  MARK BINUNICODE 'key' BININT1 7 SETITEMS
//   STOP")
//
// Opcodes have pickletools' names, each followed by its argument: a number, a
// quoted text whose length is written automatically, or for the line forms the
// quoted line (GLOBAL 'os' 'system', INT '12'). LONG1 and LONG4 take a number,
// or the bytes themselves in quotes. Quoted text knows \xNN, \n, \\ and \'.
//
// For hostile pickles: BINUNICODE#500 'abc' writes the length 500 whatever
// follows (LONG4#-1 ''), HEX 80 04 and RAW 'bytes' write literal bytes, and
// STOP is not required. An invalid token aborts the test.
std::string pickle(std::string_view text);

}  // namespace postflight
