import { describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { AcpError } from '../../src/supervisor/acp.js';
import { codexProvider } from '../../src/supervisor/codex.js';
import { openCodeProvider } from '../../src/supervisor/opencode.js';
import type { Provider } from '../../src/supervisor/provider.js';
import { checkModel, readRefusal } from '../../src/supervisor/session-answer.js';

function codex(): Provider {
  const folder = mkdtempSync(path.join(tmpdir(), 'codex-base-'));
  const configFile = path.join(folder, 'codex.toml');
  writeFileSync(configFile, 'model_provider = "p"\n\n[model_providers.p]\n');
  try {
    return codexProvider({ configFile });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the model that an agent reports is compared in the form of its provider', () => {
  const providers = { codex: codex(), opencode: openCodeProvider() };
  test.each([
    ['codex', 'gpt-5.5', 'gpt-5.5', true],
    ['codex', 'gpt-5.5[medium]', 'gpt-5.5', true],
    ['codex', 'gpt-5.5-mini[medium]', 'gpt-5.5', false],
    ['codex', 'gpt-5', 'gpt-5.5', false],
    ['codex', 'gpt-5.5[medium][high]', 'gpt-5.5', false],
    ['codex', 'claude[1m]', 'claude[1m]', true],
    ['codex', 'claude[1m][high]', 'claude[1m]', true],
    ['opencode', 'orka/gpt-5.5', 'gpt-5.5', true],
    ['opencode', 'orka/gpt-5.5/high', 'gpt-5.5', true],
    ['opencode', 'orka/a/b', 'a/b', true],
    ['opencode', 'gpt-5.5', 'gpt-5.5', false],
    ['opencode', 'other/gpt-5.5', 'gpt-5.5', false],
    ['opencode', 'orka/gpt-5.5-mini', 'gpt-5.5', false],
  ] as const)('%s reports %s for %s: %s', (kind, reported, model, same) => {
    expect(providers[kind].isModel?.(reported, model)).toBe(same);
  });
});

const wanted = { model: 'gpt-5.5', redact: (text: string) => text.replaceAll('secret', '[redacted]') };

test.each([
  [null],
  [[]],
  [{}],
  [{ models: 'gpt-4', configOptions: 'gpt-4' }],
  [{ models: { currentModelId: 4 }, configOptions: [{ category: 'model', currentValue: false }, 4] }],
  [{ configOptions: [{ category: 'mode', currentValue: 'gpt-4' }] }],
])('an answer that names no model is accepted: %j', (answer) => {
  expect(() => checkModel(answer, wanted)).not.toThrow();
});

test('the name of another model is redacted, then cut in the refusal', () => {
  const check = () => checkModel({ models: { currentModelId: `${'x'.repeat(197)}secret` } }, wanted);
  expect(check).toThrow(/current model: found "x{197}\[r…, allowed: gpt-5.5/);
});

const answered = (found: string) => new AcpError('answer', { at: 'agent', says: `error ${found}` });

test.each([
  ['-32000: Authentication required'],
  ['-32000: no message'],
  ['-32603: Authentication is required to use this agent'],
  ['401: auth_required'],
  ['-32603: You are not logged in. Please run /login'],
])('an error that asks for a login is final and quoted: %s', (found) => {
  const error = readRefusal(answered(found), 'session/new');
  expect(error).toMatchObject({
    code: 'unusable',
    message: expect.stringContaining(`authentication required: session/new was answered with error ${found}`),
  });
});

test.each([['-32603: Internal error'], ['-32001: the author is required'], ['-320001: x']])(
  'another error stays as it is: %s',
  (found) => {
    const error = answered(found);
    expect(readRefusal(error, 'session/new')).toBe(error);
  },
);
