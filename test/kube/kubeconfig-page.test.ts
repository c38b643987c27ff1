/** `WRITE_DOCS=1 npm run jest -- kubeconfig-page` writes the page that is compared here. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { format, resolveConfig } from 'prettier';
import { kubeconfigMembers } from '../../src/kube/kubeconfig-members.js';

const file = 'docs/kubeconfig.md';

const intro = `<!-- Written from the table: WRITE_DOCS=1 npm run jest -- kubeconfig-page -->

# Kubeconfig

\`diff\` and \`controller --kubeconfig\` read one kubeconfig and one of its contexts. This table has every member that kubectl knows
(\`kind: Config\`, \`apiVersion: v1\`). A member that is not in it, or that has another type, is refused by name, and so is what "with limits"
leaves out. Entries that the context does not name are not read. \`null\`, empty texts, empty lists and \`false\` count as absent.

| Object | Member | Type | What we do | How |
| --- | --- | --- | --- | --- |
`;

test('the page about kubeconfigs is what the table says', async () => {
  const rows = Object.entries(kubeconfigMembers).flatMap(([of, members]) =>
    Object.entries(members).map(([name, { type, use, note }]) => `| ${of} | \`${name}\` | ${type} | ${use} | ${note} |\n`),
  );
  const text = await format(intro + rows.join(''), { ...(await resolveConfig(file)), parser: 'markdown' });
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(file, text);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(text);
});
