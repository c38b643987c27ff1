// The test cluster's command line: node test/cluster/cli.js up | down | status | leftovers

import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { takeDown, whatIsLeft } from './down.js';
import { Failure, describe } from './failure.js';
import { readInfo } from './info.js';
import { differences, snapshot } from './leftovers.js';
import { alone } from './lock.js';
import { otherCluster, requireOnlyCluster, requireRoot } from './preflight.js';
import { seconds } from './progress.js';
import { printStatus } from './status.js';
import { up } from './up.js';

const usage = `usage: node test/cluster/cli.js <command>
  up         bring the cluster up, or what is missing of it; prints the KUBECONFIG line
  down       take it down; only its logs stay
  status     components, node and versions; exit code 1 unless all is healthy   [--json: what a test needs to know]
  leftovers  what of a cluster is on the machine; exit code 1 if there is anything
             [--save <file>]     write how the machine is now
             [--compare <file>]  say how it differs from a saved state; exit code 1 if it does`;

async function commandUp() {
  const other = otherCluster();
  if (other) {
    console.log(
      `KUBECONFIG names another cluster (${other}). Nothing was started: tests use that one. Unset it for the cluster of this machine.`,
    );
    return true;
  }
  requireRoot();
  requireOnlyCluster();
  await alone(up);
  return true;
}

async function commandDown() {
  requireRoot();
  requireOnlyCluster();
  await alone(() => takeDown('take the cluster down'));
  return reportLeft(await whatIsLeft());
}

/** @param {readonly string[]} left */
function reportLeft(left) {
  console.log(
    left.length === 0 ? 'Nothing of a cluster is on this machine.' : `Of the cluster there is:\n  ${left.join('\n  ')}`,
  );
  return left.length === 0;
}

/** @param {{ save?: string | undefined, compare?: string | undefined }} options */
async function commandLeftovers({ save, compare }) {
  if (save) {
    writeFileSync(save, `${JSON.stringify(await snapshot(), null, 2)}\n`);
    return true;
  }
  if (!compare) return reportLeft(await whatIsLeft());
  const before = /** @type {import('./leftovers.js').Snapshot} */ (JSON.parse(readFileSync(compare, 'utf8')));
  const found = differences(before, await snapshot());
  console.log(found.length === 0 ? `The machine is as in ${compare}.` : found.join('\n'));
  return found.length === 0;
}

/** @param {{ json?: boolean | undefined }} options */
function commandStatus({ json }) {
  requireRoot();
  if (!json) return printStatus();
  const info = readInfo();
  console.log(JSON.stringify(info ?? null, null, 2));
  return info !== undefined;
}

function parse() {
  try {
    const options = /** @type {const} */ ({ json: { type: 'boolean' }, save: { type: 'string' }, compare: { type: 'string' } });
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

async function main() {
  const { positionals, values } = parse();
  switch (positionals[0]) {
    case 'up':
      return commandUp();
    case 'down':
      return commandDown();
    case 'status':
      return commandStatus(values);
    case 'leftovers':
      return commandLeftovers(values);
    default:
      console.error(usage);
      return false;
  }
}

// Ended by a signal, the process would leave its lock and the program it waits for.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

const started = performance.now();
try {
  process.exitCode = (await main()) ? 0 : 1;
  if (process.argv[2] === 'up' || process.argv[2] === 'down') console.log(`${process.argv[2]}: ${seconds(started)}`);
} catch (error) {
  console.error(`\n${describe(error)}`);
  process.exitCode = 1;
}
