import type { Manifest } from '../../api/index.js';
import { attest } from '../../domain/attestation.js';
import { baseName, workspaceNames } from '../../domain/names.js';
import { get } from '../../kube/client.js';
import { watchedKinds } from '../world.js';
import type { WatchedName } from '../world.js';
import type { PoolWork } from './act.js';
import type { PodView } from './observation.js';

/**
 * Compares the chain claim → Sandbox → Pod as it is stored right now with what was rendered. Only a proven difference counts: what could
 * not be read is read again.
 * @returns whether the chain was all there
 */
export async function attestInstance({ o, options, memory, signal }: PoolWork, pod: PodView): Promise<boolean> {
  const { templateName, claimName } = workspaceNames(baseName(o.pool.metadata.namespace ?? '', o.pool.metadata.name));
  const read = (name: WatchedName, of: string) =>
    get(options.client, { ...watchedKinds[name], namespace: options.runtimeNamespace, name: of }, { signal });
  const [template, claim, sandbox, live] = await Promise.all([
    read('templates', templateName),
    read('claims', claimName),
    read('sandboxes', claimName),
    read('pods', pod.name),
  ]);
  if (!isLasting(template) || !isLasting(claim) || !isLasting(sandbox) || !isLasting(live) || live.metadata.uid !== pod.uid)
    return false;
  const mismatch = attest({ template, claim, sandbox, pod: live });
  memory.mismatch = mismatch && { podUid: pod.uid, finding: mismatch.finding };
  memory.attested = mismatch ? undefined : { podUid: pod.uid };
  return true;
}

function isLasting(object: Manifest | undefined): object is Manifest {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}
