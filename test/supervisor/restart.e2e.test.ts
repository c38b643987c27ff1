import { describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { instant } from '../../src/lib/instant.js';
import { killAll, processesOf } from '../../src/supervisor/processes.js';
import { eventually, eventuallyAnswers } from '../support/eventually.js';
import { taskOrders } from '../support/harness-orders.js';
import { codexAgent, scriptedModules, startRealSupervisor } from '../support/real-supervisor.js';
import { freshUsers } from '../support/supervisor.js';

const suite = process.getuid?.() === 0 ? describe : describe.skip;

suite('a supervisor process after another one on the same volume', () => {
  test('goes on with users that were never given, and finds no session of the one that was killed', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'restart-'));
    chmodSync(folder, 0o755);
    const modules = scriptedModules(folder);
    const sessions = path.join(folder, 'sessions');
    mkdirSync(sessions);
    const firstUid = freshUsers();
    try {
      const first = await begin('first');
      expect(processesOf({ uid: firstUid }).length).toBeGreaterThan(0);
      first.process.kill('SIGKILL');
      await eventually(() => processesOf({ uid: firstUid }).length === 0);
      expect(leftIn(sessions)).toHaveLength(1);
      const second = await begin('second');
      expect(leftIn(sessions)).toHaveLength(1);
      expect(processesOf({ uid: firstUid })).toEqual([]);
      expect(processesOf({ uid: firstUid + 1 }).length).toBeGreaterThan(0);
      const { runtimeProfileDigest } = await second.client.capabilities();
      const { sessions: known, sessionIdentityCapacity } = await second.client.status({ runtimeProfileDigest });
      expect(known).toHaveLength(1);
      expect(sessionIdentityCapacity).toMatchObject({ total: 100, remaining: 98 });
      const exit = new Promise((resolve) => second.process.once('exit', resolve));
      second.process.kill('SIGTERM');
      expect(await exit).toBe(0);
      expect(leftIn(sessions)).toEqual([]);
      expect(existsSync(path.join(sessions, '.orka-session-identity.lock'))).toBe(false);
      await Promise.all([first.close(), second.close()]);
    } finally {
      for (const uid of [firstUid, firstUid + 1]) await killAll({ uid });
      rmSync(folder, { recursive: true, force: true });
    }

    async function begin(taskUID: string) {
      const it = await startRealSupervisor(codexAgent(modules), { sessions, firstUid });
      await it.client.bootstrap(it.delivery);
      const { runtimeProfileDigest } = await eventuallyAnswers(() => it.client.capabilities());
      const { fence } = await it.client.status({ runtimeProfileDigest });
      const task = taskOrders(taskUID, it.runtime);
      await it.client.createSession(
        { ...task.operation('create-session', fence), expiresAt: instant(Date.now() + 30_000) },
        task.session,
      );
      return it;
    }
  }, 60_000);
});

function leftIn(sessions: string): readonly string[] {
  return readdirSync(sessions).filter((name) => name.startsWith('session-'));
}
