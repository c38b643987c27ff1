/** What explains a failure on the cluster. */
import { writeSync } from 'node:fs';
import { kubectl } from './cluster.js';
import type { Installation } from './installation.js';
import { controllerLog } from './installed.js';

/** Runs `body`; when it fails, the error also says what the controller logged and how Tasks, pools and the provider's objects are. */
export async function explained<T>(installation: Installation, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw new Error(`${found}\n${await evidence(installation)}`, { cause: error });
  }
}

async function evidence(installation: Installation): Promise<string> {
  const { tasks, runtime } = installation.namespaces;
  const said = (args: readonly string[]) => kubectl(args).catch((error: unknown) => String(error));
  const ofPublisher = installation.publisher?.metadata.namespace;
  const publisher = ['-n', ofPublisher ?? '', '-l', 'orka.ai/network-role=workspace-publisher'];
  const parts: readonly (readonly [title: string, text: string])[] = [
    ['controller log', await controllerLog(installation, 80)],
    ['Tasks and pools', await said(['get', 'tasks.core.orka.ai,runtimepools.core.orka.ai', '-n', tasks, '-o', 'yaml'])],
    ['runtime namespace', await said(['get', 'sandboxclaims,sandboxes,pods', '-n', runtime, '-o', 'wide'])],
    ['events', await said(['get', 'events', '-n', runtime, '--sort-by=.lastTimestamp'])],
    ...(ofPublisher === undefined
      ? []
      : ([
          ['publisher', await said(['get', 'pods', ...publisher, '-o', 'wide'])],
          ['publisher log', await said(['logs', ...publisher, '--tail=60'])],
        ] as const)),
    ['sandbox log', await said(['logs', '-n', runtime, '-l', 'orka.ai/runtime-pool-uid', '--tail=40', '--prefix'])],
  ];
  return parts.map(([title, text]) => `--- ${title}\n${text.trimEnd()}`).join('\n');
}

/** Writes a line of progress beside what Jest collects. */
function tell(line: string): void {
  writeSync(2, `    ${line}\n`);
}

/** Tells each step with the seconds since the first one. */
export function stopwatch(what: string): (step: string) => void {
  const start = performance.now();
  return (step) => tell(`${what}: ${step} after ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
