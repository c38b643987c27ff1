import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Tests stay off the network: the module comes from Go's cache or not at all. */
const env = { ...process.env, GOPROXY: 'off', GOSUMDB: 'off', GOFLAGS: '', GOWORK: 'off' };

function whyNot(): string | undefined {
  const probe = spawnSync('go', ['mod', 'download', 'sigs.k8s.io/agent-sandbox@v1.0.3'], { cwd: '/', env });
  if (probe.error) return 'no Go on the PATH';
  return probe.status === 0 ? undefined : "the provider's module is not in Go's cache; `npm run import` puts it there";
}

const reason = whyNot();
const withProvider = reason === undefined ? test : test.skip;

withProvider(
  `imports/ is what the provider's CRDs give${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  () => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/import.js', '--check'], {
      cwd: root,
      env,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  },
  120_000,
);

test('there is one file for each API group of the provider', () => {
  expect(readdirSync(`${root}imports`).sort()).toEqual(['agents.x-k8s.io.ts', 'extensions.agents.x-k8s.io.ts']);
});

test.each([
  ['agents.x-k8s.io', ['Sandbox']],
  ['extensions.agents.x-k8s.io', ['SandboxClaim', 'SandboxTemplate', 'SandboxWarmPool']],
])('all kinds of one group can be imported: %s', (group, kinds) => {
  const text = readFileSync(`${root}imports/${group}.ts`, 'utf8');
  expect([...text.matchAll(/^export class (\w+) extends ApiObject/gm)].map(([, kind]) => kind)).toEqual(kinds);
});
