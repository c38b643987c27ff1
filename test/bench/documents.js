// Reading many documents for `plan`, against the parser alone. `npm run bench`; numbers move with the machine, ratios hardly.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readDocuments } from '../../lib/cli/plan-input.js';

const task = `apiVersion: core.orka.ai/v1alpha1
kind: Task
metadata: { name: task, namespace: team }
spec: { type: agent, agentRef: { name: agent-0 }, prompt: x }
`;
const agent = (n) => `apiVersion: core.orka.ai/v1alpha1
kind: Agent
metadata: { name: agent-${n}, namespace: team }
spec:
  runtime: { type: codex, defaultMaxTurns: 1, defaultAllowBash: true }
  model: { name: gpt-5.5 }
---
`;
const textOf = (count) => `${Array.from({ length: count }, (_, n) => agent(n)).join('')}${task}`;

/** Processor time in seconds, which a busy machine changes less than the clock; the median of three. */
function seconds(work) {
  const times = Array.from({ length: 3 }, () => {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000_000;
  });
  return times.sort((a, b) => a - b)[1];
}

const folder = mkdtempSync(join(tmpdir(), 'orka-bench-'));
const rows = [5000, 20_000].map((count) => {
  const text = textOf(count);
  const file = join(folder, `${count}.yaml`);
  writeFileSync(file, text);
  const ours = seconds(() => readDocuments([file], undefined));
  const parser = seconds(() => parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS()));
  return { count, ours, parser };
});
rmSync(folder, { recursive: true, force: true });
const [few] = rows;
console.log('\nReading a Task and its Agents: parsed, checked, defaults filled in; the goal is under 5 s for 20,000\n');
console.table(
  rows.map(({ count, ours, parser }) => ({
    Agents: count,
    'ours (s)': ours.toFixed(2),
    'parser alone (s)': parser.toFixed(2),
    'ours / parser': `${(ours / parser).toFixed(1)} x`,
    'per Agent, against 5,000 (linear = 1)': `${(ours / count / (few.ours / few.count)).toFixed(2)} x`,
  })),
);
