/** `WRITE_DOCS=1 npm run jest -- rules-page` writes the page that is compared here. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { format, resolveConfig } from 'prettier';
import { policyRules, providerRules } from '../../src/constructs/rules/registry.js';
import type { RegisteredRule } from '../../src/constructs/rules/registry.js';
import { policyCases } from '../support/policy-cases.js';
import { ruleCases } from '../support/rule-cases.js';
import type { Seen } from '../support/rule-cases.js';

const file = 'docs/rules.md';
const cases = ruleCases('image');

const intro = `<!-- Written from the registry: WRITE_DOCS=1 npm run jest -- rules-page -->

# Rules

What the constructs check at synth. An object that breaks a rule is refused with its construct path, the field, what was found and what is
allowed. A rule about one object runs when the construct is made, after each of its patches, and again at synth. A rule about several objects (a claim
beside its pool and template) runs at synth, on what stands in the same construct tree under the name and namespace that it refers to;
what is written elsewhere is not known, and not asked.

\`providerRules\` and \`policyRules\` of the package are these lists as data: \`id\`, \`appliesTo\`, \`because\`, \`source\`, \`unless\`, \`check\`.
Sources with a § are pages of the contract with the provider, agent-sandbox v1.0.3. A rule that a later release has brought names it.

The rules do not repeat all that an API server checks of a Pod: they are those that are easily broken, and those whose breach is silent or
opens something.

## Rules of the provider

Facts. Each was seen on a cluster with an object written by hand (\`test/cluster/rules.test.ts\`; the objects are in
\`test/support/rule-cases.ts\`), but for those of a newer provider. They always apply, also to \`fromManifest\`; those with "but" may be named in
\`allow\` where that is so.

A field that this version does not know is refused with its path. Where the installed provider has it, name it: \`allow: ['field:spec.x']\`, or
\`field:spec.podTemplate.spec.containers[*].x\` for all items of a list. It is rendered as it is given; what is below it is not checked. The same name
lets a new word of a known field through. A constructor has no prop for such a field: add it with \`resource.addJsonPatch\`.

`;

const outro = `
## Rules of policy

Our taste. Each may be switched off for one object by its id: \`allow: ['pod/host-path']\`, a prop of Sandbox, SandboxTemplate, SandboxClaim and
NetworkPolicy, and an option of \`fromManifest\`. There is no switch for a whole app, so that each exception stands beside what it is for. An
id that is none, or that of a rule which always applies, is refused. That an object is refused without it and rendered with it is tested in
\`test/constructs/rules.test.ts\`.

`;

/** How a case was seen on a cluster. */
function told(seen: Seen): string {
  switch (seen.how) {
    case 'refused':
      return 'refused at once';
    case 'condition':
      return `${seen.of} stays ${seen.reason}`;
    case 'pod-without':
      return 'the Pod runs without it';
    case 'no-policy':
      return 'the sandbox runs, no policy was written';
    case 'members':
      return 'members stay ReconcilerError';
    case 'newer':
      return `not on the pinned provider: new in ${seen.since}`;
    case 'test':
      return 'a test of its own, named after the rule';
  }
}

const once = (texts: readonly string[]): string => [...new Set(texts)].join('; ');

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return line(heads) + line(heads.map(() => '---')) + rows.map(line).join('');
}

const why = ({ because, unless }: RegisteredRule): string => (unless === undefined ? because : `${because}; but: ${unless}`);

function page(): string {
  const provider = providerRules.map((rule) => {
    const own = cases.filter((one) => one.rule === rule.id);
    return [
      `\`${rule.id}\``,
      rule.appliesTo.join(', '),
      once(own.map(({ what }) => what)),
      why(rule),
      rule.source,
      once(own.map(({ seen }) => told(seen))),
    ];
  });
  const policy = policyRules.map((rule) => [
    `\`${rule.id}\``,
    rule.appliesTo.join(', '),
    once(policyCases.filter((one) => one.rule === rule.id).map(({ what }) => what)),
    why(rule),
    rule.source,
  ]);
  const heads = ['Rule', 'Of', 'Refuses', 'Why', 'Source'];
  return intro + table([...heads, 'Seen'], provider) + outro + table(heads, policy);
}

test('the page of rules is what the registry and its cases say', async () => {
  const text = await format(page(), { ...(await resolveConfig(file)), parser: 'markdown' });
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(file, text);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(text);
});
