# postflight_precompile(<target> <owner> <header>...) parses the headers that
# nearly every file includes once, in <owner>, for all targets that name it.
#
# Not for the release, which is built with every warning on: behind a precompiled
# header the optimizer no longer knows which code is the system's, so that the
# warnings below have to be turned off. Not for clang, whose presets show whether
# each file includes what it needs, and not under a launcher such as ccache,
# which does not support it.
function(postflight_precompile target owner)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_CXX_COMPILER_LAUNCHER
     OR CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wno-stringop-overread
    -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict
    -Wno-maybe-uninitialized)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
