import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openIdentities } from '../../src/supervisor/identities.js';

const range = { firstUid: 20_000, lastUid: 20_003, firstGid: 30_000 };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'identities-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

test('users go up by one, the last stays in reserve, and a restart goes on where it was', () => {
  const first = openIdentities(folder, range);
  expect([first.next(), first.next()]).toEqual([
    { uid: 20_000, gid: 30_000 },
    { uid: 20_001, gid: 30_001 },
  ]);
  expect(first.capacity()).toEqual({ total: 4, remaining: 2, exhaustionReserve: 1 });
  first.close();
  const second = openIdentities(folder, range);
  expect(second.next()).toEqual({ uid: 20_002, gid: 30_002 });
  expect(() => second.next()).toThrow(expect.objectContaining({ code: 'exhausted' }));
  second.close();
});

test('a second supervisor is refused, one after a crash is not', () => {
  const first = openIdentities(folder, range);
  expect(() => openIdentities(folder, range)).toThrow(expect.objectContaining({ code: 'locked' }));
  first.close();
  writeFileSync(path.join(folder, '.orka-session-identity.lock'), '999999999 1\n');
  openIdentities(folder, range).close();
});

test('another range, missing state beside sessions, and links are refused; what a crash left half-written is removed', () => {
  openIdentities(folder, range).close();
  expect(() => openIdentities(folder, { ...range, lastUid: 20_010 })).toThrow(expect.objectContaining({ code: 'state' }));
  const state = path.join(folder, '.orka-session-identity-high-water');
  writeFileSync(`${state}.77`, 'half');
  openIdentities(folder, range).close();
  expect(readdirSync(folder)).not.toContain('.orka-session-identity-high-water.77');
  rmSync(state);
  mkdirSync(path.join(folder, 'session-1'));
  expect(() => openIdentities(folder, range)).toThrow(expect.objectContaining({ code: 'state' }));
  rmSync(path.join(folder, 'session-1'), { recursive: true });
  symlinkSync('/etc/passwd', state);
  expect(() => openIdentities(folder, range)).toThrow(expect.objectContaining({ code: 'state' }));
  const link = path.join(folder, 'link');
  symlinkSync(folder, link);
  expect(() => openIdentities(link, range)).toThrow(expect.objectContaining({ code: 'folder' }));
});
