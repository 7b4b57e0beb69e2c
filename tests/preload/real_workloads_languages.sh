# Workloads of real_program.sh: language runtimes with threads, collectors and forks. Sourced by real_workloads.sh, which
# says what the functions are; open it when an interpreter or a virtual machine fails under the preload.

programs_node_workers() { echo node; }
workload_node_workers() { node "$real_folder/workers.js"; }

# A program in one file of source needs no JDK. Its memory is small, so that the collectors are busy.
programs_java() { echo java; }
run_java() { java -Xmx48m -XX:-UsePerfData "$@" "$real_folder/Threads.java"; }
workload_java() { run_java -XX:+UseG1GC; }

# Under each collector and each compiler; takes a minute.
programs_java_whole() { programs_java; }
workload_java_whole() {
  run_java -XX:+UseG1GC -XX:+AlwaysPreTouch
  run_java -XX:+UseParallelGC -XX:TieredStopAtLevel=1
  run_java -XX:+UseSerialGC -XX:-TieredCompilation
  run_java -XX:+UseZGC
  run_java -Xint -XX:NativeMemoryTracking=summary
}

programs_ruby() { echo ruby; }
workload_ruby() { ruby --disable-gems "$real_folder/threads.rb"; }

programs_perl_threads() { echo perl; }
workload_perl_threads() { perl "$real_folder/threads.pl"; }

# CPython's own tests, of the system's python3. Prints how each one ended. One of them wants to know all open descriptors,
# of which a duplicate of stderr for statistics is one.
missing_cpython() { /usr/bin/python3 -c 'import test.test_ctypes' 2> /dev/null || echo "the test package of python3"; }
run_python_tests() {
  mkdir unchecked && cd unchecked
  HOME="$PWD" TMPDIR="$PWD" /usr/bin/python3 -m test -q -j2 --timeout 1500 --tempdir "$PWD" --junit-xml "$PWD/results.xml" \
    "$@" -i test_pass_fds_redirected > log 2>&1 || true
  /usr/bin/python3 "$real_folder/outcomes.py" results.xml
}

programs_cpython() { echo /usr/bin/python3; }
seen_cpython() { echo python3; }
workload_cpython() {
  run_python_tests -m 'ctypes.*' -m '*.ThreadTests.*' -m '*.ThreadJoinOnShutdown.*' -m '*.SubinterpThreadingTests.*' \
    -m '*.POSIXProcessTestCase.*' -m '*.WithProcessesTestPool.*' -m '*.WithThreadsTestPool.*' -m '*.WithProcessesTestHeap.*' \
    -m '*.WithProcessesTestSharedMemory.*' -m '*.WithProcessesTestSemaphore.*' \
    -i '*timeout*' -i '*_dead' -i '*repeated_call*' -i '*no_failfast*' -i '*nondaemon*' \
    test_ctypes test_threading test_subprocess test_multiprocessing_fork
}

# All of them, and more; takes minutes.
missing_cpython_whole() { missing_cpython; }
programs_cpython_whole() { programs_cpython; }
seen_cpython_whole() { seen_cpython; }
workload_cpython_whole() {
  run_python_tests test_ctypes test_threading test_subprocess test_multiprocessing_fork test_multiprocessing_forkserver \
    test_concurrent_futures test_thread test_threading_local test_queue test_gc test_capi test_sqlite test_zlib test_lzma \
    test_bz2 test_ssl test_hashlib test_mmap test_buffer test_memoryview test_array test_pickle test_json test_decimal \
    test_xml_etree_c test_fork1 test_posix test_signal test_faulthandler test_tracemalloc test_embed
}
