import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { codexProvider } from '../../src/supervisor/codex.js';
import { openCodeProvider } from '../../src/supervisor/opencode.js';
import { readConfig, readListenAddress } from '../../src/supervisor/config.js';
import { takeCredentials } from '../../src/supervisor/credentials.js';
import { runtime, unrestricted } from '../support/harness-orders.js';

let folder: string;
let digests: string;
const adapterDigests = { a: `sha256:${'a'.repeat(64)}` };
const made = runtime(adapterDigests);
const env = {
  ...made.env,
  ORKA_ACP_POD_UID: 'pod',
  ORKA_ACP_CONTROLLER_EPOCH: '3',
  ORKA_ACP_RUNTIME_POOL_UID: 'pool',
  ORKA_ACP_RUNTIME_POOL_GENERATION: '2',
  ORKA_ACP_PROVIDER_PROXY_BASE_URL: 'http://proxy.example:1337',
};
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'config-'));
  digests = path.join(folder, 'digests.json');
  writeFileSync(digests, JSON.stringify(adapterDigests));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('the settings of a supervisor', () => {
  test('give the profile that the controller planned', () => {
    expect(readConfig(env, digests).profileDigest).toBe(made.profileDigest);
  });

  test('name the instance after Pod and boot', () => {
    const { fence } = readConfig(env, digests);
    expect(fence.runtimeInstanceID).toBe(`pod.${fence.supervisorBootID}`);
  });

  test('number the sessions of two sandboxes differently, with a thousand left for each', () => {
    const first = ['a', 'b'].map((uid) => readConfig({ ...env, ORKA_ACP_POD_UID: uid }, digests).identities.firstUid);
    expect(first[0]).not.toBe(first[1]);
    for (const uid of first) expect([uid >= 20_000, uid <= 28_999]).toEqual([true, true]);
  });

  test.each([
    ['ORKA_ACP_CONTROLLER_EPOCH', '0'],
    ['ORKA_ACP_RUNTIME_POOL_GENERATION', 'x'],
    ['ORKA_ACP_POD_UID', ''],
    ['ORKA_ACP_PROVIDER_PROXY_BASE_URL', 'http://user:secret@x'],
    ['ORKA_ACP_LISTEN_ADDRESS', '8080'],
    ['ORKA_ACP_LAST_SESSION_UID', '20000'],
  ])('are refused with the name of the variable: %s=%s', (name, value) => {
    expect(() => readConfig({ ...env, [name]: value }, digests)).toThrow(name);
  });

  test('are refused without the digests of the image', () => {
    expect(() => readConfig(env, path.join(folder, 'missing.json'))).toThrow('missing.json');
  });

  test('listen everywhere, on one address, or on one of IPv6', () => {
    expect(readListenAddress({})).toEqual({ port: 8080 });
    expect(readListenAddress({ ORKA_ACP_LISTEN_ADDRESS: '[::1]:1' })).toEqual({ host: '::1', port: 1 });
  });
});

describe('credentials', () => {
  const values = {
    ORKA_ACP_CONTROLLER_TOKEN_BOOTSTRAP: 'c'.repeat(32),
    ORKA_ACP_CAPABILITY_SECRET_BOOTSTRAP: 'k'.repeat(32),
    ORKA_ACP_PROVIDER_TOKEN_BOOTSTRAP: 'p',
  };

  test('are taken out of the environment', () => {
    const given: Record<string, string | undefined> = { ...values };
    expect(takeCredentials(given).providerToken).toBe('p');
    expect(given).toEqual({});
  });

  test('come from a file rather than from a value', () => {
    const file = path.join(folder, 'token');
    writeFileSync(file, 'from-file\n');
    expect(takeCredentials({ ...values, ORKA_ACP_PROVIDER_TOKEN_FILE: file }).providerToken).toBe('from-file');
  });

  test('that are short or missing are refused without being quoted', () => {
    const short = { ...values, ORKA_ACP_CONTROLLER_TOKEN_BOOTSTRAP: 'hunter2' };
    expect(() => takeCredentials(short)).toThrow(expect.not.objectContaining({ message: expect.stringContaining('hunter2') }));
    expect(() => takeCredentials({ ...values, ORKA_ACP_PROVIDER_TOKEN_BOOTSTRAP: ' ' })).toThrow('PROVIDER_TOKEN');
  });
});

describe('the configuration of a Codex session', () => {
  const configFile = new URL('../../images/acp-codex/codex.toml', import.meta.url).pathname;
  const session = (policy = unrestricted) => ({
    configuration: {
      ...runtime(adapterDigests, { policy, systemPrompt: 'say "hi"\n\u007f' }).configuration,
      reasoningEffort: 'low',
    },
    toolPolicy: runtime(adapterDigests, { policy }).mcp.toolPolicy,
    intent: 'read' as const,
    home: '/h',
    proxyUrl: 'http://127.0.0.1:1/_orka/provider/r',
    proxyCredential: 'route-credential',
  });

  test('has its keys before the tables of the image and the address in the last one', () => {
    const [text = ''] = Object.values(codexProvider({ configFile }).files(session()));
    expect(text).toMatch(
      /^model = "gpt-5.5"\nmodel_reasoning_effort = "low"\ndeveloper_instructions = "say \\"hi\\"\\n\\u007f"\n/,
    );
    expect(text.trim().split('\n').at(-1)).toBe('base_url = "http://127.0.0.1:1/_orka/provider/r/v1"');
    expect(text).not.toContain('route-credential');
  });

  test('asks before it acts unless its policy has no restriction', () => {
    const { env: variables } = codexProvider({ configFile });
    expect(variables(session())['INITIAL_AGENT_MODE']).toBe('agent-full-access');
    const reading = { allowed: ['Glob', 'Grep', 'Read'], disallowed: null, allowBash: false };
    expect(variables(session(reading))['INITIAL_AGENT_MODE']).toBe('read-only');
  });

  test('is refused when the file of the image ends in another table', () => {
    const file = path.join(folder, 'codex.toml');
    writeFileSync(file, 'model_provider = "orka"\n[model_providers.orka]\nname = "x"\n[other]\n');
    expect(() => codexProvider({ configFile: file })).toThrow('model_providers');
  });
});

describe('the configuration of an OpenCode session', () => {
  const session = (policy = unrestricted) => ({
    configuration: runtime(adapterDigests, { policy }).configuration,
    toolPolicy: runtime(adapterDigests, { policy }).mcp.toolPolicy,
    intent: 'read' as const,
    modelLimits: { context: 1000, output: 100 },
    home: '/h',
    proxyUrl: 'http://127.0.0.1:1/_orka/provider/r',
    proxyCredential: 'route-credential',
  });

  test('has one model, behind the loopback proxy, and no credential', () => {
    const [[file, text] = ['', '']] = Object.entries(openCodeProvider().files(session()));
    expect(file).toBe('/h/.opencode.json');
    expect(JSON.parse(text)).toMatchObject({
      model: 'orka/gpt-5.5',
      enabled_providers: ['orka'],
      permission: { '*': 'allow' },
      provider: {
        orka: {
          options: { baseURL: 'http://127.0.0.1:1/_orka/provider/r/v1' },
          models: { 'gpt-5.5': { limit: { context: 1000, output: 100 } } },
        },
      },
    });
    expect(text).not.toContain('route-credential');
    expect(openCodeProvider().env(session())).toMatchObject({ OPENCODE_CONFIG: file, ORKA_MODEL_KEY: 'route-credential' });
  });

  test('denies what the policy does not allow, and what it denies', () => {
    const permission = (policy: typeof unrestricted) =>
      (JSON.parse(Object.values(openCodeProvider().files(session(policy)))[0] ?? '{}') as { permission: unknown }).permission;
    expect(permission({ allowed: ['glob', 'read', 'bash'], disallowed: ['Read'], allowBash: false })).toEqual({
      '*': 'deny',
      glob: 'allow',
      read: 'deny',
      bash: 'deny',
    });
  });
});
