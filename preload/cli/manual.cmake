# Writes the manual page: the template with the version, and with the options of the command and of the library, which the
# command itself prints.
# cmake -DCOMMAND=sluice -DVERSION=1.2.3 -DTEMPLATE=sluice.1.in -DOUTPUT=sluice.1 -P manual.cmake
foreach(part IN ITEMS SYNOPSIS RUN COMPARE BENCH PROFILE LEAKS ADVISE ATTACH TOP)
  string(TOLOWER ${part} kind)
  execute_process(COMMAND ${COMMAND} document ${kind} OUTPUT_VARIABLE ${part} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${COMMAND} options --man OUTPUT_VARIABLE OPTIONS COMMAND_ERROR_IS_FATAL ANY)
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
