# What `cmake --install` puts where: libraries, a CMake package (find_package(sluice)) and sluice.pc. The headers are
# installed by lib/CMakeLists.txt, the command by preload/cli. Included last by the top level, when all targets are known;
# open it when a target is added that users should get.
#
# Each rule names its component, from which scripts/release makes packages: sluice_runtime (the shared libraries by the
# names that the loader asks for), sluice_development (what programs are built with), sluice_command, sluice_documents.
include(CMakePackageConfigHelpers)

set(sluice_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

# Users know each as sluice::NAME, by its EXPORT_NAME.
set(sluice_installed sluice_lib)
foreach(sluice_library sluice_preload sluice_secure_preload)
  if(TARGET ${sluice_library})
    list(APPEND sluice_installed ${sluice_library})
  endif()
endforeach()
if(TARGET sluice_static)
  list(APPEND sluice_installed sluice_static)
  # A linker takes from an archive only what the program itself refers to, and not what its shared libraries will: one
  # symbol of each source file of preload brings in all of them. gcc leaves the index of unwind tables, which stacks are
  # followed by, out of programs that are linked by -static, unless it is told.
  set(sluice_static_options -u,malloc,-u,mallinfo,-u,_Znwm,-u,sluice_version,--eh-frame-hdr)
  target_link_options(sluice_static INTERFACE $<$<NOT:$<PLATFORM_ID:Darwin>>:LINKER:${sluice_static_options}>
    $<$<PLATFORM_ID:Darwin>:LINKER:-force_load,$<TARGET_FILE:sluice::static>>)
endif()
install(TARGETS ${sluice_installed} EXPORT sluice-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sluice_runtime NAMELINK_COMPONENT sluice_development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sluice_development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${sluice_package_dir} COMPONENT sluice_development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sluice-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/sluice-config.cmake INSTALL_DESTINATION ${sluice_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/sluice-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/sluice-config.cmake ${PROJECT_BINARY_DIR}/package/sluice-config-version.cmake
  DESTINATION ${sluice_package_dir} COMPONENT sluice_development)

# The way from the folder of sluice.pc to the prefix, so that an installed tree can be moved.
file(RELATIVE_PATH sluice_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/sluice.pc.in ${PROJECT_BINARY_DIR}/package/sluice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sluice_development)

# Documents lie as they do here, so that their links lead to one another.
foreach(sluice_document README.md CHANGELOG.md SECURITY.md LICENSE lib/docs lib/include/sluice/README.md lib/src/stats/README.md
    lib/bindings/go/README.md lib/bindings/node/README.md lib/bindings/python/README.md lib/bindings/rust/README.md
    scenarios/README.md scenarios/results.md tests/preload/README.md)
  cmake_path(GET sluice_document PARENT_PATH sluice_folder)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${sluice_document})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${sluice_document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${sluice_folder} COMPONENT sluice_documents)
  else()
    install(FILES ${PROJECT_SOURCE_DIR}/${sluice_document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${sluice_folder} COMPONENT sluice_documents)
  endif()
endforeach()
# The web site, where scripts/site has made one before. Another one is there, or nothing is configured.
set(SLUICE_SITE ${PROJECT_SOURCE_DIR}/build/site CACHE PATH "Web site to install, made by scripts/site; none where build/site of the sources is not there")
if(NOT SLUICE_SITE STREQUAL "${PROJECT_SOURCE_DIR}/build/site" AND NOT EXISTS ${SLUICE_SITE}/index.html)
  message(FATAL_ERROR "SLUICE_SITE: there is no ${SLUICE_SITE}/index.html (scripts/site makes one)")
endif()
install(DIRECTORY ${SLUICE_SITE}/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html COMPONENT sluice_documents OPTIONAL)
