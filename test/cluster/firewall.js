// Firewall rules of kube-proxy, kube-router and the portmap plug-in, found by the names these give their chains, tables and sets.

import { setTimeout as sleep } from 'node:timers/promises';

import { firewallState, guardTable, stateBefore } from './host.js';
import { attempt, run } from './run.js';

const ourChain = /^(?:KUBE-|CNI-)/;
const ourSet = /^(?:inet6:)?(?:kube-router-|KUBE-)/;
const ourTables = new Set(['ip kube-proxy', 'ip6 kube-proxy', guardTable]);

/** Both kinds of iptables, whichever the components used; one that is not installed has no rules. */
const variants = ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy'];

/**
 * The lines of an iptables-save that belong to us, by table.
 *
 * @param {string} saved
 */
function ours(saved) {
  /** @type {{ table: string, chains: string[], jumps: string[] }[]} */
  const tables = [];
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) tables.push({ table: line.slice(1), chains: [], jumps: [] });
    const current = tables.at(-1);
    const chain = /^:(\S+)/.exec(line)?.[1];
    const [, from, to] = /^-A (\S+) .*-[jg] (\S+)/.exec(line) ?? [];
    if (chain && ourChain.test(chain)) current?.chains.push(chain);
    if (from && to && !ourChain.test(from) && ourChain.test(to)) current?.jumps.push(line);
  }
  return tables.filter(({ chains, jumps }) => chains.length + jumps.length > 0);
}

/** @returns {Promise<string[]>} one line for each chain, table and set of ours */
export async function ourRules() {
  const found = [];
  for (const variant of variants) {
    const { stdout } = await attempt(`${variant}-save`, []);
    for (const { table, chains, jumps } of ours(stdout)) {
      found.push(...[...chains, ...jumps].map((text) => `${variant} ${table} ${text}`));
    }
  }
  found.push(...(await firewallState()).tables.filter((table) => ourTables.has(table)).map((table) => `nft table ${table}`));
  return [...found, ...(await ourSets()).map((set) => `ipset ${set}`)];
}

async function ourSets() {
  const { stdout } = await attempt('ipset', ['list', '-n']);
  return stdout.split('\n').filter((name) => ourSet.test(name));
}

/** Removes our rules and, when we were the reason for them, the tables that are empty then. */
export async function removeRules() {
  for (const variant of variants) {
    const { stdout } = await attempt(`${variant}-save`, []);
    for (const { table, chains, jumps } of ours(stdout)) {
      const lines = [
        `*${table}`,
        ...jumps.map((line) => line.replace(/^-A/, '-D')),
        ...chains.map((chain) => `-F ${chain}`),
        ...chains.map((chain) => `-X ${chain}`),
        'COMMIT',
      ];
      await run(`${variant}-restore`, ['--noflush'], { input: `${lines.join('\n')}\n` });
    }
  }
  for (const table of (await firewallState()).tables) {
    if (ourTables.has(table)) await run('nft', ['delete', 'table', ...table.split(' ')]);
  }
  // iptables makes its tables and chains as it needs them and leaves them behind empty.
  const before = stateBefore();
  if (before) {
    const isIptables = (/** @type {string} */ name) => /^ip6? (?:filter|nat|mangle|raw|security)(?: |$)/.test(name);
    for (const chain of (await firewallState()).idle) {
      if (isIptables(chain) && !before.chains.includes(chain)) await run('nft', ['delete', 'chain', ...chain.split(' ')]);
    }
    const { tables, chains } = await firewallState();
    for (const table of tables) {
      const empty = !chains.some((chain) => chain.startsWith(`${table} `));
      if (empty && isIptables(table) && !before.tables.includes(table))
        await run('nft', ['delete', 'table', ...table.split(' ')]);
    }
  }
  // Sets can refer to each other, and the kernel lets go of one a moment after the last rule that names it.
  for (let round = 0; round < 25; round++) {
    const sets = await ourSets();
    if (sets.length === 0) return;
    for (const set of sets) await attempt('ipset', ['destroy', set]);
    if (round > 0) await sleep(200);
  }
}
