# libsluice.dylib, libsluice-secure.dylib and libsluice.a, for macOS. The libraries are linked as C, so that no C++ runtime comes in: libSystem is
# all they need. From macOS 12 on the loader binds all functions of libSystem when a library is loaded, and none at its first
# call, which may be one of malloc.
set(SLUICE_INTERFACE_MAJOR 1)

# sluice_macho_library(TARGET OUTPUT_NAME CORE POLICY)
function(sluice_macho_library target output_name core policy)
  add_library(${target}_objects OBJECT macho_start.cpp macho_zone.cpp macho_blocks.cpp api.cpp)
  add_library(${target} SHARED macho.cpp $<TARGET_OBJECTS:${target}_objects> $<TARGET_OBJECTS:${core}> $<TARGET_OBJECTS:sluice_os>)
  foreach(part IN ITEMS ${target}_objects ${target})
    target_link_libraries(${part} PRIVATE sluice_core_flags ${policy})
  endforeach()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output_name} LINKER_LANGUAGE C
    SOVERSION ${SLUICE_INTERFACE_MAJOR} INSTALL_NAME_DIR @rpath BUILD_WITH_INSTALL_NAME_DIR ON)
  target_link_options(${target} PRIVATE -Wl,-dead_strip)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
sluice_macho_library(sluice_preload sluice sluice_core sluice_policy)
sluice_macho_library(sluice_secure_preload sluice-secure sluice_secure_core sluice_secure_policy)

add_library(sluice_static STATIC macho_static.cpp $<TARGET_OBJECTS:sluice_preload_objects> $<TARGET_OBJECTS:sluice_core>
  $<TARGET_OBJECTS:sluice_os>)
target_link_libraries(sluice_static PRIVATE $<BUILD_INTERFACE:sluice_core_flags> $<BUILD_INTERFACE:sluice_policy>)
target_include_directories(sluice_static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(sluice_static PROPERTIES OUTPUT_NAME sluice EXPORT_NAME static)

set_target_properties(sluice_preload PROPERTIES EXPORT_NAME preload)
set_target_properties(sluice_secure_preload PROPERTIES EXPORT_NAME secure_preload)
add_library(sluice::preload ALIAS sluice_preload)
add_library(sluice::secure_preload ALIAS sluice_secure_preload)
add_library(sluice::static ALIAS sluice_static)

add_subdirectory(cli)
