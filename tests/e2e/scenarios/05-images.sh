# SPDX-License-Identifier: Apache-2.0
# The images: builds are reproducible, labels and SBOM are present, they run as a non-root user without a shell, and
# they do not exceed their maximum sizes.
[ -n "$own" ] || { note 'left out: the images are not made here'; return; }
inside() { tar -xOf "build/images/muster-$1.tar" layer0.tar | tar -tf -; }
config() { tar -xOf "build/images/muster-$1.tar" config.json; }
before=$(cd build/images && sha256sum muster-operator.tar muster-task.tar)
start=$(now)
IMAGE_ENGINE=none tools/images operator task cli >/dev/null || bad 'operator, task and cli are made'
is 'operator and task made again are the same, byte for byte' "$before" "$(cd build/images && sha256sum muster-operator.tar muster-task.tar)"
note "made again in $(since "$start") s"
for i in operator:40 task:80 cli:80; do
  most=${i#*:} i=${i%:*}
  size=$(stat -c %s "build/images/muster-$i.tar")
  check "muster-$i has $((size / 1000)) kB, at most $most MB" [ "$size" -le $((most * 1000000)) ]
  says "muster-$i says its version and licence" "$(config $i)" '"org.opencontainers.image.version":"[0-9].*"org.opencontainers.image.licenses":"Apache-2.0"'
  says "muster-$i runs as uid 65532" "$(config $i)" '"User":"65532:65532"'
  is "muster-$i has no shell" '' "$(inside $i | grep -E '/(sh|bash|busybox)$')"
  says "muster-$i carries its SBOM" "$(inside $i)" 'usr/share/doc/muster/sbom.spdx'
  # every library in the image belongs to a package of the SBOM
  mapfile -t packages < <(sed -n 's/^PackageName: //p' "build/images/muster-$i.spdx" | grep -vx "muster-$i")
  is "every library of muster-$i is of a package in the SBOM" '' "$(inside $i | grep -oE '[^/]+\.so[.0-9]*$' | grep -v libmuster | sort -u |
    comm -23 - <(dpkg -L "${packages[@]}" 2>/dev/null | sed 's#.*/##' | sort -u) | tr '\n' ' ')"
done
