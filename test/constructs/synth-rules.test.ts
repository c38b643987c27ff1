import { describe, expect, test } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiObject, App, Chart, Testing } from 'cdk8s';
import type { Construct } from 'constructs';
import { ControllerInstall } from '../../src/constructs/install/controller-install.js';
import { PlainPool } from '../../src/constructs/plain-pool.js';
import { Resource } from '../../src/constructs/resource.js';
import type { Rule } from '../../src/constructs/rules/rule.js';
import { Sandbox } from '../../src/constructs/sandbox.js';
import { SandboxTemplate } from '../../src/constructs/sandbox-template.js';
import { WorkspacePool } from '../../src/constructs/workspace-pool.js';
import type { Manifest } from '../../src/api/index.js';
import { plainPlaceholders, workspacePlaceholders } from '../../src/domain/placeholders.js';
import { manifestsOf } from '../../src/render/app.js';
import { fromManifest } from '../support/from-manifest.js';
import { poolClass } from '../support/objects.js';
import { claim, podTemplate, pool, sandbox, template } from '../support/rule-cases.js';

const installProps = {
  namespaces: { controller: 'orka-system', runtime: 'orka-runtimes', tasks: ['team-a'] },
  image: `registry.example/controller@sha256:${'c'.repeat(64)}`,
  replicas: 1,
  apiPort: 8080,
  idlePoolTtl: '15m',
  defaultProvider: 'agent-sandbox',
  gates: { agentSandbox: true, workspaceDispatch: true },
  classes: [poolClass()],
} as const;
const image = 'registry.example/agent:1';
const plainApp = (): { readonly app: App; readonly chart: Chart } => {
  const app = new App({ outdir: mkdtempSync(join(tmpdir(), 'synth-rules-')) });
  return { app, chart: new Chart(app, 'c', { namespace: 'team' }) };
};
const errorOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return 'no error';
};
const occurrences = (text: string, part: string): number => text.split(part).length - 1;

describe('a label that is added after construction is checked at synth, and the error is printed once,', () => {
  const written = [
    sandbox('a', { podTemplate: podTemplate(image) }),
    template('a', { podTemplate: podTemplate(image) }),
    pool('a'),
    claim('a'),
  ];
  test.each(written.map((manifest) => [manifest.kind, manifest] as const))('by app.synth(): %s', (_, manifest) => {
    const { app, chart } = plainApp();
    const { resource } = fromManifest(chart, 'x', manifest, ['template/unmanaged-network']);
    resource.metadata.addLabel('team', 'not valid');
    const message = errorOf(() => app.synth());
    expect(message).toContain('[c/x] metadata.labels[team]: found "not valid", allowed: at most 63 letters');
    expect(occurrences(message, 'not valid')).toBe(1);
    expect(occurrences(message, '\n')).toBe(1);
  });

  test('by manifestsOf', () => {
    const chart = Testing.chart();
    const { resource } = fromManifest(chart, 'x', sandbox('a', { podTemplate: podTemplate(image) }));
    resource.metadata.addAnnotation('not valid', 'b');
    const message = errorOf(() => manifestsOf(chart));
    expect(message).toMatch(/^test\/x: metadata\.annotations: found "not valid", allowed: .*\(metadata\/annotations: /);
  });
});

test('every object of a pool and of an installation is checked again', () => {
  const scopes: readonly (readonly [string, (scope: Construct) => Construct])[] = [
    ['workspace', (scope) => new WorkspacePool(scope, 'x', { poolClass: poolClass(), facts: workspacePlaceholders })],
    ['plain', (scope) => new PlainPool(scope, 'x', { poolClass: poolClass(), facts: plainPlaceholders })],
    ['install', (scope) => new ControllerInstall(scope, 'x', installProps)],
  ];
  for (const [name, make] of scopes) {
    const count = made(make, Testing.chart()).length;
    expect(count).toBeGreaterThan(5);
    for (let index = 0; index < count; index++) {
      const chart = Testing.chart();
      const resource = made(make, chart)[index]!;
      resource.metadata.addLabel('team', 'not valid');
      expect([name, resource.node.path, errorOf(() => manifestsOf(chart))]).toEqual([
        name,
        resource.node.path,
        expect.stringContaining('metadata.labels[team]: found "not valid"'),
      ]);
    }
  }
});

function made(make: (scope: Construct) => Construct, chart: Chart): readonly Resource[] {
  return make(chart)
    .node.findAll()
    .filter((one): one is Resource => one instanceof Resource);
}

test('a rule of your own runs again', () => {
  const { app, chart } = plainApp();
  const rule: Rule<Manifest> = {
    id: 'team/owner',
    kind: 'policy',
    because: 'somebody has to answer for it',
    source: 'our handbook',
    check: ({ metadata: { labels = {} } }) =>
      labels['owner'] === 'nobody' ? { field: 'metadata.labels', found: labels, allowed: 'an owner' } : undefined,
  };
  const box = new Sandbox(chart, 'x', { podTemplate: podTemplate(image) as never, rules: [rule] });
  box.resource.metadata.addLabel('owner', 'nobody');
  expect(errorOf(() => app.synth())).toContain('[c/x] metadata.labels: found {"owner":"nobody"}');
});

test('an object that nothing was added to passes synth', () => {
  const { app, chart } = plainApp();
  new SandboxTemplate(chart, 'x', { podTemplate: podTemplate(image) as never });
  new ApiObject(chart, 'other', { apiVersion: 'v1', kind: 'ConfigMap' });
  expect(errorOf(() => app.synth())).toBe('no error');
});
