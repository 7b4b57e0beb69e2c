# Builds the libraries in BUILD and copies them to OUTPUT; run by meson.build with `cmake -P`. Meson has brought a ninja.
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCES} -B ${BUILD} -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_BUILD_TYPE=Release -DSLUICE_TESTS=OFF -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF -DSLUICE_WERROR=OFF COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target sluice_static sluice_preload sluice_secure_preload
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB libraries ${BUILD}/lib/libsluice*)
file(COPY ${libraries} DESTINATION ${OUTPUT})
