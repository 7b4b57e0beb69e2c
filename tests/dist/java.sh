#!/usr/bin/env bash
# What lib/docs/languages.md says of Java: what lies in memory of malloc, what gives it back, and what is told at the end. Other collectors,
# compilers and threads on Sluice: tests/preload/real_workloads_languages.sh.
source "$(dirname "$0")/testing.sh"
command -v javac >/dev/null && command -v jcmd >/dev/null || skip "no JDK here (scripts/setup --release)"
tar -xzf "$files/sluice-$version-linux-$(uname -m).tar.gz" -C "$workspace" || fail "no binary archive"
prefix=$workspace/sluice-$version-linux-$(uname -m)
cat >"$workspace/Direct.java" <<'END'
// Direct.java: 200 MB outside Java's heap by "direct", in it by "heap". "wait" stays until it is killed.
class Direct {
  static Object kept;
  public static void main(String[] words) throws Exception {
    kept = words[0].equals("heap") ? new byte[200_000_000] : java.nio.ByteBuffer.allocateDirect(200_000_000);
    System.out.println("allocated");
    if (words.length > 1) Thread.sleep(300_000);
  }
}
END
javac -d "$workspace" "$workspace/Direct.java" || fail javac
java=(java -XX:NativeMemoryTracking=summary -Xmx400m -cp "$workspace" Direct)
peak() { sed -n 's/^ *"peak_live_bytes": \([0-9]*\).*/\1/p' "$1" | head -n 1; }

for kind in sluice sluice-secure; do
  for where in direct heap; do
    says allocated env LD_PRELOAD="$prefix/lib/lib$kind.so" SLUICE_STATS=json:"$workspace/$where" "${java[@]}" "$where"
  done
  (($(peak "$workspace/direct") > 200000000)) || fail "a direct buffer does not lie in memory of $kind"
  (($(peak "$workspace/heap") < 100000000)) || fail "an array of Java lies in memory of $kind"
done
says allocated "$prefix/bin/sluice" run -- "${java[@]}" direct

# The program that the page's table is of: the same comes of it on each malloc.
javac -nowarn -d "$workspace" "$tests/dist/NativeMemory.java" 2>"$workspace/log" || { cat "$workspace/log" && fail javac; }
packed=$(java -Xmx256m -cp "$workspace" NativeMemory 16) || fail NativeMemory
[[ $packed == "packed to "* ]] || fail "NativeMemory says $packed"
for kind in sluice sluice-secure; do says "$packed" env LD_PRELOAD="$prefix/lib/lib$kind.so" java -Xmx256m -cp "$workspace" NativeMemory 16; done

# The same while it runs, and when it is asked to end.
LD_PRELOAD=$prefix/lib/libsluice.so SLUICE_STATS=json:$workspace/ended "${java[@]}" direct wait >"$workspace/log" 2>&1 &
process=$!
for _ in {1..600}; do
  grep -q allocated "$workspace/log" && break
  kill -0 "$process" || fail "java ended: $(cat "$workspace/log")"
  sleep 0.1
done
says 'malloc: ' jcmd "$process" VM.native_memory summary
if jcmd "$process" help | grep -q System.trim_native_heap; then says 'Trim native heap: RSS' jcmd "$process" System.trim_native_heap; fi
kill -TERM "$process"
status=0
wait "$process" || status=$?
((status == 143)) || fail "java's exit status is $status"
(($(peak "$workspace/ended") > 200000000)) || fail "no statistics at SIGTERM"
echo "$0: passed"
