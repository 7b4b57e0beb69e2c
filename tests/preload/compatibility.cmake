# What breaks other drop-in mallocs, row by row; README.md here says which test holds which row. Included by
# CMakeLists.txt, whose functions it uses.

# Also with exact counts, which take other ways through the heap.
foreach(name IN ITEMS children fiber promised_calls sized_free small_stack)
  sluice_preload_test(${name})
  target_link_libraries(${name}_test PRIVATE sluice_lib)
  add_test(NAME preload.${name}.SLUICE_STATS COMMAND ${name}_test)
  set_tests_properties(preload.${name}.SLUICE_STATS PROPERTIES LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT}
    ENVIRONMENT "LD_PRELOAD=${SLUICE_PRELOAD_LIBRARY};SLUICE_STATS=json:/dev/null")
endforeach()
target_link_options(small_stack_test PRIVATE -Wl,-z,now) # the loader would bind each function on the stack that is measured
# Where the system refuses what it is asked for, other ways are gone: pages are copied, and what is mapped is asked for.
foreach(library IN ITEMS preload secure)
  set(variables "LD_PRELOAD=${SLUICE_PRELOAD_LIBRARY}")
  if(library STREQUAL "secure")
    set(variables "LD_PRELOAD=$<TARGET_LINKER_FILE:sluice_secure_preload>;SLUICE_ABORT_ON_CORRUPTION=0")
    add_test(NAME secure.small_stack COMMAND small_stack_test)
    set_tests_properties(secure.small_stack PROPERTIES LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT} ENVIRONMENT "${variables}")
  endif()
  foreach(form IN ITEMS mremap_dontunmap mremap madvise mincore)
    add_test(NAME ${library}.small_stack.without_${form} COMMAND old_kernel EINVAL ${form} -- $<TARGET_FILE:small_stack_test>)
    set_tests_properties(${library}.small_stack.without_${form} PROPERTIES LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT}
      SKIP_RETURN_CODE 77 ENVIRONMENT "${variables}")
  endforeach()
endforeach()

sluice_preload_script(sanitizers headers=${PROJECT_SOURCE_DIR}/lib/include
  entry_points=${CMAKE_CURRENT_SOURCE_DIR}/entry_points.cpp)

add_executable(traffic traffic.cpp)
sluice_preload_program(traffic)
sluice_preload_script(debugger traffic=$<TARGET_FILE:traffic>)

add_executable(planted_faults planted_faults.c)
sluice_preload_program(planted_faults)
target_compile_options(planted_faults PRIVATE -g)
sluice_preload_script(valgrind planted_faults=$<TARGET_FILE:planted_faults> traffic=$<TARGET_FILE:traffic>)

add_executable(resource_limits resource_limits.c)
target_compile_definitions(resource_limits PRIVATE _GNU_SOURCE)
sluice_preload_program(resource_limits)
sluice_preload_script(resource_limits resource_limits=$<TARGET_FILE:resource_limits>)

# Scripts that hold for both libraries.
foreach(name IN ITEMS changed_limits kept_memory)
  add_executable(${name} ${name}.c)
  sluice_preload_program(${name})
  sluice_preload_script(${name} ${name}=$<TARGET_FILE:${name}>)
  add_test(NAME secure.${name} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.py
    libsluice=$<TARGET_LINKER_FILE:sluice_secure_preload> ${name}=$<TARGET_FILE:${name}>)
  set_tests_properties(secure.${name} PROPERTIES LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT})
endforeach()

add_executable(entry_points entry_points.cpp)
sluice_preload_program(entry_points)
target_link_libraries(entry_points PRIVATE sluice_lib)
sluice_preload_script(other_allocators entry_points=$<TARGET_FILE:entry_points> traffic=$<TARGET_FILE:traffic>
  first_call=$<TARGET_FILE:first_call> loading=$<TARGET_FILE:loading>
  allocating_library=$<TARGET_FILE:allocating_library>)

add_executable(namespaces namespaces.c)
target_compile_definitions(namespaces PRIVATE _GNU_SOURCE)
sluice_preload_program(namespaces)
add_dependencies(namespaces allocating_library)
add_test(NAME preload.namespaces COMMAND namespaces $<TARGET_FILE:allocating_library>)
set_tests_properties(preload.namespaces PROPERTIES LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT} SKIP_RETURN_CODE 77
  ENVIRONMENT "LD_PRELOAD=${SLUICE_PRELOAD_LIBRARY}")

foreach(name IN ITEMS ending glibc_settings)
  file(GLOB source ${name}.c*)
  add_executable(${name} ${source})
  target_compile_definitions(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
  sluice_preload_program(${name})
  sluice_preload_script(${name} ${name}=$<TARGET_FILE:${name}>)
endforeach()
target_compile_options(glibc_settings PRIVATE -Wno-deprecated-declarations)

get_target_property(core_sources sluice_core SOURCES)
list(FILTER core_sources EXCLUDE REGEX "^src/os/")
add_test(NAME preload.musl COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/musl.sh ${PROJECT_SOURCE_DIR}
  ${PROJECT_BINARY_DIR}/preload/exports.map ${SLUICE_PRELOAD_LIBRARY} ${core_sources})
set_tests_properties(preload.musl PROPERTIES COST ${SLUICE_LONG_TEST} LABELS preload TIMEOUT ${SLUICE_TEST_TIMEOUT} SKIP_RETURN_CODE 77)

sluice_preload_script(ignored_preload)

# Names that README.md gives; some exist with the command and the arena only.
if(TARGET sluice_command AND SLUICE_ARENA)
  add_test(NAME style.compatibility COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/compatibility_test.py
    ${PROJECT_BINARY_DIR})
  set_tests_properties(style.compatibility PROPERTIES LABELS style TIMEOUT ${SLUICE_TEST_TIMEOUT})
endif()
