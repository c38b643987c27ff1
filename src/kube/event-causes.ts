/** Which events tell of the same cause, so that they are counted instead of written again. */
import type { Manifest } from '../api/index.js';

/** What tells one event from another. */
export interface EventIdentity {
  readonly regarding: Manifest;
  readonly type: string;
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** Causes of one object, type, reason and action that have events of their own at a time. Source: client-go's aggregator. */
const mostAlike = 10;
/** Milliseconds without an event after which the causes of a group are forgotten. */
const groupEnds = 600_000;
const manyGroups = 1_000;

/** Marks the event that stands for all further causes of its group. */
export const combinedMark = '(combined from similar events) ';

/** Identity of an object across its events. */
export function objectOf({ apiVersion, kind, metadata: { namespace, name, uid } }: Manifest): string {
  return JSON.stringify([apiVersion, kind, namespace, name, uid]);
}

/**
 * A note without what differs from one try to the next: numbers, digests, generated names and times. Two notes of one cause are equal after it.
 */
function causeOfNote(note: string): string {
  return note.replace(/\b(?=[a-z0-9:.+-]*\d)[a-z0-9:.+-]+\b/gi, '#');
}

/** Answers the key of an event's cause. Keeps a bounded number of groups. */
export class EventCauses {
  readonly #groups = new Map<string, { readonly causes: Set<string>; seenAt: number }>();

  /** @param now in elapsed milliseconds @returns `combined`: the group has its most causes, and the event stands for several */
  keyOf(event: EventIdentity, now: number): { readonly key: string; readonly combined: boolean } {
    const group = JSON.stringify([objectOf(event.regarding), event.type, event.reason, event.action]);
    const known = this.#groups.get(group);
    const causes = known && now - known.seenAt < groupEnds ? known.causes : new Set<string>();
    this.#groups.delete(group);
    this.#groups.set(group, { causes, seenAt: now });
    dropFirst(this.#groups, manyGroups);
    const cause = causeOfNote(event.note);
    const combined = !causes.has(cause) && causes.size >= mostAlike;
    if (!combined) causes.add(cause);
    return { key: JSON.stringify([group, combined ? null : cause]), combined };
  }
}

/** Removes and returns the oldest entries of a map that has more than `most`. */
export function dropFirst<T>(map: Map<string, T>, most: number): readonly T[] {
  const dropped: T[] = [];
  for (const [key, value] of map) {
    if (map.size <= most) break;
    map.delete(key);
    dropped.push(value);
  }
  return dropped;
}
