import { describe, expect, test } from '@jest/globals';
import type { Task, WorkspaceConfig } from '../../src/api/index.js';
import { sourceSlips } from '../../src/cli/plan-slips.js';

const gitRepo = 'https://github.com/acme/app.git';
const commit = '0123456789abcdef0123456789abcdef01234567';
const slipsOf = (workspace: Partial<WorkspaceConfig>): readonly string[] =>
  sourceSlips({
    metadata: { namespace: 'team-a', name: 't' },
    spec: { workspace: { gitRepo, ...workspace } },
  } as unknown as Task);

describe('a note is written of', () => {
  test.each<[string, Partial<WorkspaceConfig>, string]>([
    [
      'the page of a folder',
      { gitRepo: 'https://github.com/acme/app/tree/main/docs' },
      'https://github.com/acme/app.git, its branch',
    ],
    ['the page of a file', { gitRepo: 'https://github.com/acme/app/blob/main/a.ts' }, 'the page of a file in a browser'],
    [
      'a page of another forge',
      { gitRepo: 'https://git.example:8443/team/sub/app/-/tree/main' },
      'https://git.example:8443/team/sub/app.git,',
    ],
    ['an owner of github.com', { gitRepo: 'https://github.com/acme' }, 'https://github.com/<owner>/<repository>.git'],
    ['a page of github.com', { gitRepo: 'https://github.com/acme/app/pull/7' }, 'https://github.com/<owner>/<repository>.git'],
    ['a shortened commit', { ref: '0123abc' }, 'spec.workspace.ref: this looks like a shortened commit'],
    ['a commit with a digit too few', { ref: commit.slice(1) }, 'a shortened commit'],
    ['a commit in upper case', { ref: commit.toUpperCase() }, `written in lower case, ${commit};`],
    ['a commit as branch', { branch: commit }, 'spec.workspace.branch: this looks like a commit'],
    ['a commit as full branch', { branch: `refs/heads/${commit}` }, 'a commit belongs into spec.workspace.ref'],
    ['a shortened commit as branch', { branch: '0123abc' }, 'spec.workspace.branch: this looks like a commit'],
    ['the folder .git', { subPath: '.git' }, 'spec.workspace.subPath: no repository has a folder .git'],
    ['a folder in .git', { subPath: 'a/.GIT/hooks' }, 'no repository has a folder .git'],
  ])('%s', (_, workspace, says) => {
    expect(slipsOf(workspace)).toEqual([expect.stringMatching(/^Task team-a\/t: spec\.workspace\./)]);
    expect(slipsOf(workspace)[0]).toContain(says);
  });
});

describe('no note is written of', () => {
  test.each<[string, Partial<WorkspaceConfig>]>([
    ['a plain repository', { branch: 'main', subPath: 'services/api' }],
    ['a repository in groups that is called as a page is', { gitRepo: 'https://git.example/team/tree/app.git' }],
    ['a repository called tree', { gitRepo: 'https://git.example/team/sub/tree.git' }],
    ['a repository with one segment elsewhere', { gitRepo: 'https://git.example/app.git' }],
    ['a whole commit', { ref: commit }],
    ['a whole commit of 64 digits', { ref: 'a1'.repeat(32) }],
    ['a tag', { ref: 'v1.2.3' }],
    ['a date', { branch: '20261201' }],
    ['a word of hexadecimal letters', { branch: 'deadbeef' }],
    ['a commit as branch beside a ref', { branch: commit, ref: 'v1' }],
    ['a folder with .git in its name', { subPath: 'a.git/b' }],
    ['a workspace without a repository', { gitRepo: ' ', branch: commit }],
  ])('%s', (_, workspace) => {
    expect(slipsOf(workspace)).toEqual([]);
  });
});
