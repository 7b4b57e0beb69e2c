# Writes the manual page: the template with the version and the table of options, which the command itself prints.
# cmake -DCOMMAND=sluice -DVERSION=1.2.3 -DTEMPLATE=sluice.1.in -DOUTPUT=sluice.1 -P manual.cmake
execute_process(COMMAND ${COMMAND} options --man OUTPUT_VARIABLE OPTIONS COMMAND_ERROR_IS_FATAL ANY)
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
