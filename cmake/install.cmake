# What `make install` installs and `make package` packages: the program, its man
# page and completions, which it generates itself, the licences, and the library
# with what belongs to it.

if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT TARGET postflight)
  return()
endif()

set(GENERATED ${CMAKE_BINARY_DIR}/generated)
set(GENERATED_FILES "")

# postflight_generates(<what> <file> <folder>) has the program write <file> by
# `postflight generate <what>`, and installs it in <folder>. The file appears
# under its name only when it is complete.
function(postflight_generates what file folder)
  add_custom_command(
    OUTPUT ${GENERATED}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${GENERATED}
    COMMAND postflight generate ${what} > ${GENERATED}/${file}.new
    COMMAND ${CMAKE_COMMAND} -E rename
            ${GENERATED}/${file}.new ${GENERATED}/${file}
    DEPENDS postflight
    COMMENT "Generating ${file}"
    VERBATIM)
  list(APPEND GENERATED_FILES ${GENERATED}/${file})
  set(GENERATED_FILES ${GENERATED_FILES} PARENT_SCOPE)
  if(folder)
    install(FILES ${GENERATED}/${file} DESTINATION ${folder})
  endif()
endfunction()

postflight_generates(bash postflight
  ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
postflight_generates(zsh _postflight
  ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
postflight_generates(fish postflight.fish
  ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
postflight_generates(man postflight.1 "")

# Debian wants manual pages compressed, and without a time in them.
add_custom_command(
  OUTPUT ${GENERATED}/postflight.1.gz
  COMMAND gzip -9nkf ${GENERATED}/postflight.1
  DEPENDS ${GENERATED}/postflight.1
  VERBATIM)
install(FILES ${GENERATED}/postflight.1.gz
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

add_custom_target(generated ALL
  DEPENDS ${GENERATED_FILES} ${GENERATED}/postflight.1.gz)

install(TARGETS postflight)
# Links with the names of the programs that it replaces, for those who put this
# folder on their PATH.
set(COMPATIBILITY lib/postflight/bin)
install(DIRECTORY DESTINATION ${COMPATIBILITY})
install(CODE "
  file(CREATE_LINK ../../../${CMAKE_INSTALL_BINDIR}/postflight
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${COMPATIBILITY}/torchfrtrace\"
    SYMBOLIC)")
install(PROGRAMS contrib/bin/strobeclient DESTINATION ${COMPATIBILITY})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

include(cmake/install_library.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "postflight maintainers <postflight@localhost>")
set(CPACK_PACKAGE_DESCRIPTION "\
It reads what the job left behind, flight-recorder dumps and checkpoints, and
shows what is in them, without running any of it.")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34)")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/triggers)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
# Independent of the umask.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
include(CPack)
