# Installs the build BUILD below AREA and then moves it to PREFIX, so that whatever the installed files name by its
# first place is missed. Run by the test package.install.
file(REMOVE_RECURSE ${AREA}/first ${AREA}/moved ${AREA}/consumer)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${AREA}/first/prefix COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${AREA}/moved)
file(RENAME ${AREA}/first/prefix ${PREFIX})
