import { describe, expect, test } from '@jest/globals';
import { Testing } from 'cdk8s';
import type { Manifest } from '../../src/api/index.js';
import { manifestsOf } from '../../src/render/app.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { fromManifest, neededFor } from '../support/from-manifest.js';
import { providerExamples, providerModule } from '../support/provider-module.js';

const kinds = ['Sandbox', 'SandboxTemplate', 'SandboxWarmPool', 'SandboxClaim'];
const reason = 'missing' in providerModule ? providerModule.missing : undefined;
const examples = 'missing' in providerModule ? [] : providerExamples(providerModule.folder);

/** Five documents wait for `envsubst` or a load test to fill in names; names are what the rules refuse, so they are filled in here. */
function filledIn<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value).replaceAll(/\$\{([A-Z_]+)\}|\{\{\.(\w+)\}\}/g, (_, shell?: string, go?: string) =>
      (shell ?? go ?? '').toLowerCase().replaceAll('_', '-'),
    ),
  ) as T;
}
const isPlaceholder = ({ metadata: { name } }: Manifest): boolean => /[{$]/.test(name);

if (reason !== undefined) test.skip(`the provider's own examples (skipped: ${reason})`, () => undefined);
else
  describe("the provider's own examples", () => {
    test('are 105', () => {
      const count = (kind: string) => examples.filter(({ manifest }) => manifest.kind === kind).length;
      expect(Object.fromEntries(kinds.map((kind) => [kind, count(kind)]))).toEqual({
        Sandbox: 34,
        SandboxTemplate: 31,
        SandboxWarmPool: 27,
        SandboxClaim: 13,
      });
      expect(new Set(examples.map(({ file }) => file)).size).toBe(89);
    });

    test.each(examples.map(({ file, index, manifest }) => [`${file} ${index}`, manifest] as const))(
      '%s comes out as it went in, as an object and as YAML',
      (_, original) => {
        const manifest = isPlaceholder(original) ? filledIn(original) : original;
        const chart = Testing.chart();
        fromManifest(chart, 'example', manifest, neededFor(manifest));
        const out = manifestsOf(chart);
        expect(out).toEqual([manifest]);
        expect(readYaml(toYamlStream(out), 'out').map(({ value }) => value)).toEqual([manifest]);
      },
    );

    test('five have names that something else fills in, and are refused before', () => {
      const open = examples.map(({ manifest }) => manifest).filter(isPlaceholder);
      expect(open).toHaveLength(5);
      for (const manifest of open)
        expect(() => fromManifest(Testing.chart(), 'example', manifest, neededFor(filledIn(manifest)))).toThrow(
          /metadata\.name: found/,
        );
    });

    test('what is insecure or left open in them has to be named', () => {
      const table = examples
        .map(({ file, index, manifest }) => ({ at: `${file} ${index}`, allow: neededFor(filledIn(manifest)) }))
        .filter(({ allow }) => allow.length > 0)
        .map(({ at, allow }) => `${at}: ${allow.join(', ')}`);
      expect(table.join('\n')).toMatchSnapshot();
    });

    test('the claim that one of them means to be rejected is refused beside its template', () => {
      const chart = Testing.chart();
      for (const { file, manifest } of examples.filter((example) =>
        example.file.startsWith('examples/hermes-agents-as-a-service/'),
      ))
        fromManifest(chart, file, manifest, neededFor(manifest));
      expect(() => manifestsOf(chart)).toThrow(
        /40-claim-rejected.*spec\.env: found \["SNEAKY_OVERRIDE"\], allowed: nothing: the template says Disallowed/,
      );
    });
  });
