/** Everything that happens to pools and to what they are made of, as the API server tells it. */
import type { Manifest, ObjectMeta } from '../../../src/api/index.js';
import { cluster } from './cluster.js';
import type { Installation } from './installation.js';
import { watch } from './watch.js';
import type { Change } from './watch.js';

const extensions = '/apis/extensions.agents.x-k8s.io/v1beta1';
const collections = {
  tasks: ['/apis/core.orka.ai/v1alpha1', 'tasks'],
  pools: ['/apis/core.orka.ai/v1alpha1', 'tasks'],
  poolEvents: ['/apis/events.k8s.io/v1', 'tasks'],
  events: ['/api/v1', 'runtime'],
  claims: [extensions, 'runtime'],
  templates: [extensions, 'runtime'],
  sandboxes: ['/apis/agents.x-k8s.io/v1beta1', 'runtime'],
  pods: ['/api/v1', 'runtime'],
  secrets: ['/api/v1', 'runtime'],
} as const satisfies Readonly<Record<string, readonly [root: string, where: keyof Installation['namespaces']]>>;

type Chronicled = keyof typeof collections;

const resources: Readonly<Record<Chronicled, string>> = {
  tasks: 'tasks',
  pools: 'runtimepools',
  poolEvents: 'events',
  events: 'events',
  claims: 'sandboxclaims',
  templates: 'sandboxtemplates',
  sandboxes: 'sandboxes',
  pods: 'pods',
  secrets: 'secrets',
};

export interface Chronicle {
  /** Every version of every object of a kind, in the order in which they came. */
  readonly of: (kind: Chronicled) => readonly Change[];
  /** The first version that matches, of those that were seen or the moment it comes. */
  readonly first: (kind: Chronicled, matches: (change: Change) => boolean, seconds?: number) => Promise<Manifest>;
  readonly stop: () => void;
}

/** Begins with what is there. */
export function startChronicle({ namespaces }: Installation): Chronicle {
  const seen = new Map<Chronicled, Change[]>();
  const listeners = new Set<(kind: Chronicled, change: Change) => void>();
  const watches = (Object.keys(collections) as Chronicled[]).map((kind) => {
    const [root, where] = collections[kind];
    const changes: Change[] = [];
    seen.set(kind, changes);
    return watch(cluster, `${root}/namespaces/${namespaces[where]}/${resources[kind]}`, (change) => {
      changes.push(change);
      for (const listener of [...listeners]) listener(kind, change);
    });
  });
  const of = (kind: Chronicled): readonly Change[] => seen.get(kind) ?? [];
  return {
    of,
    first: (kind, matches, seconds = 120) =>
      new Promise((resolve, reject) => {
        const known = of(kind).find(matches);
        if (known) {
          resolve(known.object);
          return;
        }
        const listener = (of: Chronicled, change: Change) => {
          if (of !== kind || !matches(change)) return;
          end();
          resolve(change.object);
        };
        const timer = setTimeout(() => {
          end();
          reject(new Error(`what was waited for in ${kind} did not come within ${seconds} s`));
        }, seconds * 1000);
        const end = () => {
          clearTimeout(timer);
          listeners.delete(listener);
        };
        listeners.add(listener);
      }),
    stop: () => watches.forEach((one) => one.stop()),
  };
}

/** What an event says, and what it is about; the two APIs call it by different names. */
export function eventOf({ object }: Change): { readonly about: Partial<ObjectMeta>; readonly says: string } {
  const { regarding, involvedObject, note, message } = object as {
    readonly regarding?: Partial<ObjectMeta>;
    readonly involvedObject?: Partial<ObjectMeta>;
    readonly note?: string;
    readonly message?: string;
  };
  return { about: regarding ?? involvedObject ?? {}, says: note ?? message ?? '' };
}
