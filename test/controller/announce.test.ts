import { expect, test } from '@jest/globals';
import { createAnnouncer } from '../../src/controller/announce.js';
import { createLog } from '../../src/controller/log.js';
import type { KubeEvent } from '../../src/kube/events.js';

function bench() {
  const [events, lines, counts]: [KubeEvent[], { level: string; event: string }[], string[]] = [[], [], []];
  const announce = createAnnouncer({
    recorder: { record: (event) => events.push(event) },
    log: createLog('info', (line) => lines.push(JSON.parse(line) as { level: string; event: string })),
    metrics: { taskEnded: (reason) => counts.push(`ended ${reason}`), taskRefused: (reason) => counts.push(`refused ${reason}`) },
  });
  return { announce, events, lines: () => lines.map(({ level, event }) => `${level} ${event}`), counts };
}
const event = (kind: string, change: Partial<KubeEvent>): KubeEvent => ({
  regarding: { apiVersion: 'core.orka.ai/v1alpha1', kind, metadata: { name: 'one', namespace: 'a' } },
  type: 'Normal',
  reason: 'PromptStarted',
  action: 'Start',
  note: 'it runs',
  ...change,
});

test.each<[string, string, Partial<KubeEvent>, string, string[]]>([
  ['a prompt that starts', 'Task', {}, 'info PromptStarted', []],
  [
    'a Task that failed',
    'Task',
    { type: 'Warning', reason: 'RuntimeLost', action: 'Settle' },
    'warn RuntimeLost',
    ['ended RuntimeLost'],
  ],
  [
    'a refused Task',
    'Task',
    { type: 'Warning', reason: 'TaskRefused', action: 'Admit' },
    'warn TaskRefused',
    ['refused TaskRefused'],
  ],
  ['a drifted class', 'RuntimePoolClass', { type: 'Warning', reason: 'Drifted', action: 'Compile' }, 'warn Drifted', []],
])('%s is one event, one line, and the count of its reason', (_, kind, change, line, counted) => {
  const { announce, events, lines, counts } = bench();
  announce(event(kind, change));
  expect([events.length, lines(), counts]).toEqual([1, [line], counted]);
});
