import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { classStates } from './classes.js';
import type { ClassState } from './classes.js';

/** What is counted of the controller's surroundings. */
export interface PlatformMetrics {
  /** Once. */
  readonly build: (version: string) => void;
  /** Once. Asked at each scrape. */
  readonly classes: (list: () => readonly { readonly name: string; readonly state: ClassState }[]) => void;
  /** Once, with the kinds that are watched. */
  readonly watches: (kinds: readonly string[]) => void;
  /** A watch of a kind broke, and is opened again. */
  readonly watchBroke: (kind: string) => void;
}

/** Series of the build, the classes and the watches. */
export function platformMetrics(registers: Registry[]): PlatformMetrics {
  const build = new Gauge({
    name: 'orka_workspaces_build_info',
    help: '1, with the versions of this package and of Node.js.',
    labelNames: ['version', 'node'],
    registers,
  });
  let list: Parameters<PlatformMetrics['classes']>[0] = () => [];
  new Gauge({
    name: 'orka_workspaces_class_state',
    help: '1 for the state of the RuntimePoolClass, 0 for each other one.',
    labelNames: ['name', 'state'],
    registers,
    collect() {
      this.reset();
      for (const { name, state } of list()) for (const one of classStates) this.set({ name, state: one }, one === state ? 1 : 0);
    },
  });
  const reconnects = new Counter({
    name: 'orka_workspaces_watch_reconnects_total',
    help: 'Lists and watches that failed and were begun again, by kind.',
    labelNames: ['kind'],
    registers,
  });
  return {
    build: (version) => {
      build.set({ version, node: process.version }, 1);
    },
    classes: (of) => {
      list = of;
    },
    watches: (kinds) => {
      for (const kind of kinds) reconnects.inc({ kind }, 0);
    },
    watchBroke: (kind) => {
      reconnects.inc({ kind });
    },
  };
}
