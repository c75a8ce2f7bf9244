# What others build against: the library, its headers, CMake package and
# pkg-config file, and what documents them.
include(CMakePackageConfigHelpers)

set(PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/postflight)

set_target_properties(postflight_shared PROPERTIES EXPORT_NAME postflight)
target_include_directories(postflight_shared INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS postflight_shared EXPORT postflight
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT library)
install(EXPORT postflight NAMESPACE postflight:: DESTINATION ${PACKAGE}
        FILE postflight-targets.cmake COMPONENT library)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT library FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/postflight-config.cmake.in
  ${CMAKE_BINARY_DIR}/postflight-config.cmake INSTALL_DESTINATION ${PACKAGE})
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/postflight-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/postflight-config.cmake
              ${CMAKE_BINARY_DIR}/postflight-config-version.cmake
        DESTINATION ${PACKAGE} COMPONENT library)

file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/postflight.pc.in ${CMAKE_BINARY_DIR}/postflight.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/postflight.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/generated/libpostflight.3.gz
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/docs/man/libpostflight.3
          > ${CMAKE_BINARY_DIR}/generated/libpostflight.3.gz
  DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/libpostflight.3
  VERBATIM)
add_custom_target(library_man ALL
  DEPENDS ${CMAKE_BINARY_DIR}/generated/libpostflight.3.gz)
install(FILES ${CMAKE_BINARY_DIR}/generated/libpostflight.3.gz
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT library)

install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library
        FILES_MATCHING PATTERN "*.md" PATTERN man EXCLUDE
        PATTERN schema EXCLUDE)
install(DIRECTORY docs/schema/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/postflight/schema
        COMPONENT library FILES_MATCHING PATTERN "*.json")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT library)
