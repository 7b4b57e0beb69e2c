# libsluice.dylib, for macOS. It is linked as C, so that no C++ runtime comes in: libSystem is all it needs. From
# macOS 12 on the loader binds all functions of libSystem when the library is loaded, and none at its first call, which
# may be one of malloc.
set(SLUICE_INTERFACE_MAJOR 1)
add_library(sluice_preload_objects OBJECT macho.cpp macho_zone.cpp macho_blocks.cpp api.cpp)
target_link_libraries(sluice_preload_objects PRIVATE sluice_core_flags sluice_policy)
add_library(sluice_preload SHARED $<TARGET_OBJECTS:sluice_preload_objects> $<TARGET_OBJECTS:sluice_core> $<TARGET_OBJECTS:sluice_os>)
set_target_properties(sluice_preload PROPERTIES OUTPUT_NAME sluice EXPORT_NAME preload LINKER_LANGUAGE C
  SOVERSION ${SLUICE_INTERFACE_MAJOR} INSTALL_NAME_DIR @rpath BUILD_WITH_INSTALL_NAME_DIR ON)
target_link_options(sluice_preload PRIVATE -Wl,-dead_strip)
add_library(sluice::preload ALIAS sluice_preload)
target_include_directories(sluice_preload INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
