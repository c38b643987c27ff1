import { randomBytes } from 'node:crypto';
import type { Manifest } from '../../api/index.js';
import { attest, attestRendered } from '../../domain/attestation.js';
import type { Materialization } from '../../domain/attestation.js';
import { baseName, workspaceNames } from '../../domain/names.js';
import { admittedDigest, attestAdmitted } from '../../domain/pod-attestation.js';
import type { Mismatch } from '../../domain/pod-attestation.js';
import { expectedPod } from '../../domain/provider-pod.js';
import { get } from '../../kube/client.js';
import { create } from '../../kube/create.js';
import { KubeError } from '../../kube/errors.js';
import type { Digest } from '../../lib/sha256.js';
import { watchedKinds } from '../world.js';
import type { WatchedName } from '../world.js';
import type { PoolWork } from './act.js';
import type { PodView } from './observation.js';

/**
 * Compares the chain claim → Sandbox → Pod as it is stored right now with what was rendered. Only a proven difference counts: what could
 * not be read is read again, and where admission could not be asked nothing is known.
 * @returns whether the chain was all there
 */
export async function attestInstance(work: PoolWork, pod: PodView): Promise<boolean> {
  const { o, options, compiled, memory, signal } = work;
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
  const chain = { template, claim, sandbox, pod: live };
  const aware = compiled?.spec.attestation === 'AdmissionAware';
  const { mismatch, accepted, undecided } = aware ? await askAdmission(work, chain) : { mismatch: attest(chain) };
  const podUid = pod.uid;
  const count = memory.undecided?.podUid === podUid ? memory.undecided.count + 1 : 1;
  memory.mismatch = mismatch && { podUid, finding: mismatch.finding };
  memory.undecided = undecided === undefined ? undefined : { podUid, at: options.clock.now(), count, says: undecided };
  memory.attested = (mismatch ?? memory.undecided) ? undefined : { podUid, ...(accepted === undefined ? {} : { accepted }) };
  return true;
}

/** Either a proven difference, or a Pod that admission makes just so, or why it could not be asked. */
interface Verdict {
  readonly mismatch?: Mismatch | undefined;
  readonly accepted?: Digest;
  readonly undecided?: string;
}

/** Milliseconds; a webhook has 10 s by default. */
const answerWithin = 15_000;

async function askAdmission({ options, signal }: PoolWork, chain: Materialization): Promise<Verdict> {
  const changed = attestRendered(chain);
  if (changed) return { mismatch: changed };
  const { pod } = chain;
  const expected = expectedPod(chain.sandbox);
  // A dry run under the name of a Pod that is there is refused.
  const named = { ...expected, metadata: { ...expected.metadata, name: unusedName(pod.metadata.name) } };
  try {
    const asked = { manager: options.manager, dryRun: true, timeout: answerWithin, signal };
    const mismatch = attestAdmitted(pod, await create(options.client, named, asked));
    return mismatch ? { mismatch } : { accepted: admittedDigest(pod) };
  } catch (error) {
    if (!(error instanceof KubeError) || error.code === 'aborted') throw error;
    return { undecided: error.message };
  }
}

/** As long as the Pod's own, since some read a length from it; its end is chance, so that it can be told in an answer. */
function unusedName(name: string): string {
  const end = randomBytes(6).toString('hex');
  return `${name.slice(0, -end.length)}${end}`;
}

function isLasting(object: Manifest | undefined): object is Manifest {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}
