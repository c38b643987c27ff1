import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Tests stay off the network: the module comes from Go's cache or not at all. */
const env = { ...process.env, GOPROXY: 'off', GOSUMDB: 'off', GOFLAGS: '', GOWORK: 'off' };

function whyNot(): string | undefined {
  for (const module of ['sigs.k8s.io/agent-sandbox@v1.0.3', 'k8s.io/kubernetes@v1.34.4']) {
    const probe = spawnSync('go', ['mod', 'download', module], { cwd: '/', env });
    if (probe.error) return 'no Go on the PATH';
    if (probe.status !== 0) return `${module} is not in Go's cache; \`npm run import\` puts it there`;
  }
  return undefined;
}

const reason = whyNot();
const withProvider = reason === undefined ? test : test.skip;

withProvider(
  `imports/ and the schemas are what the Go modules of provider and Kubernetes give${reason === undefined ? '' : ` (skipped: ${reason})`}`,
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

test('the modules of the schemas are those of the test cluster, sums included', () => {
  const script = readFileSync(`${root}scripts/import.js`, 'utf8');
  const pins = [...script.matchAll(/module: '(.+)',\n {2}version: '(.+)',\n {2}sum: '(.+)',/g)].map((match) =>
    match.slice(1).join(' '),
  );
  const lines = ['agent-sandbox', 'kubernetes'].flatMap((name) =>
    readFileSync(`${root}test/cluster/modules/${name}/go.sum`, 'utf8').split('\n'),
  );
  expect(pins).toHaveLength(2);
  expect(pins.filter((pin) => !lines.includes(pin))).toEqual([]);
});
