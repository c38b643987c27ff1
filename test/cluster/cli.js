// The test cluster's command line: node test/cluster/cli.js up | down | status | leftovers

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { takeDown, whatIsLeft } from './down.js';
import { Failure, describe } from './failure.js';
import { requireOwnFolder } from './folder.js';
import { differences, readSnapshot, snapshot } from './leftovers.js';
import { alone } from './lock.js';
import { otherCluster, requireKubeconfig, requireOnlyCluster, requireRoot } from './preflight.js';
import { seconds } from './progress.js';
import { printJson, printStatus } from './status.js';
import { up } from './up.js';

const usage = `usage: node test/cluster/cli.js <command>
  up         bring the cluster up, or what is missing of it; prints the KUBECONFIG line
  down       take it down; only its logs stay
  status     components, node and versions; exit code 1 unless all is healthy
             [--json]            the same for programs, with all that a test needs to know
  leftovers  what of a cluster is on the machine; exit code 1 if there is anything
             [--save <file>]     write how the machine is now
             [--compare <file>]  say how it differs from a saved state; exit code 1 if it does
  help       this text`;

async function commandUp() {
  const other = otherCluster();
  if (other) {
    requireKubeconfig(other);
    console.log(
      `KUBECONFIG names another cluster (${other}). Nothing was started: tests use that one. Unset it for the cluster of this machine.`,
    );
    return true;
  }
  requireRoot();
  requireOnlyCluster();
  requireOwnFolder();
  await alone(up);
  return true;
}

async function commandDown() {
  requireRoot();
  requireOnlyCluster();
  requireOwnFolder();
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
    const content = `${JSON.stringify(await snapshot(), null, 2)}\n`;
    try {
      writeFileSync(save, content);
    } catch (error) {
      throw new Failure(`${save} cannot be written (${/** @type {NodeJS.ErrnoException} */ (error).code}).`, { cause: error });
    }
    return true;
  }
  if (!compare) return reportLeft(await whatIsLeft());
  const before = readSnapshot(compare);
  const found = differences(before, await snapshot());
  console.log(found.length === 0 ? `The machine is as in ${compare}.` : found.join('\n'));
  return found.length === 0;
}

/** @param {{ json?: boolean | undefined }} options */
function commandStatus({ json }) {
  requireRoot();
  return json ? printJson() : printStatus();
}

/** @typedef {{ json?: boolean | undefined, save?: string | undefined, compare?: string | undefined, help?: boolean | undefined }} Values */

/** @type {Readonly<Record<string, { options: readonly string[], run: (values: Values) => Promise<boolean> }>>} */
const commands = {
  up: { options: [], run: commandUp },
  down: { options: [], run: commandDown },
  status: { options: ['json'], run: commandStatus },
  leftovers: { options: ['save', 'compare'], run: commandLeftovers },
};

/** @param {string} problem */
const misuse = (problem) => new Failure(`${problem}\n\n${usage}`);

function parse() {
  try {
    const options = /** @type {const} */ ({
      json: { type: 'boolean' },
      save: { type: 'string' },
      compare: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    });
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    throw misuse(error instanceof Error ? error.message : String(error));
  }
}

function main() {
  const { positionals, values } = parse();
  const [name, ...more] = positionals;
  if (values.help || name === 'help') {
    console.log(usage);
    return true;
  }
  if (!name) throw misuse('A command is missing.');
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) throw misuse(`There is no command ${name}.`);
  if (more.length > 0) throw misuse(`${name} takes no ${more.join(' ')}.`);
  const option = Object.keys(values).find((given) => !command.options.includes(given));
  if (option) throw misuse(`${name} takes no --${option}.`);
  if (values.save === '' || values.compare === '') throw misuse('--save and --compare take the name of a file.');
  if (values.save && values.compare) throw misuse('--save and --compare exclude each other.');
  timed = name === 'up' || name === 'down' ? name : undefined;
  return command.run(values);
}

/** Command that takes a while: its time is printed, and what to do when it is interrupted. @type {'up' | 'down' | undefined} */
let timed;

// Ended by a signal, the process would leave its lock and the program it waits for.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    if (timed) console.error(`\ninterrupted: run ${timed === 'up' ? 'up again, or down' : 'down again'}`);
    process.exit(130);
  });
}

const started = performance.now();
try {
  process.exitCode = (await main()) ? 0 : 1;
  if (timed) console.log(`${timed}: ${seconds(started)}`);
} catch (error) {
  console.error(`\n${describe(error)}`);
  process.exitCode = 1;
}
