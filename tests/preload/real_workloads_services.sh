# Workloads of real_program.sh: programs that load modules of others as they run: PHP and its extensions, Apache, PAM and
# the name service. Sourced by real_workloads.sh, which says what the functions are; open it when a plug-in fails under the
# preload.

# Once with PHP's own allocator, and once with all of its memory from malloc.
programs_php() { echo php; }
missing_php() { php -r 'foreach (["pdo_sqlite", "mbstring", "xml", "dom"] as $x) if (!extension_loaded($x)) echo "the $x of php ";'; }
workload_php() {
  php "$real_folder/work.php"
  USE_ZEND_ALLOC=0 php "$real_folder/work.php"
  php -d opcache.enable_cli=1 "$real_folder/work.php" | sha256sum
}

apache_modules=/usr/lib/apache2/modules

# write_apache_settings MODULE...: apache.conf and pages in the current folder, for a server at $port.
write_apache_settings() {
  local module
  {
    printf 'ServerRoot "%s"\nListen 127.0.0.1:%s\nServerName localhost\n' "$PWD" "$port"
    for module in "$@" authn_core authz_core mime dir alias env filter deflate headers rewrite include autoindex setenvif; do
      echo "LoadModule ${module}_module $apache_modules/mod_$module.so"
    done
    sed -e "s|@WORK@|$PWD|" "$real_folder/apache.conf"
  } > apache.conf
  mkdir -p pages/folder
  write_data 20000 > pages/data.txt
  echo '<p><!--#set var="n" value="7" -->number <!--#echo var="n" -->, <!--#include virtual="/folder/part.txt" --></p>' > pages/page.shtml
  echo 'a part' > pages/folder/part.txt
  touch pages/folder/file{1..30}
}

# Apache does not serve as root. The capability lets it reach what only root may read: the preloaded library, and the pages.
as_nobody() {
  [ "$(id -u)" = 0 ] || exec "$@"
  exec setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups --inh-caps +dac_override \
    --ambient-caps +dac_override "$@"
}

# serve_with_apache PATH...: fetches them over and over while the server loads its settings and modules again.
serve_with_apache() {
  local server status=0 fetched=0
  # At its end it sends SIGTERM to its whole process group: to the servers of other tests, too, if it had none of its own.
  (as_nobody setsid apache2 -f "$PWD/apache.conf" -DFOREGROUND) 2> stderr &
  server=$!
  end_at_exit "$server"
  until_ready curl -sf -o first "http://127.0.0.1:$port/data.txt"
  python3 "$real_folder/fetch.py" "$server" "$port" "$@" || fetched=$?
  # A graceful stop. At SIGTERM the main thread of a process closes the sockets of its workers, and a worker that ends a
  # connection just then has unmapped that socket: Apache crashes, on any malloc.
  kill -WINCH "$server" || true
  wait "$server" || status=$?
  echo "ended with status $status"
  grep -E 'exit signal|Segmentation|Aborted' log || true
  if [ "$fetched" != 0 ]; then
    echo "what the server said:"
    tail -n 30 stderr log
    return "$fetched"
  fi
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Processes, with PHP in them.
programs_apache() { echo apache2 curl setpriv setsid python3; }
seen_apache() { echo apache2; }
missing_apache() { compgen -G "$apache_modules/libphp*.so" > /dev/null || echo "the PHP module of apache2"; }
workload_apache() {
  mkdir unchecked && cd unchecked
  local port php
  port=$(free_port)
  php=$(compgen -G "$apache_modules/libphp*.so" | tail -n 1)
  write_apache_settings mpm_prefork
  cat >> apache.conf << END
LoadModule php_module $php
<FilesMatch "\.php$">
  SetHandler application/x-httpd-php
</FilesMatch>
END
  cp "$real_folder/work.php" pages/work.php
  serve_with_apache /data.txt /page.shtml /folder/ /work.php '/item/5?x=1'
}

# Threads, with Lua in them, and a proxy before the server itself.
programs_apache_threads() { programs_apache; }
seen_apache_threads() { echo apache2; }
workload_apache_threads() {
  mkdir unchecked && cd unchecked
  local port
  port=$(free_port)
  write_apache_settings mpm_event proxy proxy_http lua
  cat >> apache.conf << END
ProxyPass "/again/" "http://127.0.0.1:$port/" disablereuse=On
LuaMapHandler "^/lua/(\d+)$" "$PWD/work.lua"
END
  cat > work.lua << 'LUA'
function handle(request)
  local words = {}
  for i = 1, 2000 do words[#words + 1] = ("word %d"):format(i * 7919 % 997) end
  table.sort(words)
  request.content_type = "text/plain"
  request:puts(request:sha1(table.concat(words, ",")), "\n", table.concat(words, " ", 1, 50), "\n")
  return apache2.OK
end
LUA
  serve_with_apache /data.txt /page.shtml /folder/ /again/data.txt /again/page.shtml /lua/3 '/item/5?x=1'
}

# The modules that every login goes through. Most of what they do needs no right; how it ends is the same in any case.
programs_pam() { echo pamtester; }
workload_pam() {
  local user service operation status
  for service in other su; do
    for user in root nobody nonexistent; do
      for operation in acct_mgmt 'setcred(PAM_ESTABLISH_CRED)' 'open_session close_session'; do
        status=0
        # shellcheck disable=SC2086
        pamtester -v "$service" "$user" $operation < /dev/null 2>&1 || status=$?
        echo "$service $user $operation: $status"
      done
    done
  done
  status=0
  echo 'not the password' | pamtester other nobody authenticate 2>&1 || status=$?
  echo "authenticate: $status"
}

# Plug-ins of the name service, named at the call, so that no setting of the system counts.
programs_nss() { echo getent python3; }
seen_nss() { echo getent; }
missing_nss() { compgen -G '/usr/lib/*/libnss_myhostname.so.2' > /dev/null || echo "libnss-myhostname"; }
workload_nss() {
  local i
  getent -s hosts:myhostname ahosts localhost
  getent -s hosts:myhostname hosts 127.0.0.1
  for i in {1..20}; do getent -s hosts:myhostname ahosts "$(uname -n)" localhost _gateway "host$i.localhost" || echo "status $?"; done | sort -u
  getent -s 'hosts:files myhostname' hosts localhost nonexistent.localhost
  getent -s passwd:compat passwd root
  getent -s 'group:files compat' group root nogroup
}
