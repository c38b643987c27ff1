import { expect, test } from '@jest/globals';
import { baseName, childName, workspaceNames } from '../../src/domain/names.js';
import { redacted } from '../../src/domain/redaction.js';

const base = baseName('team-a', 'acp-ws-codex-0123456789abcdef');
const shared = baseName('team-a', 'acp-opencode-0123456789abcdef');
const session = baseName('team-a', 'acp-ws-session-0123456789abcdef');
const children = [
  base,
  shared,
  session,
  `${shared}-6d5f7c9b8-x2x4z`,
  ...Object.values(workspaceNames(base)),
  ...['deny-all', 'control-in', 'dns-egress', 'provider-proxy-egress', 'controller-egress', 'artifact-egress', 'pdb'].map((end) =>
    childName(base, end),
  ),
  childName(base, `auth-e7-${'a'.repeat(24)}`),
  childName(base, `provider-e7-g${'0'.repeat(16)}-${'b'.repeat(24)}`),
];

test.each(children)('a Task never names %s', (name) => {
  expect(redacted(`Pod ${name}: is not ready`)).toBe('Pod (its instance): is not ready');
  expect(redacted(`orka-runtimes/${name}, "${name}"`)).toBe('orka-runtimes/(its instance), "(its instance)"');
});

test.each(['10.1.2.3:8080', '10.1.2.3', '[fd00::1]:8080', 'fd00:10:244::5'])('nor the address %s', (address) => {
  expect(redacted(`connect ECONNREFUSED ${address}`)).toBe('connect ECONNREFUSED (its address)');
});

test.each([
  'expected at 12:30:45, found sha256:0123',
  'Task team-a/t1: spec.prompt: found 3 bytes',
  'queued for RuntimePool acp-ws-codex-0123456789abcdef, which was made anew',
  'RuntimePool team-a/acp-codex-0123456789abcdef: spec.runtime.image: found nothing',
  'agent-sandbox provider CRDs',
])('other words stay: %s', (text) => {
  expect(redacted(text)).toBe(text);
});

test('half a character and control characters are replaced: an agent writes both', () => {
  expect(redacted('a\ud83d b\u001b[31mc\u0000d\u009be\r\n\tf')).toBe('a\ufffd b [31mc d e \n\tf');
});

test('the index of a list is no address', () => {
  const text = 'Pod: spec.containers[1].env[0]: found nothing';
  expect(redacted(text)).toBe(text);
});

test.each(['a-', '1.', 'a:', 'acp-a-'])('a text of a megabyte is cut before it is searched: %s', (part) => {
  expect(redacted(part.repeat(1_000_000 / part.length)).length).toBeLessThan(10_000);
});
