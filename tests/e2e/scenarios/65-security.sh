# SPDX-License-Identifier: Apache-2.0
# The job of 28-security.sh has trained meanwhile, and its certificates have been replaced.
[ -n "${guarded_serial:-}" ] || { note 'left out: its first half did not get so far'; return; }
if [ -z "$own" ]; then
  note 'certificates of 48 hours: their replacement is left out on a cluster that is not ours'
  remove guarded
  return
fi
replaced_certificate() { [ "$(serial)" != "$guarded_serial" ]; }
eventually 320 'the certificates of the running job were replaced' replaced_certificate
from=$(field dtj/guarded '{.status.progress.step}')
eventually 30 'training goes on' past_step guarded $((${from:-0} + 50))
is 'no pod was made anew for it' "$guarded_before" "$(guarded_uids)"
is 'nothing counted as a failure' 0 "$(field dtj/guarded '{.status.restarts}')"
joined() { log_of guarded-worker-2 | grep -qiE 'step'; }
check 'another worker is asked for' k -n "$ns" scale dtj/guarded --replicas=3
eventually 60 'it joins with the new certificates' joined
# tasks read the files when they open a connection
says 'the ps has taken new files for it' "$(log_of guarded-ps-0)" 'new certificates from'
ps_uid=$(field pod/guarded-ps-0 '{.metadata.uid}')
another_ps() {
  local uid
  uid=$(field pod/guarded-ps-0 '{.metadata.uid}')
  [ -n "$uid" ] && [ "$uid" != "$ps_uid" ] && running guarded-ps-0
}
k -n "$ns" delete pod guarded-ps-0 --wait=false >/dev/null
eventually 60 'a ps is made anew' another_ps
from=$(field dtj/guarded '{.status.progress.step}')
eventually 90 'it is met by those who were there before' past_step guarded $((${from:-0} + 20))
remove guarded
