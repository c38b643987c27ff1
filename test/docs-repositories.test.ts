import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { failedDownload, refusedWorkspace, sourceRefusal, sourceRefusals } from '../src/domain/source-refusals.js';
import type { AskedSource, SourceRefusal } from '../src/domain/source-refusals.js';
import { treeRefusals } from '../src/source/errors.js';

const page = readFileSync('docs/repositories.md', 'utf8');
const [, refused = ''] = page.split('## What is refused\n');
const [table = ''] = refused.split('\n## ');
/** Sentence and reason of each line of the table. */
const documented = table
  .split('\n')
  .filter((line) => /^\| `[^`]+`(<br>| \| `)/.test(line))
  .flatMap((line) => {
    const [told = '', reason = '', remedy = ''] = line.split(' | ');
    return [...told.matchAll(/`([^`]+)`/g)].map(([, says = '']) => ({ says, reason: reason.replaceAll('`', ''), remedy }));
  });

const anonymous: AskedSource = {
  at: 'Task <task>',
  repositoryId: '<repository>',
  forge: '<forge>',
  service: '<service>',
};
const source: AskedSource = { ...anonymous, branch: '<branch>', credential: { secret: '<secret>', key: '<key>' } };

const codes = [...Object.keys(sourceRefusals), '<code>'];
const refusals: readonly SourceRefusal[] = [
  ...codes.map((code) => sourceRefusal(code, source)),
  // A Secret that changes is one of a Task that has a credential.
  ...codes.filter((code) => code !== 'credential_changed').map((code) => sourceRefusal(code, anonymous)),
  ...treeRefusals.map((reason) => sourceRefusal('tree_refused', source, { reason, path: '<path>' })),
  refusedWorkspace(source, '<rule>', undefined),
  failedDownload(source, '<cause>'),
];
const sentences = new Map(refusals.map(({ reason, finding: { says, allowed = '' } }) => [says ?? allowed, reason]));

describe('the table of messages in docs/repositories.md', () => {
  test('has every sentence that a Task says of its repository, and no other', () => {
    expect(documented.map(({ says }) => says).sort()).toEqual([...sentences.keys()].sort());
  });

  test.each(documented)('has the reason of "$says", and what to do', ({ says, reason, remedy }) => {
    expect(reason).toBe(sentences.get(says));
    expect(remedy.length).toBeGreaterThan(20);
  });
});
