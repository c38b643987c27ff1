import type { Manifest } from '../api/index.js';
import { podEndOf } from '../domain/pod-end.js';
import type { PodEnd } from '../domain/pod-end.js';

/** Pods whose ends are remembered. */
const mostPods = 1_000;
/** Latest ends of one Pod: its container may be started again and end again. */
const mostEnds = 10;

/**
 * How Pods ended, from every change that a watch reports. An end stays known after its Pod is gone, and after a later one hides it: a Pod's status
 * shows only the last end of a container. Standbys remember as well; a process that starts knows what the Pods still say.
 */
export class PodEnds {
  readonly #ends = new Map<string, readonly PodEnd[]>();

  /** A Pod came, changed or went; one that went without a word was deleted. */
  saw(before: Manifest | undefined, after: Manifest | undefined): void {
    const pod = after ?? before;
    const uid = pod?.metadata.uid;
    if (!pod || uid === undefined) return;
    const end = podEndOf(pod) ?? (after ? undefined : ({ cause: 'PodDeleted', says: 'its Pod was deleted' } as const));
    const known = this.#ends.get(uid) ?? [];
    if (!end || known.some((one) => isSame(one, end))) return;
    this.#ends.set(uid, [...known, end].slice(-mostEnds));
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > mostPods && oldest !== undefined) this.#ends.delete(oldest);
  }

  /** What came first: the rest followed from it. @param containerId of the supervisor that served; ends of others do not count */
  of(podUid: string, containerId?: string): PodEnd | undefined {
    const counts = (end: PodEnd) => containerId === undefined || end.containerId === undefined || end.containerId === containerId;
    return this.#ends.get(podUid)?.find(counts);
  }
}

function isSame(a: PodEnd, b: PodEnd): boolean {
  return a.cause === b.cause && a.containerId === b.containerId;
}
