import { supervisorUrl } from '../../harness/address.js';
import { createHarnessClient } from '../../harness/client.js';
import type { HarnessClient } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import { instant } from '../../lib/instant.js';
import { sleep } from '../../kube/clock.js';
import type { PoolWork } from './act.js';
import type { AuthMaterial } from './memory.js';
import type { PodView } from './observation.js';

/** How long one step waits for an instance that does not answer yet, and how often it asks. */
const patience = 3_000;
const [firstPause, longestPause] = [25, 50];
/** A policy that is not enforced yet drops packets; waiting for the answer to one would wait for nothing. */
const perTry = 1_500;

/**
 * Delivers the credentials of this epoch to an attested Pod that is bound to them. A repeat is answered like the first, so it is asked
 * until there is an answer. Source: workload.md §5.
 */
export async function seedInstance(work: PoolWork, pod: PodView): Promise<void> {
  const { memory, options, o } = work;
  const { token } = memory;
  const auth = memory.auth.get(options.epoch);
  const bound = o.recorded.instance;
  // Nothing is sent to a Pod that is not the attested and bound one, whatever was decided.
  if (!auth || auth === 'lost' || !token || 'says' in token || memory.attested?.podUid !== pod.uid) return;
  if (
    !auth.bootstrap ||
    !bound ||
    bound === 'unreadable' ||
    bound.workloadUID !== pod.uid ||
    bound.authSecretUID !== auth.secretUid
  )
    return;
  const delivery = {
    signingSeed: auth.bootstrap.signingSeed,
    nonce: auth.bootstrap.nonce,
    credentials: { ...auth.credentials, providerToken: token.value },
  };
  const client = createHarnessClient({ baseUrl: supervisorUrl(pod.address ?? '') });
  try {
    const result = await asked(work, (signal) => client.bootstrap(delivery, { timeout: perTry, signal }));
    memory.seeding = result === 'conflict' ? 'conflict' : undefined;
    if (result !== 'conflict') {
      memory.seeded = { podUid: pod.uid, containerId: pod.containerId };
      memory.probe = undefined;
    }
  } catch (error) {
    memory.seeding = { failedAt: options.clock.now(), says: reasonOf(error) };
  } finally {
    client.close();
  }
}

/** Looks at an instance with the credentials of its own epoch. */
export async function probeInstance(work: PoolWork, pod: PodView): Promise<void> {
  const { memory, options } = work;
  const before = memory.probe?.podUid === pod.uid ? memory.probe : undefined;
  const times = (failed: boolean) => {
    const at = options.clock.now();
    return {
      podUid: pod.uid,
      containerId: pod.containerId,
      at,
      since: before && 'error' in before === failed ? before.since : at,
    };
  };
  try {
    memory.probe = await withInstance(work, pod, async (client) => {
      const capabilities = await asked(work, (signal) => client.capabilities({ timeout: perTry, signal }));
      const { runtimeProfileDigest } = capabilities;
      const status = await client.status({ runtimeProfileDigest }, { signal: work.signal });
      return { ...times(false), capabilities, status };
    });
  } catch (error) {
    memory.probe = { ...times(true), error: reasonOf(error) };
  }
}

/** Asks an instance to take nothing more and to end what it has. Its answer is looked at by the next probe. */
export async function drainInstance(work: PoolWork, pod: PodView, reason: string): Promise<void> {
  const { memory, options } = work;
  const { probe } = memory;
  if (!probe || 'error' in probe) return;
  const { fence } = probe.status;
  const operation = {
    fence,
    operationID: `runtime-pool-drain-${fence.runtimePoolGeneration}`,
    expiresAt: instant(options.clock.now() + 60_000),
  };
  try {
    await withInstance(work, pod, (client) => client.drain(operation, reason, { signal: work.signal, timeout: 10_000 }));
    memory.probe = undefined;
  } catch (error) {
    const now = options.clock.now();
    memory.probe = { podUid: pod.uid, containerId: pod.containerId, at: now, since: now, error: reasonOf(error) };
  }
}

async function withInstance<T>(work: PoolWork, pod: PodView, use: (client: HarnessClient) => Promise<T>): Promise<T> {
  const auth = pod.identity && work.memory.auth.get(pod.identity.controllerEpoch);
  if (!auth || auth === 'lost') throw new Error('its credentials are not known');
  const client = clientOf(pod.address ?? '', auth);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

export function clientOf(podAddress: string, auth: AuthMaterial): HarnessClient {
  return createHarnessClient({ baseUrl: supervisorUrl(podAddress), credentials: auth.credentials });
}

/** Asks again while nothing was written, or nobody answered, until patience ends. Only for what may be repeated. */
async function asked<T>(work: PoolWork, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock } = work.options;
  const end = clock.elapsed() + patience;
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
    try {
      return await ask(work.signal);
    } catch (error) {
      const passing = error instanceof HarnessError && ['transport', 'timeout', 'http'].includes(error.code);
      if (!passing || clock.elapsed() >= end || work.signal.aborted) throw error;
    }
    await sleep(clock, pause, work.signal);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
