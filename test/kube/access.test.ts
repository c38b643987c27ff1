import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { AccessError, podAccess } from '../../src/kube/access.js';
import { kubeconfigAccess } from '../../src/kube/kubeconfig.js';
import type { JsonObject } from '../../src/lib/json.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const refusal = async (of: () => unknown): Promise<AccessError> => {
  try {
    await of();
  } catch (error) {
    if (error instanceof AccessError) return error;
    throw error;
  }
  throw new Error('it was accepted');
};

describe('in a Pod', () => {
  const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const write = (token: string, ca = 'ca-1') => {
    writeFileSync(join(folder, 'token'), `${token}\n`);
    writeFileSync(join(folder, 'ca.crt'), ca);
  };

  test.each([
    ['10.96.0.1', 'https://10.96.0.1:443'],
    ['fd00::1', 'https://[fd00::1]:443'],
  ])('the server is the one of the environment: %s', (host, server) => {
    expect(podAccess({ ...environment, KUBERNETES_SERVICE_HOST: host }, folder).server).toBe(server);
  });

  test.each(['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT'])(
    'without %s the refusal says what is needed',
    async (name) => {
      const error = await refusal(() => podAccess({ ...environment, [name]: undefined }, folder));
      expect(error.message).toContain('allowed: a Pod, or a kubeconfig');
    },
  );

  test('files are read again after a minute, not before', async () => {
    let time = 0;
    const access = podAccess(environment, folder, { elapsed: () => time });
    write('one');
    expect(await access.credentials()).toEqual({ token: 'one', ca: 'ca-1' });
    write('two', 'ca-2');
    time = 59_999;
    expect(await access.credentials()).toMatchObject({ token: 'one' });
    time = 60_000;
    expect(await access.credentials()).toEqual({ token: 'two', ca: 'ca-2' });
  });

  test('files are read again at once when the server refused what they said', async () => {
    const access = podAccess(environment, folder, { elapsed: () => 0 });
    write('one');
    await access.credentials();
    write('two');
    expect(await access.credentials({ fresh: true })).toMatchObject({ token: 'two' });
    expect(await access.credentials()).toMatchObject({ token: 'two' });
  });

  test('a file that is missing is named, and read when it is there', async () => {
    const access = podAccess(environment, folder, { elapsed: () => 0 });
    expect((await refusal(() => access.credentials())).message).toBe(`${join(folder, 'token')}: no such file or directory`);
    write('one');
    expect(await access.credentials()).toMatchObject({ token: 'one' });
  });
});

describe('a kubeconfig', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const config = (user: JsonObject, cluster: JsonObject = {}, change: JsonObject = {}): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [
      { name: 'elsewhere', context: { cluster: 'other', user: 'other' } },
      { name: 'here', context: { cluster: 'c', user: 'u' } },
    ],
    clusters: [
      { name: 'other', cluster: { server: 'https://other.example' } },
      { name: 'c', cluster: { server: 'https://api.example:6443', ...cluster } },
    ],
    users: [
      { name: 'other', user: { token: 'other' } },
      { name: 'u', user },
    ],
    ...change,
  });
  const access = (...of: Parameters<typeof config>) => kubeconfigAccess(config(...of), join(folder, 'config'));

  test('is read by its current context', async () => {
    const { server, credentials } = access({ token: 't' });
    expect(server).toBe('https://api.example:6443');
    expect(await credentials()).toEqual({ token: 't' });
  });

  test('is read by another context where one is named, with the namespace of that', async () => {
    const contexts = [{ name: 'there', context: { cluster: 'other', user: 'other', namespace: 'team-a' } }];
    const there = kubeconfigAccess(config({ token: 't' }, {}, { contexts }), 'config', 'there');
    expect(there).toMatchObject({ server: 'https://other.example', namespace: 'team-a' });
    expect(await there.credentials()).toEqual({ token: 'other' });
    expect(access({ token: 't' }).namespace).toBeUndefined();
  });

  test('may have all of it inline', async () => {
    const { credentials } = access(
      { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') },
      { 'certificate-authority-data': base64('ca') },
    );
    expect(await credentials()).toEqual({ ca: 'ca', cert: 'cert', key: 'key' });
  });

  test('may name files beside it, which are read each time', async () => {
    mkdirSync(join(folder, 'pki'));
    for (const name of ['ca', 'cert', 'key', 'token']) writeFileSync(join(folder, 'pki', name), `${name}-1`);
    const { credentials } = access(
      { 'client-certificate': 'pki/cert', 'client-key': join(folder, 'pki/key'), tokenFile: 'pki/token' },
      { 'certificate-authority': 'pki/ca' },
    );
    expect(await credentials()).toEqual({ ca: 'ca-1', cert: 'cert-1', key: 'key-1', token: 'token-1' });
    writeFileSync(join(folder, 'pki/token'), 'token-2\n');
    expect(await credentials()).toMatchObject({ token: 'token-2' });
  });

  test('that has an authority inline and in a file means what is inline', async () => {
    writeFileSync(join(folder, 'ca'), 'file');
    const { credentials } = access(
      { token: 'inline' },
      { 'certificate-authority': 'ca', 'certificate-authority-data': base64('inline') },
    );
    expect(await credentials()).toEqual({ token: 'inline', ca: 'inline' });
  });

  test('that names a missing file is refused with its name when it is needed', async () => {
    const { credentials } = access({ tokenFile: 'nowhere' });
    expect((await refusal(() => credentials())).message).toContain(`${join(folder, 'nowhere')}: no such file or directory`);
  });

  test.each([
    ['contexts', { 'current-context': 'no' }, 'contexts: found "no"'],
    ['contexts', { 'current-context': undefined }, 'contexts: found nothing'],
    ['clusters', { clusters: [] }, 'clusters: found "c"'],
    ['users', { users: [{ name: 'other', user: {} }] }, 'users: found "u"'],
    [
      'server',
      { clusters: [{ name: 'c', cluster: { server: 'api.example' } }] },
      'clusters[0].cluster.server: found "a text that is no URL"',
    ],
  ])('whose %s leads nowhere is refused', async (_, change, says) => {
    const error = await refusal(() => access({ token: 't' }, {}, change));
    expect(error.message.startsWith(`${join(folder, 'config')}: ${says}`)).toBe(true);
  });

  test.each([null, [], 'x'])('that is none is refused: %j', async (value) => {
    expect((await refusal(() => kubeconfigAccess(value, 'file'))).message).toContain('allowed: a kubeconfig');
  });

  describe('whose user is a program', () => {
    /** A fake of a credential program: counts its runs, and prints or fails as it is told. */
    const program = (prints: string, code = 0, context?: string) => {
      const file = join(folder, 'config');
      const script = `
        const fs = require('node:fs');
        fs.appendFileSync(${JSON.stringify(join(folder, 'runs'))}, 'x');
        process.stdout.write(${JSON.stringify(prints)});
        process.stderr.write(${JSON.stringify(code === 0 ? '' : 'log in first')});
        process.exitCode = ${code};`;
      writeFileSync(join(folder, 'program.cjs'), script);
      const exec = {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: process.execPath,
        args: [join(folder, 'program.cjs')],
        env: [{ name: 'NODE_OPTIONS', value: '' }],
        interactiveMode: 'Never',
      };
      const value = config(
        { exec },
        { 'certificate-authority-data': base64('ca') },
        context === undefined ? {} : { 'current-context': 'elsewhere' },
      );
      writeFileSync(file, JSON.stringify(value));
      return kubeconfigAccess(value, file, context);
    };
    const runs = () => readFileSync(join(folder, 'runs'), 'utf8').length;
    const credential = (status: JsonObject) =>
      JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status });

    test('has its token and the CA of the cluster, and runs it once for many requests', async () => {
      const { server, credentials } = program(credential({ token: 'printed' }));
      expect(server).toBe('https://api.example:6443');
      expect(await Promise.all([credentials(), credentials()])).toEqual(Array(2).fill({ token: 'printed', ca: 'ca' }));
      expect(await credentials()).toMatchObject({ token: 'printed' });
      expect(runs()).toBe(1);
      await credentials({ fresh: true });
      expect(runs()).toBe(2);
    });

    test('is the one of the context that is named', async () => {
      const { server, credentials } = program(credential({ token: 'printed' }), 0, 'here');
      expect(server).toBe('https://api.example:6443');
      expect(await credentials()).toEqual({ token: 'printed', ca: 'ca' });
    });

    test('may have a certificate', async () => {
      const { credentials } = program(credential({ clientCertificateData: 'cert', clientKeyData: 'key' }));
      expect(await credentials()).toEqual({ ca: 'ca', cert: 'cert', key: 'key' });
    });

    test('that fails is refused with what it said, and runs again next time', async () => {
      const { credentials } = program('', 1);
      expect((await refusal(() => credentials())).message).toContain('found "log in first"');
      await refusal(() => credentials());
      expect(runs()).toBe(2);
    });

    test('that prints something else is refused, and nothing of it is repeated', async () => {
      const { credentials } = program('secret-token-value');
      const error = await refusal(() => credentials());
      expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain('secret');
    });
  });
});
