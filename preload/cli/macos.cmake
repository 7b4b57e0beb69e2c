# The sluice command of macOS: run, options and stats. The libraries that it uses are headers alone there.
set(SLUICE_COMMAND_HEADERS "" CACHE PATH "Folder with the headers of CLI11, fmt and nlohmann-json, where CMake finds no packages of them for the target")
add_executable(sluice_command
  main_macos.cpp subcommands.cpp documents.cpp help.cpp run_command.cpp program.cpp preloading_macos.cpp macho/image.cpp macho/insertion.cpp
  installation.cpp option_table.cpp options_command.cpp stats_command.cpp statistics_document.cpp dump.cpp printable.cpp
  measure/names.cpp measure/tables.cpp measure/terminal.cpp
  ${PROJECT_SOURCE_DIR}/lib/src/base/print.cpp ${PROJECT_SOURCE_DIR}/lib/src/stats/text_writer.cpp)
set_target_properties(sluice_command PROPERTIES OUTPUT_NAME sluice)
target_include_directories(sluice_command PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/lib/src ${PROJECT_SOURCE_DIR}/lib/include)
target_compile_definitions(sluice_command PRIVATE FMT_HEADER_ONLY=1)
set_source_files_properties(installation.cpp PROPERTIES COMPILE_DEFINITIONS
  "SLUICE_LIBRARY_FOLDER=\"${CMAKE_INSTALL_LIBDIR}\";SLUICE_DOCUMENTS_FOLDER=\"${CMAKE_INSTALL_DOCDIR}\";SLUICE_MULTIARCH=\"\";SLUICE_INTERFACE_MAJOR=${SLUICE_INTERFACE_MAJOR}")
if(SLUICE_COMMAND_HEADERS)
  target_include_directories(sluice_command SYSTEM PRIVATE ${SLUICE_COMMAND_HEADERS})
else()
  find_package(CLI11 REQUIRED)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(sluice_command PRIVATE CLI11::CLI11 fmt::fmt-header-only nlohmann_json::nlohmann_json)
endif()
target_link_libraries(sluice_command PRIVATE sluice_warnings)
install(TARGETS sluice_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT sluice_command)
